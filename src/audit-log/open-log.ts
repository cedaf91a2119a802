// Opens the log of a database: the epoch in force and the key that signs. A database that was restored, copied or went back to an older state
// gets a new epoch first.
import type { Database } from '../../db/file/open.ts'
import type { AuditKey } from '../../db/schema/log-schema.ts'
import {
  insertAuditKey,
  lastCheckpoint,
  listAuditKeys,
  listLogEpochs,
  retireAuditKeys,
} from '../../db/tables/audit-checkpoints.ts'
import { isOvertaken } from '../../db/tables/audit-log.ts'
import { insertLogRecord } from '../../db/tables/log-records.ts'
import { listSigningKeys } from '../../db/tables/signing-keys.ts'
import type { Writer } from '../../db/write/write.ts'
import type { Log } from '../observe/log.ts'
import { openMasterKey } from '../tokens/keyring.ts'
import type { MasterKeySource } from '../tokens/master-key.ts'
import { createAuditKey, currentAuditKey, openAuditKey, verifierOf } from './audit-key.ts'
import { beginEpoch, compareWith, type Epoch, parseOrigin, readEpoch, type Setback } from './epochs.ts'
import { readPublished, readText } from './folder.ts'
import type { AuditLogSettings } from './mode.ts'
import { parseCheckpoint } from './transparency/checkpoint.ts'
import type { SignerKey } from './transparency/note.ts'

export type AuditLogContext = {
  database: Database
  writer: Pick<Writer, 'write'>
  auditLog: AuditLogSettings
  masterKey: MasterKeySource
  now: () => number
  log: Log
}

/** Where the last checkpoint of a database file is kept outside of it; undefined for a server database. */
export function checkpointFileFor({ kind, path }: Pick<Database, 'kind' | 'path'>): string | undefined {
  return kind === 'file' ? `${path}.audit-checkpoint` : undefined
}

/** Opens the epoch in force and its key. Begins the first epoch, or a new one if the database was restored, copied or went back. */
export async function openLog(context: AuditLogContext): Promise<{ epoch: Epoch; signer: SignerKey }> {
  const { database, writer, masterKey: source, now, log } = context
  const { orm } = database
  const masterKey = await openMasterKey(source, await listSigningKeys(orm))
  const known = await readEpoch(orm)
  const setback = await findSetback(context, known)
  if (known === undefined || setback !== undefined) {
    const { epoch, statements } = await beginEpoch({ orm, now }, masterKey, known, setback)
    await writer.write(statements).catch((error: unknown) => {
      if (!isOvertaken(error)) throw error
    })
    if (setback !== undefined)
      log('warn', 'audit_log_epoch', {
        epoch: epoch.name,
        entries_gone: setback.entriesGone,
        last_size: setback.checkpoint.size,
        reason: 'the database was restored or copied, or has gone back to an older state',
      })
  }
  const epoch = await readEpoch(orm)
  if (epoch === undefined) throw new Error('The audit log has no epoch')
  const key = currentAuditKey(await listAuditKeys(orm)) ?? (await replaceKey(context, masterKey, epoch))
  return { epoch, signer: await openAuditKey(masterKey, key, epoch.origin) }
}

/** A new key that signs from now on. The log says so, and who has its entries knows the new key. */
export async function replaceKey(
  { database, writer, now }: AuditLogContext,
  masterKey: CryptoKey,
  { origin }: Epoch,
): Promise<AuditKey> {
  const { orm } = database
  const at = now()
  const key = await createAuditKey(masterKey, at)
  const body = { event: 'replaced', verifier_key: verifierOf(key, origin).text }
  await writer.write([retireAuditKeys(orm, at), insertAuditKey(orm, key), insertLogRecord(orm, 'key', at, body)])
  return key
}

/**
 * What ends the epoch in force: a checkpoint that was kept somewhere and that the database does not have. A database without an epoch in
 * force was restored or copied, and then the newest checkpoint is the last one of the epoch before.
 */
async function findSetback(
  { database, auditLog: settings, log }: AuditLogContext,
  known: Epoch | undefined,
): Promise<Setback | undefined> {
  const { orm } = database
  const file = checkpointFileFor(database)
  const [last, epochs] = [await lastCheckpoint(orm), new Set(await listLogEpochs(orm))]
  const texts = [
    ...(file === undefined ? [] : [await readText(file)]),
    ...(settings.folder === undefined ? [] : await readPublished(settings.folder)),
    last?.note ?? '',
  ].filter((text) => text !== '')
  for (const text of texts) {
    const found = await compareWith(orm, text, (epoch) => epochs.has(epoch))
    if (found === 'foreign') log('warn', 'audit_checkpoint_foreign', { note: text.slice(0, 1_000) })
    else if (known === undefined) {
      if (found !== undefined) return found
    }
    // What an earlier epoch lost is known, and in the log.
    else if (found !== undefined && !(epochs.has(epochOf(text)) && epochOf(text) !== known.name)) return found
  }
  if (known !== undefined || last === undefined) return undefined
  const checkpoint = parseCheckpoint(last.note)
  return checkpoint && { checkpoint, text: last.note, entriesGone: 0, isDifferent: false }
}

function epochOf(text: string): string {
  return parseOrigin(parseCheckpoint(text)?.origin ?? '')?.epoch ?? ''
}
