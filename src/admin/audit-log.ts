// Admin operations on the transparent audit log: its state, a checkpoint now, proofs, verification, its keys, and signatures of witnesses.
import { readLoggedRows } from '../../db/read/log-rows.ts'
import type { LogSource } from '../../db/schema/log-schema.ts'
import { findAudit } from '../../db/tables/audit.ts'
import {
  findCheckpoint,
  listAuditKeys,
  newestCheckpoint,
  updateCheckpointNote,
} from '../../db/tables/audit-checkpoints.ts'
import { findLogEntry, readLogHead } from '../../db/tables/audit-log.ts'
import { verifierOf } from '../audit-log/audit-key.ts'
import { codesOf, entryText } from '../audit-log/entry.ts'
import { readEpoch } from '../audit-log/epochs.ts'
import { formatRowProof } from '../audit-log/row-proof.ts'
import { hashesOf } from '../audit-log/tree.ts'
import { verifyDatabase } from '../audit-log/verify-database.ts'
import { Fault } from '../fault.ts'
import { timeOfRequest } from '../http/request-id.ts'
import { offsetMax } from '../limits.ts'
import { parseCheckpoint } from '../transparency/checkpoint.ts'
import { inclusionParts } from '../transparency/merkle.ts'
import { formatNote } from '../transparency/note.ts'
import { type } from '../values/shape.ts'
import { uuidShape } from '../values/shapes.ts'
import type { Needs } from './operation/context.ts'
import { operation } from './operation/operation.ts'
import { organizationInput, timeOf } from './operation/references.ts'
import { hintAtArchive } from './reports/archived.ts'

const noInput = type({ '+': 'reject' })
const noteShape = type('1 <= string <= 131072')
const rowId = type(`1 <= number.integer <= ${offsetMax}`)
const proveInput = type({
  '+': 'reject',
  ...organizationInput,
  'request_id?': uuidShape.configure({ says: 'The x-request-id of an exchange' }),
  'change_id?': rowId.configure({ says: 'The id of a change by an administrator' }),
  'record_id?': rowId.configure({ says: 'The id of a record, which belongs to the whole installation' }),
})
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
  'audit.prove': operation(proveInput, prove),
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
  checkpoint_size: 'number.integer | null',
  checkpoint_at: timeOrNull,
  signed_by: 'string[]',
  failure: 'string | null',
  keys: type({ verifier_key: 'string', created_at: time, retired_at: timeOrNull }).array(),
}).configure({ title: 'AuditLog' })
export const proofResponse = type({
  index: 'number.integer',
  size: 'number.integer',
  origin: 'string',
  proof: 'string',
}).configure({ title: 'AuditProof' })

type LogContext = Needs<'orm' | 'reader' | 'auditLog'>

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
    checkpoint_size: newest?.size ?? null,
    checkpoint_at: timeOf(newest?.at ?? null),
    signed_by: note?.signatures.map(({ name }) => name) ?? [],
    failure: failure ?? folderFailure ?? null,
    keys: keys.map((key) => ({
      verifier_key: verifierOf(key, epoch?.origin ?? '').text,
      created_at: timeOf(key.createdAt),
      retired_at: timeOf(key.retiredAt),
    })),
  }
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

/**
 * A proof that the log has an exchange, a change or a record, under a checkpoint of this moment.
 * @throws Fault `not_found` if the database has no matching row; `conflict` if it was erased
 */
async function prove(
  context: LogContext,
  { organization, ...input }: typeof proveInput.infer,
): Promise<typeof proofResponse.infer> {
  const { orm, auditLog } = context
  const { source, id } = await findRow(context, input)
  const signed = await auditLog.checkpoint()
  const entry = await findLogEntry(orm, codesOf(source), id)
  const [row] = await readLoggedRows(orm, source, { after: id - 1, last: id, most: 1 })
  if (row !== undefined && organization !== undefined) rejectForeign(row.line, organization)
  if (entry === undefined || row === undefined)
    throw new Fault('not_found', 'The audit log does not cover this row', {
      hint: auditLog.settings.mode === 'changes' ? '; LATCHKEY_AUDIT_LOG leaves exchanges out' : '',
    })
  if (entry.salt === null) throw new Fault('conflict', 'This row was erased: nothing can prove what it was')
  const hashes = await hashesOf(orm, inclusionParts(entry.leaf, signed.size))
  const proven = { entry: entryText(entry), salt: entry.salt.toString('hex'), row: row.line }
  const proof = formatRowProof({ index: entry.leaf, hashes, checkpoint: signed.note, row: proven })
  return { index: entry.leaf, size: signed.size, origin: signed.origin, proof }
}

async function findRow(
  context: LogContext,
  given: Omit<typeof proveInput.infer, 'organization'>,
): Promise<{ source: LogSource; id: number }> {
  const { request_id: requestId, change_id: changeId, record_id: recordId } = given
  if ([requestId, changeId, recordId].filter((each) => each !== undefined).length !== 1)
    throw new Fault('invalid', 'Name one row: a request id, a change or a record of the log')
  if (changeId !== undefined) return { source: 'changes', id: changeId }
  if (recordId !== undefined) return { source: 'records', id: recordId }
  const point = { requestId: (requestId ?? '').toLowerCase(), at: timeOfRequest(requestId ?? '') }
  const found = await findAudit(context.reader, point)
  if (found !== undefined) return { source: 'exchanges', id: found.id }
  throw new Fault('not_found', `There is no exchange with the request id ${requestId}`, {
    hint: await hintAtArchive(context, point.at),
  })
}

/** A row of another organization is as absent as none. A line is an id, a time and the columns. */
function rejectForeign(line: string, organization: string): void {
  const columns = JSON.parse(line.slice(line.indexOf('{'))) as { organization_id?: string | null }
  if (columns.organization_id !== organization)
    throw new Fault('not_found', 'This exchange or change does not exist in the organization')
}

async function verify(context: LogContext & Needs<'onProgress'>, { against }: typeof verifyInput.infer) {
  const { orm, reader, auditLog, onProgress } = context
  const { mode } = auditLog.settings
  const epoch = await readEpoch(orm)
  if (epoch === undefined) throw new Fault('not_found', 'The audit log has no entries yet')
  const { problems, ...counts } = await verifyDatabase(reader, { epoch: epoch.name, mode, against }, onProgress)
  return {
    ok: problems.length === 0,
    origin: epoch.origin,
    ...counts,
    problems: problems.map(({ at, ...problem }) => ({ ...problem, at: timeOf(at ?? null) })),
  }
}

/**
 * Adds the signatures of witnesses to the newest checkpoint that has the same text. They are not checked: who reads the checkpoint knows
 * which witnesses it trusts.
 * @throws Fault `invalid` for a text that is no checkpoint, `conflict` for one that this log did not sign
 */
async function importCosignatures(
  { orm, writer, auditLog }: LogContext & Needs<'writer'>,
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
  await writer.write([updateCheckpointNote(orm, { epoch: known.epoch, size: known.size, note: merged })])
  await auditLog.checkpoint()
  return { size: known.size, added: added.map(({ name }) => name) }
}
