// Admin operations on the transparent audit log: its state, a checkpoint now, verification, its keys, and signatures of witnesses.
import type { Orm } from '../../db/file/open.ts'
import {
  findCheckpoint,
  listAuditKeys,
  newestCheckpoint,
  newestCosigned,
  updateCheckpointNote,
} from '../../db/tables/audit-checkpoints.ts'
import { readLogHead } from '../../db/tables/audit-log.ts'
import { listPruned } from '../../db/tables/log-pruning.ts'
import { verifierOf } from '../audit-log/audit-key.ts'
import { type Epoch, readEpoch } from '../audit-log/epochs.ts'
import { parseCheckpoint } from '../audit-log/transparency/checkpoint.ts'
import { formatNote } from '../audit-log/transparency/note.ts'
import { verifyDatabase } from '../audit-log/verify-database.ts'
import { Fault } from '../fault.ts'
import { type } from '../values/shape.ts'
import type { Needs } from './operation/context.ts'
import { operation } from './operation/operation.ts'
import { timeOf } from './operation/references.ts'

const noInput = type({ '+': 'reject' })
const noteShape = type('1 <= string <= 131072')
const verifyInput = type({
  '+': 'reject',
  'against?': type({ '+': 'reject', name: 'string', text: noteShape }).array().atMostLength(100),
})
const cosignInput = type({ '+': 'reject', checkpoint: noteShape })

export const auditLogOperations = {
  'audit.log': operation(noInput, showLog),
  // Not `mutates`: they wait for rows to be covered, and changes need not wait for that.
  'audit.checkpoint': operation(noInput, checkpoint),
  'audit.rotate_key': operation(noInput, rotateKey, { mutates: true }),
  'audit.verify': operation(verifyInput, verify),
  'audit.cosign': operation(cosignInput, importCosignatures),
}

const time = type('string').configure({ format: 'date-time' })
const timeOrNull = time.or('null')

export const logResponse = type({
  mode: 'string',
  folder: 'string | null',
  origin: 'string | null',
  entries: 'number.integer',
  pruned: 'number.integer',
  checkpoint_size: 'number.integer | null',
  checkpoint_at: timeOrNull,
  signed_by: 'string[]',
  note: 'string | null',
  cosigned: type({ size: 'number.integer', at: time, by: 'string[]' }).or('null'),
  failure: 'string | null',
  keys: type({ verifier_key: 'string', created_at: time, retired_at: timeOrNull }).array(),
}).configure({ title: 'AuditLog' })
type LogContext = Needs<'orm' | 'reader' | 'database' | 'auditLog'>

/** The log, its newest checkpoint and its keys; null for what it does not have yet. */
async function showLog({ orm, auditLog }: LogContext): Promise<typeof logResponse.infer> {
  const { mode, folder } = auditLog.settings
  const epoch = await readEpoch(orm)
  const [{ size }, newest] = [await readLogHead(orm), epoch && (await newestCheckpoint(orm, epoch.name))]
  const note = newest && parseCheckpoint(newest.note)?.note
  const keys = epoch === undefined ? [] : await listAuditKeys(orm)
  const { failure, folderFailure } = auditLog.state()
  return {
    mode,
    folder: folder ?? null,
    origin: epoch?.origin ?? null,
    entries: size,
    pruned: (await listPruned(orm)).reduce((sum, { first, end }) => sum + end - first, 0),
    checkpoint_size: newest?.size ?? null,
    checkpoint_at: timeOf(newest?.at ?? null),
    note: newest?.note ?? null,
    signed_by: note?.signatures.map(({ name }) => name) ?? [],
    cosigned: await showCosigned(orm, epoch),
    failure: failure ?? folderFailure ?? null,
    keys: keys.map((key) => ({
      verifier_key: verifierOf(key, epoch?.origin ?? '').text,
      created_at: timeOf(key.createdAt),
      retired_at: timeOf(key.retiredAt),
    })),
  }
}

/** The newest checkpoint that a witness has signed; null without one. */
async function showCosigned(orm: Orm, epoch: Epoch | undefined) {
  const found = epoch && (await newestCosigned(orm, epoch.name))
  if (found === undefined) return null
  const signers = parseCheckpoint(found.note)?.note.signatures ?? []
  const by = signers.map(({ name }) => name).filter((name) => name !== epoch?.origin)
  return { size: found.size, at: timeOf(found.at), by }
}

async function checkpoint({ auditLog }: Needs<'auditLog'>) {
  return showCheckpoint(await auditLog.checkpoint())
}

/** @throws Fault `configuration` if the master key does not fit */
async function rotateKey(context: LogContext & Needs<'log'>) {
  await context.auditLog.rotateKey()
  context.log('info', 'audit_key_rotated')
  return showLog(context)
}

function showCheckpoint({ origin, size, at, note }: { origin: string; size: number; at: number; note: string }) {
  return { origin, size, at: timeOf(at), note }
}

async function verify(context: LogContext & Needs<'onProgress'>, { against }: typeof verifyInput.infer) {
  const { orm, reader, auditLog, onProgress } = context
  const { mode } = auditLog.settings
  const epoch = await readEpoch(orm)
  if (epoch === undefined) throw new Fault('not_found', 'The audit log has no entries yet')
  const { problems, checkpointsPruned, daysArchived, ...counts } = await verifyDatabase(
    reader,
    { epoch: epoch.name, mode, against },
    onProgress,
  )
  return {
    ok: problems.length === 0,
    origin: epoch.origin,
    ...counts,
    checkpoints_pruned: checkpointsPruned,
    days_archived: daysArchived,
    problems: problems.map(({ at, ...problem }) => ({ ...problem, at: timeOf(at ?? null) })),
  }
}

/**
 * Adds the signatures of witnesses to the newest checkpoint that has the same text. They are not checked: who reads the checkpoint knows
 * which witnesses it trusts.
 * @throws Fault `invalid` for a text that is no checkpoint, `conflict` for one that this log did not sign
 */
async function importCosignatures(
  { orm, writer, auditLog, now }: LogContext & Needs<'writer' | 'now'>,
  { checkpoint: text }: typeof cosignInput.infer,
) {
  const given = parseCheckpoint(text)
  if (given === undefined) throw new Fault('invalid', 'The file is not a checkpoint')
  const epoch = await readEpoch(orm)
  const known = epoch && (await findCheckpoint(orm, epoch.name, given.size))
  const note = known && parseCheckpoint(known.note)?.note
  if (known === undefined || note === undefined || note.text !== given.note.text)
    throw new Fault('conflict', `This log has no checkpoint of ${given.size} entries with this text`)
  const lines = new Set(note.signatures.map(({ line }) => line))
  const added = given.note.signatures.filter(({ line }) => !lines.has(line))
  const merged = formatNote({ text: note.text, signatures: [...note.signatures, ...added] })
  if (parseCheckpoint(merged) === undefined) throw new Fault('invalid', 'A checkpoint takes at most 64 signatures')
  if (added.length > 0) await writer.write([updateCheckpointNote(orm, { ...known, note: merged, cosignedAt: now() })])
  await auditLog.checkpoint()
  return { size: known.size, added: added.map(({ name }) => name) }
}
