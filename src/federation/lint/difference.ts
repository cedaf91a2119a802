// What an edit of a policy changes: a token that passes only afterward, and one that passed only before. Both were run
// through both policies. Finding none is no proof.
import { conditionOf, type Policy } from '../policy.ts'
import { claimsIn } from './advice.ts'
import { always, among, only, type Paths } from './atom.ts'
import { candidatesOf, pathsOfPolicy, subjectsIn } from './candidate.ts'
import { kindOf } from './issuer-kinds.ts'
import { allOf, anyOf } from './paths.ts'
import { pathsOfCondition } from './translation.ts'
import {
  claimsToShow,
  findWitness,
  isAccepted,
  type LintedIssuer,
  type LintedPolicy,
  strangerOf,
  type Witness,
} from './witness.ts'

/** A policy with its issuer. A paused one accepts no token. */
export type Side = {
  policy: LintedPolicy & Pick<Policy, 'conditionEnvironment'>
  issuer: LintedIssuer
  isPaused?: boolean
}

/** Claims of a token: the subject, and what the policies compare. */
export type Difference = { gains?: Witness; loses?: Witness }

/** Tokens that are tried in each direction. */
const tokensMax = 64

/** Returns the claims of a token that the first policy accepts and the second refuses, if one is found. */
export function findAcceptedOnlyBy(accepting: Side, refusing: Side): Witness | undefined {
  const { policy, issuer } = accepting
  if (accepting.isPaused === true) return undefined
  const condition = conditionOf(policy as Policy)
  if (typeof condition === 'string') return undefined
  const accepted = pathsOfPolicy(policy, condition)
  const paths = allOf([accepted, isForOthers(accepting, refusing) ? always : refusedBy(refusing.policy)])
  const kind = kindOf(issuer.issuerUrl, subjectsIn(accepted))
  const stranger = strangerOf(kind, issuer.issuerUrl, policy.audience)
  const isAcceptedHere = (claims: Witness) =>
    isAccepted(policy, claims) && (isForOthers(accepting, refusing) || !isAccepted(refusing.policy, claims))
  for (const { facts } of candidatesOf(paths, kind, stranger).slice(0, tokensMax)) {
    const claims = findWitness(kind, stranger, facts, isAcceptedHere)
    if (claims !== undefined) return claimsToShow(claims, ['iss', 'aud', ...facts.keys()])
  }
  return undefined
}

/** No token that the first policy accepts passes the second. */
function isForOthers(one: Side, other: Side): boolean {
  return (
    other.isPaused === true ||
    one.issuer.issuerUrl !== other.issuer.issuerUrl ||
    one.policy.audience !== other.policy.audience
  )
}

/** Paths of tokens that a policy refuses: a check fails, or the condition is false or reads a claim that is absent. */
function refusedBy(policy: LintedPolicy & Pick<Policy, 'conditionEnvironment'>): Paths {
  const { subject, requiredScope, requiredTokenType } = policy
  const condition = conditionOf(policy as Policy)
  if (typeof condition === 'string') return always
  const isFalse = condition === undefined ? [] : pathsOfCondition(condition, false)
  const read = condition === undefined ? [] : claimsIn([...isFalse, ...pathsOfCondition(condition)])
  const absent = read.filter((claim) => !['sub', 'aud', 'iss'].includes(claim))
  return anyOf([
    ...(subject === null ? [] : [only(among('sub', [subject], true))]),
    ...(requiredScope === null ? [] : [only({ kind: 'every', claim: 'scopes' })]),
    ...(requiredTokenType === null ? [] : [only(among('token_type', [requiredTokenType], true))]),
    isFalse,
    ...absent.map((claim) => only({ kind: 'present', claim, negated: true })),
  ])
}
