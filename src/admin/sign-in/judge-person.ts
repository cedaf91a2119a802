// Which policy lets a person in: the steps of an exchange, run on the ID token for each policy of the issuer whose target is a management key.
// The strongest role counts.
import type { Issuer } from '../../federation/issuer/issuer.ts'
import { type AcceptedFacts, type Dependencies, judge } from '../../federation/pipeline.ts'
import type { Policy } from '../../federation/policy.ts'
import { bindingOf, type PolicyBinding, type TrustRegistry } from '../../federation/policy-binding.ts'
import { isRefusal } from '../../federation/subject-token/refusal.ts'
import { isAtLeast } from '../../keys/roles.ts'
import { parseJwtText } from '../../tokens/jwt-text.ts'

export type JudgeContext = Omit<Dependencies, 'insecureIssuers' | 'checkReplay'> & {
  outbound: { insecureIssuers: boolean }
  registry: Pick<TrustRegistry, 'organizations' | 'issuers' | 'keys'> & {
    policies: {
      valuesContaining: (text: string) => Iterable<Policy>
      get: (id: string) => Policy | undefined
    }
  }
}

/** Each is judged by its condition, which takes time. */
const policiesMax = 100

/** `refused`: why each policy refuses, for the log. */
export type Verdict = { accepted: AcceptedFacts; refused?: undefined } | { accepted: undefined; refused: string }

/** Judges an ID token for the page by the policies of its issuer, or by one of them. */
export async function judgePerson(
  idToken: string,
  issuer: Issuer,
  context: JudgeContext,
  only?: Policy,
): Promise<Verdict> {
  const jwt = parseJwtText(idToken)
  // One `aud` may be another client's, which then says whose token it is (OpenID Connect Core 1.0 §3.1.3.7).
  const azp = jwt?.payload.azp
  if (azp !== undefined && azp !== issuer.pageClientId) return { accepted: undefined, refused: 'azp is another client' }
  const dependencies: Dependencies = {
    now: context.now,
    insecureIssuers: context.outbound.insecureIssuers,
    issuerKeys: context.issuerKeys,
    checkReplay: () => undefined,
  }
  let accepted: AcceptedFacts | undefined
  const refused: string[] = []
  for (const binding of bindingsFor(issuer, context, only)) {
    const outcome = await judge({ subjectToken: idToken, jwt, binding }, dependencies)
    if (isRefusal(outcome)) refused.push(`${binding.policy.name}: ${outcome.refused}`)
    else if (accepted === undefined || isStronger(binding, accepted.binding)) accepted = outcome
  }
  if (accepted !== undefined) return { accepted }
  return { accepted, refused: refused.length === 0 ? 'no policy lets people of this issuer in' : refused.join(', ') }
}

function bindingsFor(issuer: Issuer, { registry }: JudgeContext, only: Policy | undefined): PolicyBinding[] {
  // Packed rows are read once, and the same value is compared as long as a session lasts.
  const named = only === undefined ? registry.policies.valuesContaining(issuer.id) : [only]
  const bindings: PolicyBinding[] = []
  for (const { id } of named) {
    const policy = registry.policies.get(id)
    if (policy === undefined || policy.issuerId !== issuer.id || policy.audience !== issuer.pageClientId) continue
    const binding = bindingOf(registry, policy)
    if (binding.key.kind === 'inference') continue
    bindings.push(binding)
    if (bindings.length === policiesMax) break
  }
  return bindings
}

function isStronger(one: PolicyBinding, other: PolicyBinding): boolean {
  const [role, least] = [one.key.role ?? null, other.key.role ?? 'viewer']
  return isAtLeast(role, least) && role !== least
}
