// Two values for every field that can be set, by kind: what it has at first, and after a change.
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Field, Fields } from '../../../src/admin/kinds/fields.ts'
import type { Kind } from '../../../src/admin/kinds/kinds.ts'
import { policyFields } from '../../../src/admin/kinds/policy.ts'

export type Samples = Readonly<Record<string, readonly [first: unknown, second: unknown]>>

/** A kind as its table says, and what the tests need beside it. */
export type Walk = {
  kind: Kind
  /** The name of one, in operations. */
  one: string
  create: string
  /** The path of HTTP; without it, the operations are run. */
  path?: string
  fields: Fields
  samples: Samples
  /** Arguments of the fields that no option of their own sets. */
  more?: (values: Readonly<Record<string, unknown>>) => string[]
}

const policies: Walk = {
  kind: 'policies',
  one: 'policy',
  create: 'create',
  path: '/workload-identity/policies',
  fields: policyFields,
  samples: {
    issuer: ['idp', 'other'],
    key: ['target', 'spare'],
    audience: ['llm', 'gpu'],
    subject: ['workload', 'job'],
    condition: ['claims.team == "a"', 'claims.team == "b"'],
    required_scope: ['deploy', 'call'],
    required_token_type: ['id', 'access'],
    enabled: [true, false],
    replay_protection: [true, false],
    allowed_models: [
      ['meta/*', 'a'],
      ['b', 'a'],
    ],
    allowed_presets: [['support'], ['team*', 'a']],
    max_lifetime_seconds: [60, 120],
    tests: [
      [{ name: 'another subject', claims: { sub: 'x' }, expect: 'subject_mismatch' }],
      [{ name: 'a third subject', claims: { sub: 'y' }, expect: 'subject_mismatch' }],
    ],
    lint_exceptions: [[{ rule: 'dead', because: 'for now' }], [{ rule: 'vacuous', because: 'a demonstration' }]],
  },
  more: ({ lint_exceptions }) => {
    const [exception] = (lint_exceptions ?? []) as { rule: string; because: string }[]
    return exception === undefined ? [] : ['--because', exception.because]
  },
}

export const walks: readonly Walk[] = [policies]

/** What can be set of a kind beside its name. */
export const settableIn = ({ fields }: Walk) =>
  Object.entries(fields).filter(([name, { shape }]) => shape !== undefined && name !== 'name')

/** The values of the fields that may be sent there. */
export function valuesFor(walk: Walk, place: 'create' | 'change' | 'entry', at: 0 | 1): Record<string, unknown> {
  const sent = settableIn(walk).filter(([, field]) => field[place] !== false)
  return Object.fromEntries(sent.map(([name]) => [name, walk.samples[name]?.[at]]))
}

/** The arguments that set these values. */
export function argumentsFor({ fields, more }: Walk, values: Readonly<Record<string, unknown>>, folder: string) {
  const own = Object.entries(values).flatMap(([name, value]) => argumentOf(fields[name], value, join(folder, name)))
  return [...own, ...(more?.(values) ?? [])]
}

function argumentOf(field: Field | undefined, value: unknown, path: string): string[] {
  const { option, form } = field?.flag ?? {}
  const [long = '', ...placeholder] = option?.split(' ') ?? []
  if (option === undefined) return []
  if (value === null) return [`--no-${long.slice(2)}`]
  if (placeholder.length === 0) return [value === true ? long : `--no-${long.slice(2)}`]
  if (form === 'json-file' || form === 'text-file') {
    rmSync(path, { force: true })
    writeFileSync(path, typeof value === 'string' ? value : JSON.stringify(value))
    return [long, path]
  }
  if (form === 'yes-no') return [long, value === true ? 'yes' : 'no']
  if (form === 'duration') return [long, `${value}s`]
  if (Array.isArray(value)) return [long, ...value.map((each) => (typeof each === 'object' ? each.rule : String(each)))]
  return [long, String(value)]
}
