// What a managed kind consists of: a table of its fields, and what follows from the table. It knows no kind.

import { nanodollarsPerDollar } from '../../limits.ts'
import { isSame } from '../../values/same-json.ts'
import type { type } from '../../values/shape.ts'

/** What looks at a policy when it is edited: the linter, the tests that are stored with it, and a back-test. */
export type Judge = 'linter' | 'tests' | 'backtest'
export const everyJudge = ['linter', 'tests', 'backtest'] as const

/** An option of commands. `form` says how its text is read; by default as it is. `no`: the help of the option that removes the value. */
export type Flag = {
  option: string
  says: string
  choices?: readonly string[]
  form?:
    | 'duration'
    | 'number'
    | 'numbers'
    | 'money'
    | 'future'
    | 'json-file'
    | 'text-file'
    | 'yes-no'
    | 'pairs'
    | 'windows'
    | 'overrides'
  no?: string
}

/** How a column differs from what is sent and shown. */
export type StoredForm = { toColumn: (value: unknown) => unknown; toShown: (value: unknown) => unknown }

export type Field<Column = string> = {
  /** What may be sent, with null where it removes the value. A field without it can only be read. */
  shape?: type.Any
  /** A new one must have it. */
  required?: true
  /** Where it may not be sent. `entry` is what a configuration document has, where that is another shape. */
  create?: false
  change?: false
  entry?: false | type.Any
  /** What it means to leave it out; null by default. */
  default?: unknown
  column?: Column
  /** The kind itself finds what the column has, such as the id of another row. */
  isResolved?: true
  stored?: StoredForm
  /** A list whose order means nothing. */
  isSet?: true
  /** The form in which documents are compared, and without which value they leave it out. */
  normal?: (value: unknown) => unknown
  /** Plans show only that it changes. */
  isSecret?: true
  /** A document may take it from a file or the environment. */
  isSourced?: true
  /** What responses have. */
  shown?: unknown
  /** Who looks again after an edit of it. `why`: the reason, unless that is everybody. */
  decides?: readonly Judge[]
  why?: string
  flag?: Flag
  /** Its name where a command shows one thing; with `?`, a line without a value is left out. */
  line?: string
  /** What that line has without a value. */
  none?: string
}

/** `Row` has the columns. */
export type Fields<Row = Record<string, unknown>> = Readonly<Record<string, Field<keyof Row & string>>>
type Place = 'create' | 'change' | 'entry'

/** The definition of an input: the fields that may be sent there. Only a change requires none. */
type InputDefinition<All, At extends Place> = {
  [Name in keyof All & string as All[Name] extends { [Where in At]: false }
    ? never
    : All[Name] extends { shape: unknown }
      ? All[Name] extends { required: true }
        ? At extends 'change'
          ? `${Name}?`
          : Name
        : `${Name}?`
      : never]: ShapeAt<All[Name], At>
}
type ShapeAt<Of, At extends Place> = At extends 'entry'
  ? Of extends { entry: infer Shape }
    ? Shape
    : ShapeOf<Of>
  : ShapeOf<Of>
type ShapeOf<Of> = Of extends { shape: infer Shape } ? Shape : never

export function given<const All extends Fields, At extends Place>(fields: All, at: At): InputDefinition<All, At> {
  const entries = Object.entries(fields).flatMap(([name, { shape, required, [at]: other }]) => {
    if (shape === undefined || other === false) return []
    return [[required === true && at !== 'change' ? name : `${name}?`, other ?? shape]]
  })
  return Object.fromEntries(entries) as InputDefinition<All, At>
}

type DecidingFields<All, By extends Judge> = {
  [Name in keyof All as All[Name] extends { decides: readonly (infer Each)[] }
    ? By extends Each
      ? Name
      : never
    : never]: All[Name]
}

/** The fields that a judge looks at. */
export function judgedBy<const All extends Fields, By extends Judge>(judge: By, fields: All): DecidingFields<All, By> {
  const entries = Object.entries(fields).filter(([, { decides = [] }]) => decides.includes(judge))
  return Object.fromEntries(entries) as DecidingFields<All, By>
}

