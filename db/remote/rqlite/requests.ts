// Statements as rqlite takes them: JSON, and with the same effect on each replica, since each executes them itself.
import type { InStatement, InValue } from '@libsql/core/api'
import type { BoundStatement } from '../../write/rows.ts'

/** `[sql, ...args]`, as in the body of a request. */
type JsonStatement = [sql: string, ...args: unknown[]]

export function boundOf(statement: InStatement | [string, unknown?]): BoundStatement {
  if (typeof statement === 'string') return { sql: statement, args: [] }
  const { sql, args = [] } = Array.isArray(statement)
    ? { sql: statement[0], args: statement[1] as InValue[] }
    : statement
  if (!Array.isArray(args)) throw new TypeError('Statements have no named arguments')
  return { sql, args }
}

export function encode({ sql, args }: BoundStatement): JsonStatement {
  if (!args.some(isHexText)) return [sql, ...args.map(encodeValue)]
  // A text that looks like a BLOB literal would be taken for one.
  return [castTexts(sql, args.map(isHexText)), ...args.map((arg) => (isHexText(arg) ? bytesOf(arg) : encodeValue(arg)))]
}

function isHexText(value: InValue): value is string {
  return typeof value === 'string' && /^[\s\u0085]*x'/i.test(value)
}

/** Puts a cast around the placeholders of these arguments. Quoted texts and names stay as they are. */
function castTexts(sql: string, isCast: readonly boolean[]): string {
  let position = 0
  return sql.replaceAll(/'(?:[^']|'')*'|"(?:[^"]|"")*"|\?(\d*)/g, (found, number?: string) => {
    if (!found.startsWith('?')) return found
    position = number === undefined || number === '' ? position + 1 : Number(number)
    return isCast[position - 1] === true ? `cast(${found} as text)` : found
  })
}

function encodeValue(value: InValue): unknown {
  if (typeof value === 'boolean') return Number(value)
  // JSON would make null of it.
  if (typeof value === 'number' && !Number.isFinite(value)) throw new RangeError('A number is not finite')
  if (typeof value === 'bigint') {
    if (BigInt(Number(value)) !== value) throw new RangeError('An integer is beyond 2^53')
    return Number(value)
  }
  if (value instanceof ArrayBuffer) return [...new Uint8Array(value)]
  if (ArrayBuffer.isView(value)) return [...value]
  if (value instanceof Date) return value.valueOf()
  return value
}

function bytesOf(text: string): number[] {
  return [...Buffer.from(text)]
}

const clockCall = "unixepoch('subsec')"
const randomCall = /randomblob\((\d+)\)/g
/** What each replica would answer differently. */
const undetermined =
  /\b(random|randomblob|unixepoch|date|time|datetime|julianday|strftime|timediff)\s*\(|\bcurrent_(time|date)/i

/**
 * Replaces the time and random bytes by their values: `now` is the clock of the database, in milliseconds since 1970. The server
 * could do it too, but by the time zone of its machine, and only where its own parser understands the statement.
 * @throws TypeError for a statement that would differ between replicas
 */
export function determine(sql: string, now: number): string {
  const determined = sql
    .replaceAll(clockCall, (now / 1_000).toFixed(3))
    .replaceAll(randomCall, (_call, bytes: string) => {
      const random = crypto.getRandomValues(new Uint8Array(Number(bytes)))
      return `x'${Buffer.from(random).toString('hex')}'`
    })
  const call = undetermined.exec(determined.replaceAll(/'(?:[^']|'')*'/g, "''"))
  if (call !== null) throw new TypeError(`A commit calls ${call[0]}, which each replica would answer differently`)
  return determined
}
