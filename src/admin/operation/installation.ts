// Whose management keys may see and change what belongs to the whole installation: upstreams, prices, signing keys, settings.
import { Fault } from '../../fault.ts'
import { type } from '../../values/shape.ts'
import type { Needs } from './context.ts'

type Organizations = {
  readonly organizations: ReadonlyMap<string, { readonly id: string; readonly createdAt: number }>
}

/** Input of reports that can include more than one organization's rows. */
export const installationInput = {
  'installation?': type('boolean').configure({
    says: 'Also what belongs to the whole installation, if the key may see it',
  }),
} as const

/** Whether it is the organization that the installation was set up with: the first one, which `init` created. */
export function isInstallationOrganization({ organizations }: Organizations, organizationId: string): boolean {
  const [first] = [...organizations.values()].toSorted((one, other) => one.createdAt - other.createdAt)
  return first?.id === organizationId
}

/** @throws Fault `forbidden` */
export function checkInstallationOrganization(registry: Organizations, organizationId: string): void {
  if (isInstallationOrganization(registry, organizationId)) return
  throw new Fault(
    'forbidden',
    'This belongs to the whole installation: use a management key of the organization that it was set up with',
  )
}

/**
 * Whether a caller may read why a server did not respond: commands, and administrators of the organization that the installation was set up
 * with. Everyone else could learn what listens in the networks of the installation.
 */
export function seesCauses({ actor, role, registry }: Needs<'actor' | 'role' | 'registry'>): boolean {
  if (actor.kind !== 'key') return true
  const { organizationId = '' } = registry.keys.get(actor.keyId) ?? {}
  return role === 'admin' && isInstallationOrganization(registry, organizationId)
}
