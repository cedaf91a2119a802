// The steps of an exchange: the facts that each needs, its check, and the facts that it adds for later steps. The token
// endpoint stops at the first refusal; `policies check` continues and explains. It knows no request, response or
// database.

import { isSignedBy } from '../tokens/jws.ts'
import type { JwtText } from '../tokens/jwt-text.ts'
import { attribute } from './attribution.ts'
import { explainFalse } from './condition/explanation.ts'
import type { Issuer } from './issuer/issuer.ts'
import type { IssuerKeys } from './issuer/issuer-keys.ts'
import type { VerificationKey } from './issuer/key-set.ts'
import { conditionOf, type Policy, rules } from './policy.ts'
import { checkEligibility, type PolicyBinding } from './policy-binding.ts'
import { checkLengths, checkTimes, narrowSubjectToken, type SubjectToken } from './subject-token/claims.ts'
import { isRefusal, type Refusal, refuse, refuseNotJwt, type StepName, stepNames } from './subject-token/refusal.ts'
import { describeMismatch } from './subject-token/refusal-detail.ts'

/** The facts of an exchange. The first three are known at the start; a step adds each of the others. */
export type Facts = {
  subjectToken: string
  /** Absent if the subject token is not a JWT. */
  jwt?: JwtText | undefined
  /** Absent if the policy does not exist. */
  binding?: PolicyBinding | undefined
  token?: SubjectToken
  /** The policy's issuer, once the token is known to name it. */
  issuer?: Issuer
  key?: VerificationKey
  /** The issuer has signed the token. */
  isVerified?: true
  /** Whose usage it is, where the policy says so. */
  attribution?: string
}

export type Dependencies = {
  now: () => number
  insecureIssuers: boolean
  issuerKeys: Pick<IssuerKeys, 'find'>
  /**
   * Checks whether the token was exchanged before. An exchange checks that when it records the use, right before
   * minting.
   */
  checkReplay: (token: SubjectToken, issuer: Issuer) => Refusal | undefined | Promise<Refusal | undefined>
}

/** A refusal, or the facts that the step adds. */
export type Outcome = Refusal | Partial<Facts> | undefined

export type Step = {
  name: Exclude<StepName, 'minting'>
  /** The step is skipped if one of these facts is missing because an earlier step refused. */
  needs: readonly (keyof Facts)[]
  /** Reports whether a policy requires the step. */
  isAsked: (policy: Policy | undefined) => boolean
  /**
   * Whether the outcome depends only on the token and the issuer, and so is the same for every policy of that issuer.
   */
  isOfToken: boolean
  check: (facts: Facts, dependencies: Dependencies) => Outcome | Promise<Outcome>
}

type FactsWith<Needed extends keyof Facts> = Facts & { [Name in Needed]-?: NonNullable<Facts[Name]> }
type Check<Needed extends keyof Facts> = (
  facts: FactsWith<Needed>,
  dependencies: Dependencies,
) => Outcome | Promise<Outcome>

type Rule = Omit<Step, 'name'>

function step<Needed extends keyof Facts>(needs: Needed[], check: Check<Needed>, more: Partial<Rule> = {}): Rule {
  return { needs, check: check as Rule['check'], isAsked: () => true, isOfToken: false, ...more }
}

const ofToken = { isOfToken: true }
const rule = (name: keyof typeof rules): Rule =>
  step(['token', 'binding'], ({ token, binding }) => rules[name](binding.policy, token))

