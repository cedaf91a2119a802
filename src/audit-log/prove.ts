// Builds the proof of a row from the database, or from the archive that has it.
import type { Orm } from '../../db/file/open.ts'
import { readLoggedRows } from '../../db/read/log-rows.ts'
import { exchangeEntryKind, type LogSource } from '../../db/schema/log-schema.ts'
import { findLogEntry, type LogEntry, readLogNodes } from '../../db/tables/audit-log.ts'
import type { FoundLine } from '../archive/find-exchange.ts'
import { commitmentOf, findArchivedTile } from './archived-tile.ts'
import type { DayPlace } from './day-place.ts'
import { codesOf, entryText } from './entry.ts'
import { formatRowProof } from './row-proof.ts'
import { inclusionParts, isSameHash, perfectHash } from './transparency/merkle.ts'
import { tileWidth } from './transparency/tiles.ts'
import { hashesOf, type KnownTile, readEntries } from './tree.ts'

export type SignedSize = { size: number; note: string }
/** `proof` is undefined if the row was erased: nothing can prove what it was. */
export type BuiltProof = { index: number; line: string; proof: string | undefined }

/**
 * The proof of a row under a checkpoint; undefined for one that is gone or that the checkpoint does not cover. `request`: a request of the day of
 * which the row is the record.
 */
export async function proveRow(
  orm: Orm,
  signed: SignedSize,
  source: LogSource,
  id: number,
  request?: DayPlace,
): Promise<BuiltProof | undefined> {
  const entry = await findLogEntry(orm, codesOf(source), id)
  const [row] = await readLoggedRows(orm, source, { after: id - 1, last: id, most: 1 })
  if (entry === undefined || row === undefined || entry.leaf >= signed.size) return undefined
  if (entry.salt === null) return { index: entry.leaf, line: row.line, proof: undefined }
  return proveLine(orm, signed, entry, { salt: entry.salt, line: row.line, request })
}

/** Why an archive does not prove an exchange: its salt was erased, or the log has something else. */
export type ArchiveProblem = 'erased' | 'different'

/**
 * The proof of an exchange in an archive, which also has the other leaves of its tile if their entries were pruned.
 * @throws Error of the file system or of the compression
 */
export async function proveArchived(
  orm: Orm,
  signed: SignedSize,
  { path, line }: FoundLine,
): Promise<(BuiltProof & { proof: string }) | ArchiveProblem> {
  const { leaf, at, salt } = line
  if (salt === undefined) return 'erased'
  if (leaf >= signed.size) return 'different'
  const said = { leaf, kind: exchangeEntryKind, ref: line.id, at, commitment: commitmentOf(line) }
  const [entry] = await readEntries(orm, leaf, leaf + 1)
  if (entry !== undefined)
    return entry.at === at && entry.commitment.equals(said.commitment)
      ? proveLine(orm, signed, said, { salt, line: line.line })
      : 'different'
  const index = Math.floor(leaf / tileWidth)
  const tile = await findArchivedTile(path, index)
  const [stored] = await readLogNodes(orm, 1, index, index + 1)
  if (tile === undefined || stored === undefined || !isSameHash(stored, perfectHash(tile.leaves))) return 'different'
  return proveLine(orm, signed, said, { salt, line: line.line }, tile)
}

type ProvenLeaf = Pick<LogEntry, 'leaf' | 'kind' | 'at' | 'commitment'>

/** The proof of a leaf that a line opens with a salt. Whether it does is for the caller to know. */
async function proveLine(
  orm: Orm,
  { size, note }: SignedSize,
  entry: ProvenLeaf,
  { salt, line, request }: { salt: Buffer; line: string; request?: DayPlace | undefined },
  tile?: KnownTile,
): Promise<BuiltProof & { proof: string }> {
  const hashes = await hashesOf(orm, inclusionParts(entry.leaf, size), tile)
  const row = { entry: entryText(entry), salt: salt.toString('hex'), row: line, request }
  return { index: entry.leaf, line, proof: formatRowProof({ index: entry.leaf, hashes, checkpoint: note, row }) }
}
