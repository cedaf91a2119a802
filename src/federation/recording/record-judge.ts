// Judges a recorded exchange by a policy, with the steps of an exchange that depend on the policy. What the record
// cannot decide is said, never guessed.

import { attributionOf } from '../attribution.ts'
import { type ClaimsRead, claimsReadBy } from '../condition/claims-read.ts'
import { checkCondition } from '../condition/compile.ts'
import { type Dependencies, type Facts, policySteps, type Step } from '../pipeline.ts'
import { conditionOf, type Policy } from '../policy.ts'
import type { PolicyBinding } from '../policy-binding.ts'
import { hashTokenId } from '../replay.ts'
import type { SubjectToken } from '../subject-token/claims.ts'
import { isReason, isRefusal, type Reason, refuse, stepOf } from '../subject-token/refusal.ts'
import type { ClaimHash } from './claim-hash.ts'
import { hideCondition } from './hidden-condition.ts'
import { isRecorded, type RecordedClaims } from './recorded-claims.ts'

/** An exchange whose token was verified. `record` is null if no claims were kept. */
export type RecordedExchange = {
  subject: string
  tokenId: string | null
  reason: string | null
  record: RecordedClaims | null
}

/** `unknown`: why the record does not decide. `claim`: the one that it lacks. */
export type Judgment =
  | { outcome: 'allow' | Reason }
  | { unknown: 'nothing_recorded' | 'claim_not_recorded' | 'hashed'; claim?: string }

/** Undefined while no record with hashes was read. */
export type HashInUse = () => ClaimHash | undefined

/** Returns a function that judges exchanges of the policy's issuer. The times of a token are not judged again. */
export function createRecordJudge(policy: Policy, hash: HashInUse): (exchange: RecordedExchange) => Judgment {
  const { steps, isUnknown, isUnattributed, checkHidden } = readPolicy(policy, hash)
  return ({ subject, tokenId, reason, record }) => {
    if (reason !== null && isOfEveryPolicy(reason)) return { outcome: reason }
    if (record === null) return { unknown: 'nothing_recorded' }
    const token = tokenOf(subject, record)
    // The steps of a policy read nothing else of it, and no issuer.
    const facts: Facts = { subjectToken: '', token, binding: { policy } as PolicyBinding }
    const dependencies = {
      ...neverReplayed,
      checkReplay: () => (hashTokenId(tokenId) === undefined ? missing : undefined),
    }
    for (const { name, isAsked, check } of steps) {
      if (!isAsked(policy)) continue
      const unknown =
        name === 'condition' ? isUnknown(record) : name === 'attribution' ? isUnattributed(record) : undefined
      if (unknown !== undefined) return unknown
      const isHidden = name === 'condition' && record.key !== undefined
      const outcome = isHidden ? checkHidden(token) : check(facts, dependencies)
      if (outcome instanceof Promise) throw new Error(`The step ${name} cannot wait`)
      if (outcome !== undefined && isRefusal(outcome)) return { outcome: outcome.refused }
    }
    return { outcome: 'allow' }
  }
}

const missing = refuse('jti_missing')

const neverReplayed: Omit<Dependencies, 'checkReplay'> = {
  now: () => 0,
  insecureIssuers: true,
  issuerKeys: { find: () => Promise.reject(new Error('A record has no signature')) },
}

/** The token was refused before its policy was asked. */
function isOfEveryPolicy(reason: string): reason is Reason {
  return isReason(reason) && ['times', 'lengths'].includes(stepOf(reason))
}

type ReadPolicy = {
  steps: readonly Step[]
  /** Why the condition cannot be judged on a record. */
  isUnknown: (record: RecordedClaims) => Judgment | undefined
  /** The same for what it attributes to, whose length hashes do not show. */
  isUnattributed: (record: RecordedClaims) => Judgment | undefined
  checkHidden: (token: SubjectToken) => ReturnType<typeof checkCondition>
}

function readPolicy(policy: Policy, hash: HashInUse): ReadPolicy {
  const condition = conditionOf(policy)
  const attribution = attributionOf(policy)
  const isUnattributed = (record: RecordedClaims) => {
    if (typeof attribution !== 'object' || !attribution.usesClaims) return undefined
    return missingIn(record, claimsReadBy(attribution.ast)) ?? (record.key === undefined ? undefined : hashed)
  }
  if (typeof condition !== 'object')
    return { steps: policySteps, isUnknown: () => undefined, isUnattributed, checkHidden: () => undefined }
  const read = claimsReadBy(condition.ast)
  let hidden: { by: ClaimHash; condition: ReturnType<typeof hideCondition> } | undefined
  const hiddenBy = (by: ClaimHash) => {
    if (hidden?.by !== by) hidden = { by, condition: hideCondition(condition, by) }
    return hidden.condition
  }
  return {
    steps: policySteps,
    isUnattributed,
    isUnknown: (record) => {
      const lacking = missingIn(record, read)
      if (lacking !== undefined || record.key === undefined) return lacking
      const by = hash()
      const isJudgeable = by !== undefined && by.key === record.key && hiddenBy(by) !== undefined
      return isJudgeable ? undefined : hashed
    },
    checkHidden: (token) => {
      const by = hash()
      const compiled = by && hiddenBy(by)
      return compiled === undefined ? undefined : checkCondition(compiled, token)
    },
  }
}

const hashed: Judgment = { unknown: 'hashed' }

function missingIn(record: RecordedClaims, { names, readsAll }: ClaimsRead): Judgment | undefined {
  if (readsAll && record.complete !== true) return { unknown: 'claim_not_recorded' }
  for (const claim of names) if (!isRecorded(record, claim)) return { unknown: 'claim_not_recorded', claim }
  return undefined
}

function tokenOf(subject: string, { claims }: RecordedClaims): SubjectToken {
  const { aud } = claims
  const audience = typeof aud === 'string' ? [aud] : (aud as string[])
  return { algorithm: 'RS256', kid: undefined, issuer: '', subject, audience, payload: { ...claims, sub: subject } }
}
