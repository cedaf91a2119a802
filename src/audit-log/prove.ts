// Builds the proof of a row from the database.
import type { Orm } from '../../db/file/open.ts'
import { readLoggedRows } from '../../db/read/log-rows.ts'
import type { LogSource } from '../../db/schema/log-schema.ts'
import { findLogEntry, type LogEntry } from '../../db/tables/audit-log.ts'
import { codesOf, entryText } from './entry.ts'
import { formatRowProof } from './row-proof.ts'
import { inclusionParts } from './transparency/merkle.ts'
import { hashesOf } from './tree.ts'

export type SignedSize = { size: number; note: string }
/** `proof` is undefined if the row was erased: nothing can prove what it was. */
export type BuiltProof = { index: number; line: string; proof: string | undefined }

/** The proof of a row under a checkpoint; undefined for one that is gone or that the checkpoint does not cover. */
export async function proveRow(
  orm: Orm,
  signed: SignedSize,
  source: LogSource,
  id: number,
): Promise<BuiltProof | undefined> {
  const entry = await findLogEntry(orm, codesOf(source), id)
  const [row] = await readLoggedRows(orm, source, { after: id - 1, last: id, most: 1 })
  if (entry === undefined || row === undefined || entry.leaf >= signed.size) return undefined
  if (entry.salt === null) return { index: entry.leaf, line: row.line, proof: undefined }
  return proveLine(orm, signed, entry, { salt: entry.salt, line: row.line })
}

/** The proof of a leaf that a line opens with a salt. Whether it does is for the caller to know. */
export async function proveLine(
  orm: Orm,
  { size, note }: SignedSize,
  entry: LogEntry,
  { salt, line }: { salt: Buffer; line: string },
): Promise<BuiltProof & { proof: string }> {
  const hashes = await hashesOf(orm, inclusionParts(entry.leaf, size))
  const row = { entry: entryText(entry), salt: salt.toString('hex'), row: line }
  return { index: entry.leaf, line, proof: formatRowProof({ index: entry.leaf, hashes, checkpoint: note, row }) }
}
