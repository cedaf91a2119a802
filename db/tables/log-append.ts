// Appends leaves to the transparent audit log, in one commit with the hashes that follow from them and the rows that they cover.
import type { Statement } from '../write/rows.ts'
import { type LogHead, type LogNode, type NewLogEntry, statement } from './audit-log.ts'

/**
 * Appends leaves and what follows from them. The commit fails with an error that is `isOvertaken` if another node has appended leaves
 * since they were planned. `before`: up to which row each source had leaves then.
 */
export function appendLog(
  entries: readonly NewLogEntry[],
  nodes: readonly LogNode[],
  { before, after }: { before: LogHead['positions']; after: Partial<LogHead['positions']> },
): Statement[] {
  const hashes = nodes.map(({ level, number, hash }) => [level, number, hex(hash)])
  return [
    rejectMoved(before),
    ...runsOf(entries).map(insertRun),
    ...(nodes.length === 0
      ? []
      : [
          statement(
            'insert into log_nodes (level, number, hash) select value ->> 0, value ->> 1, unhex(value ->> 2) from json_each(?)',
            JSON.stringify(hashes),
          ),
        ]),
    statement(
      `insert into log_positions (source, ref) select key, value from json_each(?) where true
        on conflict (source) do update set ref = excluded.ref`,
      JSON.stringify(after),
    ),
  ]
}

/** Inserts a leaf that there is already if rows have leaves that they did not have: no row ever gets two. */
function rejectMoved(before: LogHead['positions']): Statement {
  return statement(
    `insert into log_entries (leaf, kind, ref, at, commitment)
      select (select coalesce(max(leaf), 0) from log_entries), 0, 0, 0, zeroblob(0)
      where exists (
        select 1 from json_each(?) where value <> coalesce((select ref from log_positions where source = key), 0))`,
    JSON.stringify(before),
  )
}

/** Splits entries where the next one is not of the next leaf and the next row. */
function runsOf(entries: readonly NewLogEntry[]): NewLogEntry[][] {
  const runs: NewLogEntry[][] = []
  for (const entry of entries) {
    const run = runs.at(-1)
    const last = run?.at(-1)
    if (run === undefined || last?.leaf !== entry.leaf - 1 || last.ref !== entry.ref - 1) runs.push([entry])
    else run.push(entry)
  }
  return runs
}

const [saltBytes, leafBytes] = [16, 48]
/** Kinds are below this. */
const kindsMax = 32

/**
 * Inserts entries of consecutive leaves and rows. All salts and commitments are one value, and a number has the kind and the time since the
 * first: a fifth of what it takes to parse them as text.
 */
function insertRun(run: NewLogEntry[]): Statement {
  const [first] = run
  const [leaf, ref, at] = [first?.leaf ?? 0, first?.ref ?? 0, first?.at ?? 0]
  const bytes = Buffer.alloc(leafBytes * run.length)
  for (const [index, { salt, commitment }] of run.entries()) {
    bytes.set(salt, index * leafBytes)
    bytes.set(commitment, index * leafBytes + saltBytes)
  }
  return statement(
    `insert into log_entries (leaf, kind, ref, at, salt, commitment)
      select ?1 + key, value & ${kindsMax - 1}, ?2 + key, ?3 + (value - (value & ${kindsMax - 1})) / ${kindsMax},
        substr(?4, key * ${leafBytes} + 1, ${saltBytes}), substr(?4, key * ${leafBytes} + ${saltBytes + 1}, ${leafBytes - saltBytes})
      from json_each(?5)`,
    ...[leaf, ref, at, bytes, JSON.stringify(run.map((entry) => (entry.at - at) * kindsMax + entry.kind))],
  )
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')
}
