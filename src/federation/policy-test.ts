// Runs the tests of a policy: claims instead of a token, through the steps of an exchange that read claims. It decides
// nothing about saving.
import type { PolicyTest } from '../../db/schema/policy-parts.ts'
import type { JsonObject } from '../tokens/jwt-text.ts'
import { explainParts, type SubExpression } from './condition/explanation.ts'
import type { Issuer } from './issuer/issuer.ts'
import { claimSteps, type Dependencies, type Facts, judge } from './pipeline.ts'
import { conditionOf, type Policy } from './policy.ts'
import type { PolicyBinding } from './policy-binding.ts'
import { hashTokenId } from './replay.ts'
import { isRefusal, type Reason, reasonNames, refuse, stepOf } from './subject-token/refusal.ts'

/** The policy fields that decide a test. */
export type TestedPolicy = Pick<
  Policy,
  'audience' | 'subject' | 'condition' | 'conditionEnvironment' | 'requiredScope' | 'requiredTokenType'
> &
  Pick<Policy, 'replayProtection'>
/** The issuer fields that decide a test. */
export type TestedIssuer = Pick<Issuer, 'issuerUrl' | 'clockSkewSeconds' | 'maxTokenAgeSeconds'>

export type TestResult = {
  name: string
  expected: string
  got: string
  ok: boolean
  /** Why the policy refuses. */
  detail?: string
  /** Of a failed test: the parts of the condition with their values. */
  condition?: SubExpression[]
}

const stepsOfClaims = new Set<string>(claimSteps.map(({ name }) => name))

/** What a test can expect: `allow`, or a reason of the audit that depends on claims. */
export const expectations: readonly ('allow' | Reason)[] = [
  'allow',
  ...reasonNames.filter((reason) => stepsOfClaims.has(stepOf(reason))),
]

const lifetimeSeconds = 300

/** Runs one test. `now` is in milliseconds since 1970 UTC. */
export async function runPolicyTest(
  policy: TestedPolicy,
  issuer: TestedIssuer,
  { name, claims, expect }: PolicyTest,
  now: number,
): Promise<TestResult> {
  const payload = { ...defaultClaims(policy, issuer, now), ...claims }
  const jwt = { header: { alg: 'RS256' }, payload, hasDuplicateMembers: false }
  // The steps that read other fields, or the organization and the key, are not among those of claims.
  const binding = { policy, issuer } as PolicyBinding
  const facts: Facts = { subjectToken: '', jwt, binding }
  const outcome = await judge(facts, dependenciesAt(now), claimSteps)
  const refusal = isRefusal(outcome) ? outcome : undefined
  const got = refusal?.refused ?? 'allow'
  const result = { name, expected: expect, got, ok: got === expect }
  const detail = refusal?.detail === undefined ? {} : { detail: refusal.detail }
  const isDecidedByCondition = refusal === undefined || stepOf(refusal.refused) === 'condition'
  const condition = conditionOf(binding.policy)
  if (result.ok || !isDecidedByCondition || typeof condition !== 'object' || facts.token === undefined)
    return { ...result, ...detail }
  const parts = [...explainParts(condition, facts.token)].filter(({ source }) => source !== 'claims')
  return { ...result, ...detail, condition: parts }
}

/** Claims of a token that the policy accepts, as far as its condition allows. */
function defaultClaims({ audience, subject }: TestedPolicy, { issuerUrl }: TestedIssuer, now: number): JsonObject {
  const iat = Math.floor(now / 1_000)
  return { iss: issuerUrl, aud: audience, sub: subject ?? 'test', iat, exp: iat + lifetimeSeconds, jti: 'test' }
}

/** No key is looked up, and no test was exchanged before. Whether the server allows insecure issuers does not matter. */
function dependenciesAt(now: number): Dependencies {
  return {
    now: () => now,
    insecureIssuers: true,
    issuerKeys: { find: () => Promise.reject(new Error('A test of a policy has no signature')) },
    checkReplay: ({ payload }) => (hashTokenId(payload.jti) === undefined ? refuse('jti_missing') : undefined),
  }
}
