// Explains why a token is refused: runs it through the steps of an exchange, and continues after the first refusal.

import type { Pace } from '../../../db/read/pace.ts'
import { findUsedSubjectToken } from '../../../db/tables/used-subject-tokens.ts'
import { explainParts, type SubExpression } from '../../federation/condition/explanation.ts'
import {
  type Dependencies,
  type Facts,
  isJudgeable,
  type Outcome,
  type Step,
  steps,
} from '../../federation/pipeline.ts'
import { conditionOf, type Policy } from '../../federation/policy.ts'
import { bindingOf } from '../../federation/policy-binding.ts'
import { hashTokenId } from '../../federation/replay.ts'
import type { SubjectToken } from '../../federation/subject-token/claims.ts'
import { isRefusal, type Refusal, refuse, type StepName, stepOf } from '../../federation/subject-token/refusal.ts'
import { parseJwtText } from '../../tokens/jwt-text.ts'
import type { Needs } from '../operation/context.ts'

export type ExplainedStep = { step: StepName; ok: boolean; reason?: string; detail?: string }
export type Explanation = {
  policy_id: string
  policy_name: string
  accepted: boolean
  steps: ExplainedStep[]
  /** The parts of the condition with their values for this token. */
  condition?: SubExpression[]
}

/** The outcome of each step under a policy. A step that could not run, or that the policy does not require, is absent. */
export type Walk = { policy: Policy; facts: Facts; refusals: ReadonlyMap<StepName, Refusal | undefined> }

/** What running a token through the steps needs. */
export type WalkContext = Needs<'orm' | 'registry' | 'issuerKeys' | 'outbound' | 'now'>

/**
 * Runs one token through all steps under one policy after another. What is the same for all policies of an issuer is checked once.
 * The token is not used up: an earlier exchange is only looked up.
 */
export function createWalker(context: WalkContext, subjectToken: string): (policy: Policy) => Promise<Walk> {
  const jwt = parseJwtText(subjectToken)
  const dependencies = dependenciesOf(context)
  const known = new Map<string, Map<StepName, Outcome>>()

  async function take({ name, check, isOfToken }: Step, facts: Facts, issuerId: string): Promise<Outcome> {
    if (!isOfToken) return check(facts, dependencies)
    const ofIssuer = known.get(issuerId) ?? new Map<StepName, Outcome>()
    known.set(issuerId, ofIssuer)
    if (!ofIssuer.has(name)) ofIssuer.set(name, await check(facts, dependencies))
    return ofIssuer.get(name)
  }

  return async (policy) => {
    const facts: Facts = { subjectToken, jwt, binding: bindingOf(context.registry, policy) }
    const refusals = new Map<StepName, Refusal | undefined>()
    for (const step of steps) {
      if (!isJudgeable(step, facts)) continue
      const outcome = await take(step, facts, policy.issuerId)
      if (outcome === undefined || !isRefusal(outcome)) {
        Object.assign(facts, outcome)
        refusals.set(step.name, undefined)
        // A refusal that belongs to an earlier step was recorded there; this step has nothing to check.
      } else if (stepOf(outcome.refused) === step.name) refusals.set(step.name, outcome)
    }
    return { policy, facts, refusals }
  }
}

/** The explanation of a walk, with the parts of the condition. */
export async function explainWalk({ policy, facts, refusals }: Walk, pace: Pace): Promise<Explanation> {
  const explained = [...refusals].map(([step, refusal]) => explainStep(step, refusal))
  const condition = conditionOf(policy)
  const parts: SubExpression[] = []
  const showsCondition = typeof condition === 'object' && facts.token !== undefined
  if (showsCondition)
    for (const part of explainParts(condition, facts.token as SubjectToken)) {
      // `claims` alone is the whole payload, which would hide the parts that decide.
      if (part.source !== 'claims') parts.push(part)
      await pace()
    }
  return {
    policy_id: policy.id,
    policy_name: policy.name,
    accepted: explained.every(({ ok }) => ok),
    steps: explained,
    ...(showsCondition ? { condition: parts } : {}),
  }
}

function explainStep(step: StepName, refusal: Refusal | undefined): ExplainedStep {
  if (refusal === undefined) return { step, ok: true }
  const { refused: reason, detail } = refusal
  return detail === undefined ? { step, ok: false, reason } : { step, ok: false, reason, detail }
}

/** Earlier uses are looked up in the database, so the result is the same with and without a server. */
function dependenciesOf({ now, outbound, issuerKeys, orm }: WalkContext): Dependencies {
  return {
    now,
    insecureIssuers: outbound.insecureIssuers,
    issuerKeys,
    checkReplay: async ({ payload }, issuer) => {
      const tokenIdSha256 = hashTokenId(payload.jti)
      if (tokenIdSha256 === undefined) return refuse('jti_missing')
      const used = await findUsedSubjectToken(orm, issuer.id, tokenIdSha256, now())
      return used === undefined ? undefined : refuse('replayed', String(payload.jti))
    },
  }
}
