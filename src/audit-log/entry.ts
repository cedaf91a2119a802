// What a leaf of the audit log says: the kind and time of a row, and a commitment to its text that only the salt opens. Anyone who holds an
// entry learns nothing of the row.
import { hash, randomFillSync } from 'node:crypto'
import type { LoggedRow } from '../../db/read/log-rows.ts'
import { exchangeEntryKind, type LogRecordKind, type LogSource } from '../../db/schema/log-schema.ts'
import type { LogEntry, NewLogEntry } from '../../db/tables/audit-log.ts'
import { hashLeafText } from './transparency/merkle.ts'

/** The kinds of entries by the code that the database has for each. A code stands for a kind and the version of its text, for good. */
const kinds = [
  { code: exchangeEntryKind, name: 'exchange', source: 'exchanges', version: 1 },
  { code: 2, name: 'change', source: 'changes', version: 1 },
  { code: 10, name: 'start', source: 'records', version: 1 },
  { code: 11, name: 'usage_day', source: 'records', version: 1 },
  { code: 12, name: 'key', source: 'records', version: 1 },
  { code: 13, name: 'restore', source: 'records', version: 1 },
  { code: 14, name: 'erasure', source: 'records', version: 1 },
  { code: 15, name: 'pruning', source: 'records', version: 1 },
] as const satisfies { code: number; name: LogRecordKind | 'exchange' | 'change'; source: LogSource; version: number }[]

const kindsByCode = new Map<number, (typeof kinds)[number]>(kinds.map((kind) => [kind.code, kind]))
const saltBytes = 16

/** The codes of the entries that cover rows of a source. */
export function codesOf(source: LogSource): number[] {
  return kinds.filter((kind) => kind.source === source).map(({ code }) => code)
}

export function kindOf({ kind }: Pick<LogEntry, 'kind'>): (typeof kinds)[number] | undefined {
  return kindsByCode.get(kind)
}

/** To allocate takes longer than to hash. */
const salted = Buffer.alloc(8 * 1024)

/** The SHA-256 of the salt and the line. */
export function commitTo(salt: Uint8Array, line: string): Buffer {
  // A character takes at most three bytes.
  if (salt.length + 3 * line.length > salted.length)
    return hash('sha256', Buffer.concat([salt, Buffer.from(line)]), 'buffer')
  salted.set(salt)
  return hash('sha256', salted.subarray(0, salt.length + salted.write(line, salt.length)), 'buffer')
}

/** A new entry for each row, with a new salt. */
export function entriesOf(source: LogSource, rows: readonly LoggedRow[], firstLeaf: number): NewLogEntry[] {
  const salts = randomFillSync(Buffer.alloc(saltBytes * rows.length))
  return rows.map(({ id, at, line }, index) => {
    const salt = salts.subarray(index * saltBytes, (index + 1) * saltBytes)
    return { leaf: firstLeaf + index, kind: codeOf(source, line), ref: id, at, salt, commitment: commitTo(salt, line) }
  })
}

function codeOf(source: LogSource, line: string): number {
  const name = source === 'records' ? (JSON.parse(line) as { kind: string }).kind : undefined
  const found = kinds.find((kind) => kind.source === source && (name === undefined || kind.name === name))
  if (found === undefined) throw new Error(`No kind of entry covers ${name}`)
  return found.code
}

/** The text that the tree holds. */
export function entryText(entry: Pick<LogEntry, 'kind' | 'at' | 'commitment'>): string {
  const kind = kindOf(entry)
  if (kind === undefined) throw new Error(`No kind of entry has the code ${entry.kind}`)
  const { version, name } = kind
  const at = new Date(entry.at).toISOString()
  return `{"v":${version},"kind":"${name}","at":"${at}","commit":"${entry.commitment.toString('hex')}"}`
}

export function leafHash(entry: Pick<LogEntry, 'kind' | 'at' | 'commitment'>): Uint8Array {
  return hashLeafText(entryText(entry))
}
