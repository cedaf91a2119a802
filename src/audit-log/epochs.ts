// Epochs: the names under which a database signs its log. A database that went back to an older state would sign an old size again with
// other contents, which proves a forgery to every reader. So it begins a new epoch, and its first new entry says what was lost.
import { randomBytes } from 'node:crypto'
import type { Orm } from '../../db/file/open.ts'
import {
  findCheckpoint,
  insertAuditKey,
  insertLogEpoch,
  listAuditKeys,
  listLogEpochs,
  readInstallationId,
  readLogEpoch,
} from '../../db/tables/audit-checkpoints.ts'
import { readLogHead } from '../../db/tables/audit-log.ts'
import { firstEntryIn } from '../../db/tables/log-pruning.ts'
import { insertLogRecord } from '../../db/tables/log-records.ts'
import type { Statement } from '../../db/write/rows.ts'
import { createAuditKey, currentAuditKey, verifierOf } from './audit-key.ts'
import { parseCheckpoint, type SignedCheckpoint } from './transparency/checkpoint.ts'
import { isSameHash } from './transparency/merkle.ts'
import { tileWidth } from './transparency/tiles.ts'
import { rootOf } from './tree.ts'

export type Epoch = { number: number; name: string; origin: string }

export function originOf(installationId: string, epoch: string): string {
  return `latchkey/${installationId}/${epoch}`
}

/** The installation and the epoch in the name of a log; undefined for a name that we do not give. */
export function parseOrigin(origin: string): { installationId: string; epoch: string } | undefined {
  const [, installationId, epoch] = /^latchkey\/([0-9a-f]+)\/([0-9]{8}-[0-9a-f]{8})$/.exec(origin) ?? []
  return installationId === undefined || epoch === undefined ? undefined : { installationId, epoch }
}

/** Why the epoch of a database is over: what a checkpoint that it signed has, and the database does not. */
export type Setback = { checkpoint: SignedCheckpoint; text: string; entriesGone: number; isDifferent: boolean }

export async function readEpoch(orm: Orm): Promise<Epoch | undefined> {
  const epoch = await readLogEpoch(orm)
  return epoch === undefined ? undefined : { ...epoch, origin: originOf(await readInstallationId(orm), epoch.name) }
}

/**
 * Compares the database with a checkpoint that was kept elsewhere.
 * @returns undefined if the database has everything that the checkpoint has; `foreign` for one of another installation or no checkpoint
 */
export async function compareWith(
  orm: Orm,
  text: string,
  isKnown: (epoch: string) => boolean,
): Promise<Setback | 'foreign' | undefined> {
  const checkpoint = parseCheckpoint(text)
  const named = checkpoint && parseOrigin(checkpoint.origin)
  if (checkpoint === undefined || named?.installationId !== (await readInstallationId(orm))) return 'foreign'
  const { size } = await readLogHead(orm)
  const entriesGone = Math.max(0, checkpoint.size - size)
  const setback = { checkpoint, text, entriesGone, isDifferent: false }
  // The database knows no epoch that it began after it was copied.
  if (entriesGone > 0 || !isKnown(named.epoch)) return setback
  const root = await rootAt(orm, named.epoch, checkpoint.size)
  return root !== undefined && isSameHash(root, checkpoint.root) ? undefined : { ...setback, isDifferent: true }
}

/** The root that the leaves have, or, of a size among leaves that were pruned, the one that was signed. */
async function rootAt(orm: Orm, epoch: string, size: number): Promise<Uint8Array | undefined> {
  const first = size - (size % tileWidth)
  const hasLeaves = first === size || (await firstEntryIn(orm, { first, end: size })) === first
  if (hasLeaves) return rootOf(orm, size)
  return parseCheckpoint((await findCheckpoint(orm, epoch, size))?.note ?? '')?.root
}

/** The statements that begin an epoch: the first, or one after a setback. Another node that does the same makes them fail. */
export async function beginEpoch(
  { orm, now }: { orm: Orm; now: () => number },
  masterKey: CryptoKey,
  /** The epoch in force when this was decided. */
  last: Epoch | undefined,
  setback: Pick<Setback, 'text' | 'entriesGone' | 'isDifferent'> | undefined,
): Promise<{ epoch: Epoch; statements: Statement[] }> {
  const at = now()
  const day = new Date(at).toISOString().slice(0, 10).replaceAll('-', '')
  const name = `${day}-${randomBytes(4).toString('hex')}`
  const over = setback === undefined ? undefined : parseOrigin(parseCheckpoint(setback.text)?.origin ?? '')?.epoch
  const isUnknown = over !== undefined && !(await listLogEpochs(orm)).includes(over)
  const number = (last?.number ?? 0) + 1
  const epoch = { number: number + (isUnknown ? 1 : 0), name, origin: originOf(await readInstallationId(orm), name) }
  const known = currentAuditKey(await listAuditKeys(orm))
  const key = known ?? (await createAuditKey(masterKey, at))
  const verifierKey = verifierOf(key, epoch.origin).text
  const statements = [
    // The next start must not take its checkpoint for news.
    ...(isUnknown ? [insertLogEpoch(orm, { number, name: over, beganAt: at })] : []),
    insertLogEpoch(orm, { number: epoch.number, name, beganAt: at }),
    ...(known === undefined ? [insertAuditKey(orm, key)] : []),
    ...(setback === undefined
      ? []
      : [
          insertLogRecord(orm, 'restore', at, {
            last_checkpoint: setback.text,
            entries_gone: setback.entriesGone,
            different: setback.isDifferent,
          }),
        ]),
    insertLogRecord(orm, 'key', at, {
      event: setback === undefined ? 'created' : 'new_epoch',
      verifier_key: verifierKey,
    }),
  ]
  return { epoch, statements }
}
