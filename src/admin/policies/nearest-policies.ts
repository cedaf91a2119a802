// The policies that a token comes nearest to. It is checked under all policies of its issuer, which are then ranked.

import { createPace, type Pace } from '../../../db/read/pace.ts'
import { measureHeld } from '../../federation/condition/explanation.ts'
import { conditionOf, type Policy } from '../../federation/policy.ts'
import type { SubjectToken } from '../../federation/subject-token/claims.ts'
import { stepNames } from '../../federation/subject-token/refusal.ts'
import { nearestPoliciesMax } from '../../limits.ts'
import { parseJwtText } from '../../tokens/jwt-text.ts'
import type { Needs } from '../operation/context.ts'
import { createWalker, type Explanation, explainWalk, type Walk, type WalkContext } from './explain.ts'

/**
 * The explanations of the nearest of these policies: those that accept the token; then those that refuse it at the fewest steps, of these
 * the ones that it gets farthest with, and of these the ones of whose condition the most holds. Other work comes in between.
 */
export async function explainNearest(
  context: WalkContext,
  policies: Iterable<Policy>,
  subjectToken: string,
): Promise<Explanation[]> {
  const walk = createWalker(context, subjectToken)
  const pace = createPace()
  const groups = await groupBySteps(await chooseCandidates(context, policies, subjectToken, pace), walk, pace)
  const explanations: Explanation[] = []
  for (const policy of await chooseByConditions(groups, pace))
    explanations.push(await explainWalk(await walk(policy), pace))
  return explanations
}

/** The policies of the token's issuer, or all if no policy has it. A text without an issuer is refused by all in the same way. */
async function chooseCandidates(
  { registry }: Needs<'registry'>,
  policies: Iterable<Policy>,
  subjectToken: string,
  pace: Pace,
): Promise<Policy[]> {
  const issuerUrl = parseJwtText(subjectToken)?.payload.iss
  const [all, ofIssuer]: [Policy[], Policy[]] = [[], []]
  for (const policy of policies) {
    if (typeof issuerUrl !== 'string') return [policy]
    all.push(policy)
    if (registry.issuers.get(policy.issuerId)?.issuerUrl === issuerUrl) ofIssuer.push(policy)
    await pace()
  }
  return ofIssuer.length === 0 ? all : ofIssuer
}

/** `token` is set if the condition refuses it. How many of its parts hold is measured later. */
type Candidate = { policy: Policy; token: SubjectToken | undefined }

/** Groups of equal rank by the steps alone, nearest first, as many as the nearest can be in. */
async function groupBySteps(
  policies: Policy[],
  walk: (policy: Policy) => Promise<Walk>,
  pace: Pace,
): Promise<Candidate[][]> {
  const groups = new Map<number, Candidate[]>()
  for (const policy of policies) {
    const { refusals, facts } = await walk(policy)
    const distance = distanceOf(refusals)
    const group = groups.get(distance) ?? []
    group.push({ policy, token: refusals.get('condition') === undefined ? undefined : facts.token })
    groups.set(distance, group)
    await pace()
  }
  const nearest: Candidate[][] = []
  let count = 0
  for (const [, group] of [...groups].toSorted(([one], [other]) => one - other)) {
    if (count < nearestPoliciesMax) nearest.push(group)
    count += group.length
  }
  return nearest
}

/** 0 if no step refuses. The number of refusing steps counts first, then the place of the first one. */
function distanceOf(refusals: Walk['refusals']): number {
  let [count, first] = [0, 0]
  for (const [name, refusal] of refusals)
    if (refusal !== undefined) {
      if (count === 0) first = stepNames.indexOf(name)
      count += 1
    }
  return count * stepNames.length - first
}

/** The nearest of all, in order. Of each group as many as may be needed are kept while it is measured: sorting all would take long. */
async function chooseByConditions(groups: Candidate[][], pace: Pace): Promise<Policy[]> {
  const known = new Map<string, boolean>()
  const nearest: Policy[] = []
  for (const group of groups) {
    const best: { policy: Policy; held: number }[] = []
    for (const { policy, token } of group) {
      const condition = conditionOf(policy)
      const isMeasured = typeof condition === 'object' && token !== undefined
      const held = isMeasured ? measureHeld(condition, token, known) : 1
      const place = best.findIndex((other) => other.held < held)
      best.splice(place < 0 ? best.length : place, 0, { policy, held })
      best.length = Math.min(best.length, nearestPoliciesMax)
      await pace()
    }
    nearest.push(...best.map(({ policy }) => policy))
  }
  return nearest.slice(0, nearestPoliciesMax)
}
