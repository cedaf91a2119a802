// What a finding is: something that an operator should know or act on, in a sentence, with what to do.
import type { Act } from '../../keys/roles.ts'
import { findingLevels } from '../../monitoring/finding-counts.ts'
import { type } from '../../values/shape.ts'

export const findingAreas = [
  'server',
  'nodes',
  'disk',
  'backup',
  'archive',
  'audit_log',
  'master_key',
  'tls',
  'database',
  'organizations',
  'issuers',
  'upstreams',
  'policies',
  'budgets',
  'webhooks',
] as const

export type Finding = {
  /** `error`: something does not work, or soon will not. `warning`: it will fail if nothing is done. `note`: worth a look. */
  level: (typeof findingLevels)[number]
  area: (typeof findingAreas)[number]
  /** The same for the same kind of finding. */
  code: string
  message: string
  action: string
  /** The operation that mends it, on each of `names`; null where no operation does. */
  operation: Act | null
  /** What it is about, at most `findingNamesMax` of `count`. */
  names: string[]
  count: number
}

/** The response over HTTP. `schema` is null where only an organization was examined. */
export const findingsResponse = type({
  examined_at: type('string').configure({ format: 'date-time' }),
  schema: 'number.integer | null',
  findings: type({
    level: type.enumerated(...findingLevels),
    area: type.enumerated(...findingAreas),
    code: 'string',
    message: 'string',
    action: 'string',
    operation: 'string | null',
    names: 'string[]',
    count: 'number.integer',
  }).array(),
}).configure({ title: 'Findings' })

/** Names of a finding in JSON, and in its sentence. */
const findingNamesMax = 100
const sentenceNamesMax = 5

type FindingText = Pick<Finding, 'level' | 'area' | 'code' | 'message' | 'action'>

/** By code. What is missing here is mended outside of this program. */
export const remedies: Partial<Record<string, Act>> = {
  backup_failed: 'backup.create',
  backup_missing: 'backup.create',
  backup_old: 'backup.create',
  budget_cost_unknown: 'prices.set',
  budget_nearly_spent: 'keys.update',
  budget_refuses: 'budgets.top_up',
  budget_spent: 'keys.update',
  issuer_bundle_missing: 'issuers.import',
  issuer_bundle_signer_removed: 'issuers.update',
  issuer_ca_expires: 'issuers.update',
  issuer_fetch_failed: 'issuers.refresh',
  issuer_keys_expire: 'issuers.update',
  issuer_keys_idle: 'issuers.refresh',
  issuer_keys_missing: 'issuers.refresh',
  issuer_keys_unusable: 'issuers.refresh',
  organization_not_entitled: 'organizations.plan',
  policy_issuer_deleted: 'policies.delete',
  policy_key_deleted: 'policies.update',
  policy_key_disabled: 'keys.enable',
  policy_key_expired: 'keys.update',
  policy_never_issued: 'policies.check',
  upstream_failing: 'upstreams.check',
  upstream_probe_failing: 'upstreams.check',
  upstream_resting: 'upstreams.check',
  webhook_failing: 'webhooks.test',
}

export function finding(about: FindingText, names: readonly string[] = []): Finding {
  const operation = remedies[about.code] ?? null
  return { ...about, operation, names: names.slice(0, findingNamesMax), count: Math.max(names.length, 1) }
}

/** Names for a sentence: `"a", "b" and 3 more`. */
export function listNames(names: readonly string[]): string {
  const shown = names.slice(0, sentenceNamesMax).map((name) => JSON.stringify(name))
  const more = names.length - shown.length
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ')
}

/** The most urgent first, then by area. */
export function inOrder(findings: readonly Finding[]): Finding[] {
  const rank = ({ level, area }: Finding) => findingLevels.indexOf(level) * 100 + findingAreas.indexOf(area)
  return findings.toSorted((one, other) => rank(one) - rank(other))
}

const [day, hour, minute] = [24 * 60 * 60, 60 * 60, 60]

/** A duration in its largest fitting unit, such as `3 days`. */
export function durationText(seconds: number): string {
  const size = Math.abs(seconds)
  const units: [length: number, name: string][] = [
    [2 * day, 'day'],
    [2 * hour, 'hour'],
    [2 * minute, 'minute'],
  ]
  const [least = 2, name = 'second'] = units.find(([from]) => size >= from) ?? []
  const count = Math.round(size / (least / 2))
  return `${count} ${name}${count === 1 ? '' : 's'}`
}

/** In UTC, such as `2027-01-31T00:00Z`. */
export function minuteText(time: number): string {
  return `${new Date(time).toISOString().slice(0, 16)}Z`
}

export function dayText(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}
