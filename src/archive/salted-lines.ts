// The lines of an archive, each exchange with its place in the audit log and the salt of its leaf: anyone who has the file can prove its rows,
// and when the file is destroyed, nobody can test any more what the log commits to.
import type { Orm } from '../../db/file/open.ts'
import { lineOf } from '../../db/read/log-rows.ts'
import type { OnProgress } from '../../db/read/slices.ts'
import { exchangeEntryKind } from '../../db/schema/log-schema.ts'
import { type ArchivedRows, archivedLines } from '../../db/tables/archives.ts'
import { type LogEntry, leavesSince } from '../../db/tables/audit-log.ts'
import { type } from '../values/shape.ts'

export const leafMember = 'log_leaf'
export const saltMember = 'log_salt'

/** Rows that the log does not cover, or that were erased, have neither. */
export async function* saltedLines(
  orm: Orm,
  rows: ArchivedRows,
  onProgress?: OnProgress,
): AsyncGenerator<{ text: string; lines: number }> {
  if (rows.kind !== 'exchanges') {
    yield* archivedLines(orm, rows, onProgress)
    return
  }
  const entries = leavesSince(orm, [exchangeEntryKind], rows.firstRowId)
  let entry: LogEntry | undefined = (await entries.next()).value ?? undefined
  for await (const { text, lines } of archivedLines(orm, rows, onProgress)) {
    const salted: string[] = []
    for (const line of text.slice(0, -1).split('\n')) {
      const id = idOf(line)
      while (entry !== undefined && entry.ref < id) entry = (await entries.next()).value ?? undefined
      const salt = entry?.ref === id ? entry.salt : null
      const members = salt === null ? '' : `,"${leafMember}":${entry?.leaf},"${saltMember}":"${salt.toString('hex')}"`
      salted.push(`${line.slice(0, -1)}${members}}\n`)
    }
    yield { text: salted.join(''), lines }
  }
  await entries.return(undefined)
}

/** The id is the first column. */
function idOf(line: string): number {
  return Number(/^\{"id":([0-9]+),/.exec(line)?.[1] ?? 0)
}

const archivedShape = type({ [leafMember]: 'number.integer >= 0', [saltMember]: /^[0-9a-f]{32}$/ })

/** What a line of an archive says of its leaf; undefined for one without. `line` is the text that the leaf commits to. */
export function readSaltedLine(text: string): { leaf: number; salt: Buffer; line: string } | undefined {
  const row = JSON.parse(text) as Record<string, unknown>
  const members = archivedShape(row)
  if (members instanceof type.errors) return undefined
  return { leaf: members[leafMember], salt: Buffer.from(members[saltMember], 'hex'), line: lineOf('exchanges', row) }
}
