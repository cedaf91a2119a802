// The logins that the service offers to people: each policy whose audience is the login client of its issuer, since an ID token is for its
// client. They are public, as far as administrators publish them, and hold no secret.
import { type } from '../values/shape.ts'
import type { Issuer } from './issuer/issuer.ts'
import type { Policy } from './policy.ts'
import { isEntitled, type TrustRegistry } from './policy-binding.ts'

export const loginOfferShape = type({
  policy: 'string',
  policy_name: 'string',
  issuer: 'string',
  client_id: 'string',
  scopes: 'string | null',
  redirect_uri: 'string',
}).configure({ title: 'LoginOffer' })

type LoginOffer = typeof loginOfferShape.infer
type LoginRegistry = Pick<TrustRegistry, 'organizations' | 'issuers' | 'keys'> & {
  policies: { valuesContaining: (text: string) => Iterable<Policy> }
  onPolicyLoaded: ((policy: Policy) => void)[]
  onDeleted: ((id: string) => void)[]
}

/** A document of more would be of use to nobody. */
const offersMax = 200
/** RFC 8252 §7.3. */
const redirectUriDefault = 'http://127.0.0.1/callback'

/** Returns what lists the offers. Policies are many, and everybody may ask: they are looked through again only after a change. */
export function createLoginOffers(registry: LoginRegistry): () => LoginOffer[] {
  let kept: { issuers: Issuer[]; policies: Policy[] } | undefined
  const forget = () => {
    kept = undefined
  }
  registry.onPolicyLoaded.push(forget)
  registry.onDeleted.push(forget)
  return () => {
    const issuers = [...registry.issuers.values()].filter(
      (each) => each.deletedAt === null && each.loginClientId !== null,
    )
    const isKept =
      issuers.length === kept?.issuers.length && issuers.every((issuer, at) => issuer === kept?.issuers[at])
    if (kept === undefined || !isKept) kept = { issuers, policies: findPolicies(registry, issuers) }
    return kept.policies.flatMap((policy) => offerOf(registry, policy) ?? [])
  }
}

/** In the order of their names. */
function findPolicies({ policies }: LoginRegistry, issuers: readonly Issuer[]): Policy[] {
  const found: Policy[] = []
  for (const { id, loginClientId } of issuers)
    for (const policy of policies.valuesContaining(id)) {
      if (found.length === offersMax) break
      const isOffered = policy.issuerId === id && policy.audience === loginClientId
      if (isOffered && policy.deletedAt === null && policy.enabled) found.push(policy)
    }
  return found.toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

function offerOf({ organizations, issuers, keys }: LoginRegistry, policy: Policy): LoginOffer | undefined {
  const issuer = issuers.get(policy.issuerId)
  const organization = organizations.get(policy.organizationId)
  // With a management key, people sign in to the admin page.
  if (keys.get(policy.keyId)?.kind !== 'inference') return undefined
  if (issuer === undefined || organization === undefined || !isEntitled(organization)) return undefined
  return {
    policy: policy.id,
    policy_name: policy.name,
    issuer: issuer.issuerUrl,
    client_id: policy.audience,
    scopes: issuer.loginScopes,
    redirect_uri: issuer.loginRedirectUri ?? redirectUriDefault,
  }
}