/** In the order of `stepNames`. The last step, minting, has no check. */
const checks: Record<Step['name'], Rule> = {
  // The form is parsed before there are facts. Whether the token is a JWT also depends only on the request.
  form: step([], ({ subjectToken, jwt }) => (jwt === undefined ? refuseNotJwt(subjectToken) : undefined), ofToken),
  policy: step([], ({ binding }, { now }) =>
    binding === undefined ? refuse('policy_unknown') : checkEligibility(binding, now()),
  ),
  token: step(['jwt'], ({ jwt }) => found('token', narrowSubjectToken(jwt)), ofToken),
  // Runs before any network access.
  issuer: step(['token', 'binding'], checkIssuer, ofToken),
  keys: step(
    ['token', 'issuer'],
    ({ token, issuer }, { issuerKeys }) => {
      const finding = issuerKeys.find(issuer, token)
      return finding instanceof Promise ? finding.then((key) => found('key', key)) : found('key', finding)
    },
    ofToken,
  ),
  signature: step(
    ['token', 'key'],
    async ({ subjectToken, token: { algorithm, kid }, key }) =>
      (await isSignedBy(subjectToken, algorithm, key)) ? { isVerified: true } : refuse('signature_invalid', kid),
    ofToken,
  ),
  times: step(['token', 'binding'], ({ token, binding }, { now }) => checkTimes(token, now(), binding.issuer), ofToken),
  lengths: step(['token'], ({ token }) => checkLengths(token), ofToken),
  subject: rule('subject'),
  audience: rule('audience'),
  scopes: rule('scopes'),
  token_type: rule('token_type'),
  condition: rule('condition'),
  attribution: step(
    ['token', 'binding'],
    ({ token, binding }) => found('attribution', attribute(binding.policy, token)),
    { isAsked: (policy) => typeof policy?.attributeTo === 'string' },
  ),
  // A token of another issuer cannot have been exchanged here.
  replay: step(['token', 'issuer'], ({ token, issuer }, { checkReplay }) => checkReplay(token, issuer), {
    isAsked: (policy) => policy?.replayProtection === true,
    isOfToken: true,
  }),
}

export const steps: readonly Step[] = stepNames.flatMap((name) =>
  name === 'minting' ? [] : [{ name, ...checks[name] }],
)

/** The steps that read only claims, policy and issuer. */
export const claimSteps: readonly Step[] = steps.filter(
  ({ name }) => !['form', 'policy', 'keys', 'signature'].includes(name),
)

/** The steps whose outcome can differ between the policies of an issuer once the token is verified. */
export const policySteps: readonly Step[] = steps.slice(steps.findIndex(({ name }) => name === 'subject'))

function found<Name extends 'token' | 'key' | 'attribution'>(
  name: Name,
  value: Refusal | NonNullable<Facts[Name]>,
): Outcome {
  return typeof value === 'object' && isRefusal(value) ? value : { [name]: value }
}

/** If insecure issuers are disabled, refuses issuers on http, even if their keys are cached. */
function checkIssuer(
  { token, binding: { issuer } }: FactsWith<'token' | 'binding'>,
  { insecureIssuers }: Dependencies,
): Outcome {
  if (token.issuer !== issuer.issuerUrl)
    return refuse('issuer_mismatch', describeMismatch(token.issuer, issuer.issuerUrl))
  return !insecureIssuers && issuer.issuerUrl.startsWith('http:') ? refuse('issuer_insecure') : { issuer }
}

/** Reports whether the policy requires a step and its facts are present. */
export function isJudgeable({ isAsked, needs }: Step, facts: Facts): boolean {
  return isAsked(facts.binding?.policy) && needs.every((name) => facts[name] !== undefined)
}

export type AcceptedFacts = FactsWith<'token' | 'binding' | 'issuer'>

/** Runs steps in order, by default all, and stops at the first refusal. Adds the facts of each step to `facts`. */
export async function judge(
  facts: Facts,
  dependencies: Dependencies,
  taken: readonly Step[] = steps,
): Promise<AcceptedFacts | Refusal> {
  for (const { name, isAsked, check } of taken) {
    if (!isAsked(facts.binding?.policy)) continue
    const given = check(facts, dependencies)
    // Most steps are synchronous.
    const outcome = given instanceof Promise ? await given : given
    if (outcome === undefined) continue
    if (isRefusal(outcome)) return name === 'condition' ? withParts(outcome, facts) : outcome
    Object.assign(facts, outcome)
  }
  return facts as AcceptedFacts
}

/** Adds the values of the condition's parts, so that an admin can find the cause in the audit without the token. */
function withParts(refusal: Refusal, { token, binding }: Facts): Refusal {
  const condition = binding === undefined ? undefined : conditionOf(binding.policy)
  if (refusal.refused !== 'condition_false' || token === undefined || typeof condition !== 'object') return refusal
  return { ...refusal, detail: explainFalse(condition, token) }
}
