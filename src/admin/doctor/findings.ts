// What a finding is: something that an operator should know or act on, in a sentence, with what to do.
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
    names: 'string[]',
    count: 'number.integer',
  }).array(),
}).configure({ title: 'Findings' })

/** Names of a finding in JSON, and in its sentence. */
const findingNamesMax = 100
const sentenceNamesMax = 5

type FindingText = Pick<Finding, 'level' | 'area' | 'code' | 'message' | 'action'>

export function finding(about: FindingText, names: readonly string[] = []): Finding {
  return { ...about, names: names.slice(0, findingNamesMax), count: Math.max(names.length, 1) }
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

export function dayText(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}