type ResponseDefinition<All> = {
  [Name in keyof All as All[Name] extends { shown: unknown } ? Name : never]: All[Name] extends { shown: infer Of }
    ? Of
    : never
}

/** The definition of a response. */
export function responseOf<const All extends Fields>(fields: All): ResponseDefinition<All> {
  const entries = Object.entries(fields).filter(([, { shown }]) => shown !== undefined)
  return Object.fromEntries(entries.map(([name, { shown }]) => [name, shown])) as ResponseDefinition<All>
}

/** Rows are many, and tables few. */
const known = new WeakMap<Fields, [string, Field][]>()

function entriesIn(fields: Fields): [string, Field][] {
  const entries = known.get(fields) ?? Object.entries(fields)
  known.set(fields, entries)
  return entries
}

/** Those of a response, in the order of the table. `derived` are the fields that no column has. */
export function showFields<Row>(fields: Fields, row: Row, derived: Readonly<Record<string, unknown>>): object {
  const response: Record<string, unknown> = {}
  for (const [name, field] of entriesIn(fields))
    if (field.shown !== undefined) response[name] = name in derived ? derived[name] : columnValue(field, row)
  return response
}

function columnValue({ column = '', stored }: Field, row: unknown): unknown {
  const value = (row as Record<string, unknown>)[column]
  return stored === undefined || value === null ? value : stored.toShown(value)
}

/** The columns that an input sets. What it lacks stays, and so does what the kind resolves. */
export function columnsOf<Row>(fields: Fields, input: object): Partial<Row> {
  const sent = input as Record<string, unknown>
  const set = Object.entries(fields).flatMap(([name, { shape, column, isResolved, stored }]) => {
    const value = sent[name]
    if (shape === undefined || column === undefined || isResolved === true || value === undefined) return []
    return [[column, stored === undefined ? value : stored.toColumn(value)]]
  })
  return Object.fromEntries(set) as Partial<Row>
}

/** The same for a new row: what the input lacks has its default. */
export function newColumnsOf<Row>(fields: Fields, input: object): Partial<Row> {
  const sent = input as Record<string, unknown>
  const whole = Object.entries(fields).map(([name, field]) => [name, sent[name] ?? field.default ?? null])
  return columnsOf(fields, Object.fromEntries(whole) as object)
}

/** Whether nothing differs that a judge looks at. */
export function isSameTo<Row>(judge: Judge, fields: Fields, before: Row, after: Row): boolean {
  const columns = Object.values<Field>(judgedBy(judge, fields)).map(({ column = '' }) => column)
  const text = (row: Row) => JSON.stringify(columns.map((column) => (row as Record<string, unknown>)[column]))
  return text(before) === text(after)
}

/** The fields of a document that have something else than the default. Equal rows have equal entries. */
export function entryOf<Row>(
  fields: Fields,
  row: Row,
  derived: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const entry: Record<string, unknown> = {}
  for (const [name, field] of entriesIn(fields)) {
    if (field.shape === undefined || field.entry === false) continue
    const value = normalOf(field, name in derived ? derived[name] : columnValue(field, row))
    const isDefault = field.default !== undefined && isSame(value, field.default)
    if (value !== null && value !== undefined && !isDefault) entry[name] = value
  }
  return entry
}

function normalOf({ isSet, normal }: Field, value: unknown): unknown {
  if (value === null || value === undefined) return null
  if (isSet === true && Array.isArray(value)) return [...new Set(value)].toSorted()
  return normal === undefined ? value : normal(value)
}

/** Milliseconds, which are sent as a time and shown as ISO 8601. */
export const storedTime: StoredForm = {
  toColumn: (value) => (value instanceof Date ? value.getTime() : null),
  toShown: (value) => new Date(Number(value)).toISOString(),
}

/** Nanodollars, which are sent and shown in US dollars. */
export const storedMoney: StoredForm = {
  toColumn: (value) => (value === null ? null : Math.round(Number(value) * nanodollarsPerDollar)),
  toShown: (value) => Number(value) / nanodollarsPerDollar,
}
