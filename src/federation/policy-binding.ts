// A policy with its organization, issuer and target key, read as one snapshot, and the check whether it currently
// allows exchanges.
import type { ApiKey, Organization } from '../../db/schema/schema.ts'
import type { Issuer } from './issuer/issuer.ts'
import type { Policy } from './policy.ts'
import { type Refusal, refuse } from './subject-token/refusal.ts'

/** The part of the registry that an exchange reads. */
export type TrustRegistry = {
  readonly organizations: ReadonlyMap<string, Readonly<Organization>>
  readonly keys: ReadonlyMap<string, Readonly<ApiKey>>
  readonly issuers: ReadonlyMap<string, Issuer>
  readonly policies: ReadonlyMap<string, Policy>
  /** Reads rows that are deleted and no longer in memory. */
  readonly deleted: {
    policy: (id: string) => Promise<Policy | undefined>
    issuer: (id: string) => Promise<Issuer | undefined>
    key: (id: string) => Promise<Readonly<ApiKey> | undefined>
  }
}

/**
 * The rows that decide an exchange. The values are immutable, so identical values later prove that nothing has changed.
 */
export type PolicyBinding = {
  policy: Policy
  organization: Readonly<Organization>
  issuer: Issuer
  key: Readonly<ApiKey>
}

/** Reports whether the plan includes federation: Business and Enterprise only (reference: Entitlement). */
export function isEntitled(organization: Pick<Organization, 'plan'>): boolean {
  return organization.plan === 'business' || organization.plan === 'enterprise'
}

/** Reads the policy and the rows that it refers to. Returns undefined if the policy does not exist. */
export function readBinding(registry: TrustRegistry, policyId: string): PolicyBinding | undefined {
  const policy = registry.policies.get(policyId)
  return policy === undefined ? undefined : bindingOf(registry, policy)
}

/** Reads a deleted policy and the rows that it refers to. Returns undefined if the policy never existed. */
export async function readDeletedBinding(
  registry: TrustRegistry,
  policyId: string,
): Promise<PolicyBinding | undefined> {
  const { organizations, issuers, keys, deleted } = registry
  const policy = await deleted.policy(policyId)
  if (policy === undefined) return undefined
  const organization = organizations.get(policy.organizationId)
  const issuer = issuers.get(policy.issuerId) ?? (await deleted.issuer(policy.issuerId))
  const key = keys.get(policy.keyId) ?? (await deleted.key(policy.keyId))
  return organization && issuer && key && { policy, organization, issuer, key }
}

/** The policy with the rows that it refers to. */
export function bindingOf(
  registry: Pick<TrustRegistry, 'organizations' | 'issuers' | 'keys'>,
  policy: Policy,
): PolicyBinding {
  const organization = registry.organizations.get(policy.organizationId)
  const issuer = registry.issuers.get(policy.issuerId)
  const key = registry.keys.get(policy.keyId)
  if (organization === undefined || issuer === undefined || key === undefined)
    throw new Error(`Policy ${policy.id} names a row that the registry lacks`)
  return { policy, organization, issuer, key }
}

/** Returns the reason that stops new exchanges, if any (reference: Policy lifecycle). */
export function checkEligibility(
  {
    policy,
    organization,
    issuer,
    key,
  }: Omit<PolicyBinding, 'policy'> & { policy: Pick<Policy, 'deletedAt' | 'enabled'> },
  now: number,
): Refusal | undefined {
  if (policy.deletedAt !== null) return refuse('policy_deleted')
  if (!policy.enabled) return refuse('policy_paused')
  if (!isEntitled(organization)) return refuse('organization_not_entitled', organization.plan)
  if (issuer.deletedAt !== null) return refuse('issuer_deleted')
  if (key.deletedAt !== null) return refuse('key_deleted')
  if (key.disabled) return refuse('key_disabled')
  return key.expiresAt !== null && key.expiresAt <= now ? refuse('key_expired') : undefined
}

/** Reports whether everything that a decision used is unchanged. */
export function isCurrent(registry: TrustRegistry, { policy, organization, issuer, key }: PolicyBinding): boolean {
  return (
    registry.policies.get(policy.id) === policy &&
    registry.organizations.get(organization.id) === organization &&
    registry.issuers.get(issuer.id) === issuer &&
    registry.keys.get(key.id) === key
  )
}
