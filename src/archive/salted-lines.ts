// The lines of an archive, each exchange with its place in the audit log and the salt of its leaf: anyone who has the file can prove its rows,
// and when the file is destroyed, nobody can test any more what the log commits to.
import type { Orm } from '../../db/file/open.ts'
import { lineOf } from '../../db/read/log-rows.ts'
import type { OnProgress } from '../../db/read/slices.ts'
import { exchangeEntryKind } from '../../db/schema/log-schema.ts'
import { type ArchivedRows, archivedLines } from '../../db/tables/archives.ts'
import { type LogEntry, leavesSince } from '../../db/tables/audit-log.ts'
import { type } from '../values/shape.ts'

const leafMember = 'log_leaf'
export const saltMember = 'log_salt'
const commitmentMember = 'log_commitment'

/** A row that was erased has its commitment instead of the salt. Rows that the log does not cover have neither. */
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
      salted.push(`${line.slice(0, -1)}${entry?.ref === id ? membersOf(entry) : ''}}\n`)
    }
    yield { text: salted.join(''), lines }
  }
  await entries.return(undefined)
}

/** The id is the first column. */
function idOf(line: string): number {
  return Number(/^\{"id":([0-9]+),/.exec(line)?.[1] ?? 0)
}

function membersOf({ leaf, salt, commitment }: LogEntry): string {
  const [member, bytes] = salt === null ? [commitmentMember, commitment] : [saltMember, salt]
  return `,"${leafMember}":${leaf},"${member}":"${bytes.toString('hex')}"`
}

const archivedShape = type({
  id: 'number.integer',
  at: 'number.integer',
  log_leaf: 'number.integer >= 0',
  'log_salt?': /^[0-9a-f]{32}$/,
  'log_commitment?': /^[0-9a-f]{64}$/,
})

/** A line of an archive that the log covers. `line`: the text that the leaf commits to. One that was erased has no salt. */
export type SaltedLine = { id: number; leaf: number; at: number; line: string } & (
  | { salt: Buffer; commitment: undefined }
  | { salt: undefined; commitment: Buffer }
)

/** What a line of an archive says of its leaf; undefined for one without. */
export function readSaltedLine(text: string): SaltedLine | undefined {
  const row = JSON.parse(text) as Record<string, unknown>
  const members = archivedShape(row)
  if (members instanceof type.errors) return undefined
  const { id, at, log_leaf: leaf, log_salt: salt, log_commitment: commitment } = members
  const common = { id, leaf, at, line: lineOf('exchanges', row) }
  if (salt !== undefined) return { ...common, salt: Buffer.from(salt, 'hex'), commitment: undefined }
  return commitment === undefined ? undefined : { ...common, salt, commitment: Buffer.from(commitment, 'hex') }
}
