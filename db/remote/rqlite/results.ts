// What rqlite responds: rows as lists of values, and errors as texts without codes.

import { setImmediate } from 'node:timers/promises'
import { type InValue, LibsqlError, type ResultSet, type Row } from '@libsql/core/api'
import { asUnreachable } from '../server-errors.ts'

/** One entry of `results`. Members without a value are left out. */
type Entry = {
  error?: string
  columns?: string[]
  types?: string[]
  values?: unknown[][]
  rows_affected?: number
  last_insert_id?: number
}

/** `error` is about the request as a whole, of which nobody can say whether it was carried out. */
export type ResponseBody = { results: Entry[] } | { error: string }

const unmeasuredBytesMax = 64 * 1024

/** @throws SyntaxError for anything but a response of rqlite */
export async function parseResponse(body: Uint8Array): Promise<ResponseBody> {
  const json: unknown = JSON.parse(new TextDecoder().decode(body))
  if (body.length > unmeasuredBytesMax) await setImmediate()
  const { results, error } = (typeof json === 'object' && json !== null ? json : {}) as Record<string, unknown>
  if (typeof error === 'string' && error !== '') return { error }
  if (!Array.isArray(results) || !results.every(isEntry)) throw new SyntaxError('The response has no results')
  return { results }
}

const isOptional = (value: unknown, isRight: (value: unknown) => boolean) => value === undefined || isRight(value)

function isEntry(entry: unknown): entry is Entry {
  if (typeof entry !== 'object' || entry === null) return false
  const { error, columns, values, rows_affected: affected } = entry as Record<string, unknown>
  const width = Array.isArray(columns) ? columns.length : 0
  const isRow = (row: unknown) => Array.isArray(row) && row.length === width
  return (
    isOptional(error, (value) => typeof value === 'string') &&
    isOptional(columns, (value) => Array.isArray(value) && value.every((name) => typeof name === 'string')) &&
    isOptional(values, (value) => Array.isArray(value) && value.every(isRow)) &&
    isOptional(affected, (value) => typeof value === 'number')
  )
}

/** Errors that one replica can have while the others have committed, and those of a statement that did not end. */
const unproven =
  /disk is full|disk I\/O|is locked|out of memory|image is malformed|interrupt|time(d )?out|unable to open|readonly|context/i

/**
 * The error of a statement. Those that every replica reports alike prove that nothing was committed.
 */
export function statementError(said: string): LibsqlError {
  if (unproven.test(said)) return asUnreachable(new LibsqlError(said, 'SERVER_ERROR'))
  return new LibsqlError(said, codeOf(said))
}

function codeOf(said: string): string {
  if (/constraint failed/.test(said)) return 'SQLITE_CONSTRAINT'
  return /too big/.test(said) ? 'SQLITE_TOOBIG' : 'SQLITE_ERROR'
}

/** The same as the client of libSQL returns: values by name, and by index where nothing enumerates them. */
export function toResultSet({
  columns = [],
  types = [],
  values = [],
  rows_affected,
  last_insert_id,
}: Entry): ResultSet {
  const rows = values.map((row) => toRow(columns, row))
  return {
    columns,
    columnTypes: types,
    rows,
    rowsAffected: rows_affected ?? 0,
    lastInsertRowid: last_insert_id === undefined ? undefined : BigInt(last_insert_id),
    toJSON: () => ({ columns, rows: values }),
  }
}

const valuesOf = Symbol('values')
type HiddenRow = { [valuesOf]: InValue[] }

/** What rows inherit: as many getters as a result had columns until now. */
const byIndex: object = Object.defineProperty({}, 'length', {
  get(this: HiddenRow) {
    return this[valuesOf].length
  },
})
let indexes = 0

function toRow(columns: readonly string[], values: unknown[]): Row {
  for (; indexes < values.length; indexes++) defineIndex(indexes)
  const row = Object.create(byIndex) as Record<string | symbol, unknown>
  const converted = values.map(toValue)
  for (const [index, name] of columns.entries()) {
    if (!(name in byIndex)) row[name] = converted[index]
    // A number is the position of a value, also where a column is named so, as in `select 1`.
    else if (!(Number(name) < values.length)) define(row, name, converted[index])
  }
  Object.defineProperty(row, valuesOf, { value: converted })
  return row as unknown as Row
}

function define(row: object, name: string, value: unknown): void {
  Object.defineProperty(row, name, { value, enumerable: true, writable: true, configurable: true })
}

function defineIndex(index: number): void {
  Object.defineProperty(byIndex, index, {
    get(this: HiddenRow) {
      return this[valuesOf][index]
    },
  })
}

/** A BLOB is a list of bytes. */
function toValue(value: unknown): unknown {
  if (Array.isArray(value)) return new Uint8Array(value as number[]).buffer
  return typeof value === 'boolean' ? Number(value) : value
}
