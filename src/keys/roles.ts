// What each role of a management key may do: the weakest role of every operation, once. The manual shows this table (roles.md), and the
// runner of operations, the endpoints and the page ask it. It knows no key, only its role.
import { type KeyKind, type Role, roles } from '../../db/schema/value-names.ts'
import { Fault } from '../fault.ts'

/** Null: no management key may do it, only who can use the local socket of the server. */
export const weakestRoles = {
  init: null,
  'organizations.create': null,
  'organizations.list': 'viewer',
  'organizations.show': 'viewer',
  'organizations.plan': 'admin',
  'organizations.update': 'admin',
  'workspaces.create': 'admin',
  'workspaces.list': 'viewer',
  'keys.list': 'viewer',
  'keys.show': 'viewer',
  'keys.create': 'operator',
  'keys.update': 'operator',
  'keys.disable': 'operator',
  'keys.enable': 'operator',
  'keys.rotate': 'operator',
  'keys.delete': 'operator',
  'budgets.list': 'viewer',
  'budgets.show': 'viewer',
  'budgets.simulate': 'viewer',
  'budgets.create': 'operator',
  'budgets.update': 'operator',
  'budgets.top_up': 'operator',
  'budgets.delete': 'operator',
  'budgets.of_workspace': 'viewer',
  'budgets.of_interval': 'viewer',
  'budgets.set_interval': 'operator',
  'budgets.delete_interval': 'operator',
  'alerts.list': 'viewer',
  'webhooks.list': 'viewer',
  'webhooks.show': 'viewer',
  // They make the server send requests to a URL.
  'webhooks.add': 'admin',
  'webhooks.update': 'admin',
  'webhooks.test': 'admin',
  'webhooks.delete': 'admin',
  'issuers.list': 'viewer',
  'issuers.show': 'viewer',
  'issuers.add': 'admin',
  'issuers.update': 'admin',
  // It fetches any URL that it is given.
  'issuers.verify': 'admin',
  'issuers.refresh': 'admin',
  'issuers.delete': 'admin',
  'issuers.import': 'admin',
  'bundle_signers.list': 'viewer',
  'bundle_signers.add': 'admin',
  'bundle_signers.remove': 'admin',
  'policies.list': 'viewer',
  'policies.show': 'viewer',
  'policies.check': 'viewer',
  'policies.lint': 'viewer',
  'policies.test': 'viewer',
  'policies.backtest': 'viewer',
  'policies.audited_test': 'viewer',
  /** `policies.create` with `dry_run`. */
  'policies.draft': 'viewer',
  'policies.create': 'admin',
  'policies.update': 'admin',
  'policies.pause': 'admin',
  'policies.resume': 'admin',
  'policies.delete': 'admin',
  'presets.list': 'viewer',
  'presets.show': 'viewer',
  'presets.versions': 'viewer',
  'presets.version': 'viewer',
  'presets.apply': 'viewer',
  'presets.save': 'operator',
  'presets.update': 'operator',
  'presets.archive': 'operator',
  'presets.restore': 'operator',
  'presets.diff': null,
  'config.plan': 'viewer',
  'config.apply': 'admin',
  'config.export': 'viewer',
  'doctor.examine': 'viewer',
  'audit.list': 'viewer',
  'audit.show': 'viewer',
  'audit.counts': 'viewer',
  'audit.changes': 'viewer',
  'audit.log': 'auditor',
  'audit.prove': 'auditor',
  'audit.verify': null,
  'audit.checkpoint': null,
  'audit.rotate_key': null,
  'audit.cosign': null,
  'audit.erase': null,
  'audit.trail': null,
  'usage.report': 'viewer',
  'usage.requests': 'viewer',
  'usage.refused': 'viewer',
  'usage.sum': null,
  'usage.verify': null,
  'sessions.list': 'viewer',
  'sessions.end': 'admin',
  'sessions.link': null,
  'system.show': 'viewer',
  'upstreams.list': 'viewer',
  'upstreams.show': 'viewer',
  'upstreams.top': 'viewer',
  // It sends the credential of the upstream.
  'upstreams.check': 'operator',
  // Where prompts and credentials go is decided on a machine of the server.
  'upstreams.add': null,
  'upstreams.update': null,
  'upstreams.tune': 'admin',
  'upstreams.remove': null,
  'prices.list': 'viewer',
  'prices.set': 'admin',
  'prices.remove': 'admin',
  'signing_keys.list': 'viewer',
  'signing_keys.rotate': 'admin',
  'health.show': null,
  'archive.run': null,
  'archive.list': 'viewer',
  'archive.verify': null,
  'nodes.list': null,
  'server.reload': null,
  'server.check': null,
  'server.work': null,
  'master_key.replace': null,
  // It has no path: the folder is that of the settings.
  'backup.create': 'admin',
  'backup.show': null,
} as const satisfies Record<string, Role | null>

/** The name of an operation, or of a form of one that weaker roles may use. */
export type Act = keyof typeof weakestRoles

/** Whether a role may do whatever another one may do. Nothing but the local socket is above an admin. */
export function isAtLeast(role: Role | null, other: Role): boolean {
  return role !== null && roles.indexOf(role) >= roles.indexOf(other)
}

/** Whether a role may do it. Nobody may do what the table lacks. */
export function mayDo(role: Role | null, act: string): boolean {
  const weakest = weakestOf(act)
  return weakest !== null && isAtLeast(role, weakest)
}

/** All that a role may do. */
export function actsOf(role: Role | null): string[] {
  return Object.keys(weakestRoles).filter((act) => mayDo(role, act))
}

/** By what a role may not do, but a management key with another role may: the weakest role that may. */
export function neededRolesOf(role: Role | null): Record<string, Role> {
  const needed = Object.entries(weakestRoles).filter(([, weakest]) => weakest !== null && !isAtLeast(role, weakest))
  return Object.fromEntries(needed) as Record<string, Role>
}

/** What a call does, so far as the table distinguishes it. */
export function actOf(operation: string, input: unknown): string {
  const isDraft = (input as { dry_run?: unknown } | null)?.dry_run === true
  return operation === 'policies.create' && isDraft ? 'policies.draft' : operation
}

/** @throws Fault `forbidden`, which names the role that may */
export function checkRole(role: Role | null, act: string): void {
  if (mayDo(role, act)) return
  const weakest = weakestOf(act)
  const hint = weakest === null ? 'only commands on a machine of the server may' : `use one with the role ${weakest}`
  throw new Fault('forbidden', `A management key with the role ${role} may not do this: ${hint}`)
}

/** Who may call a route, for its documentation. */
export function accessOf(act: Act): `admin:${Role}` {
  const weakest = weakestRoles[act]
  if (weakest === null) throw new Error(`No management key may do ${act}, so it has no route`)
  return `admin:${weakest}`
}

/** The kind of a key with this role, which older clients read. */
function kindOfRole(role: Role): KeyKind {
  return isAtLeast(role, 'operator') ? 'management' : 'management_read_only'
}

/** A key as a session uses it, which never may do more than the key. */
export function withRole<Key extends { kind: string; role: Role | null }>(key: Key, role: Role | null): Key {
  if (role === null || isAtLeast(role, key.role ?? 'viewer')) return key
  return { ...key, kind: kindOfRole(role), role }
}

/** The kind and role of a new key. @throws Fault `invalid` if they contradict each other */
export function roleOfNew({ kind, role }: { kind?: KeyKind; role?: Role }): { kind: KeyKind; role: Role | null } {
  if (role === undefined && (kind === undefined || kind === 'inference')) return { kind: 'inference', role: null }
  const resolved = role ?? (kind === 'management' ? 'admin' : 'viewer')
  const fitting = kindOfRole(resolved)
  if (kind !== undefined && kind !== fitting)
    throw new Fault(
      'invalid',
      `The role ${resolved} does not fit the kind ${kind}: leave the kind out, or use ${fitting}`,
    )
  return { kind: fitting, role: resolved }
}

/**
 * Nobody makes or changes a key that may do more than they may.
 * @throws Fault `forbidden`
 */
export function rejectAbove(caller: Role, { name, role }: { name: string; role: Role | null }): void {
  if (role === null || isAtLeast(caller, role)) return
  throw new Fault(
    'forbidden',
    `The key ${JSON.stringify(name)} has the role ${role}, which may do more than yours (${caller}): use a key with the role ${role}`,
  )
}

function weakestOf(act: string): Role | null {
  return Object.hasOwn(weakestRoles, act) ? weakestRoles[act as Act] : null
}
