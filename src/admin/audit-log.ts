// Admin operations on the transparent audit log: its state, a checkpoint now, proofs, verification, its keys, and signatures of witnesses.
import type { Orm } from '../../db/file/open.ts'
import type { LogSource } from '../../db/schema/log-schema.ts'
import { findAudit } from '../../db/tables/audit.ts'
import {
  findCheckpoint,
  listAuditKeys,
  newestCheckpoint,
  newestCosigned,
  updateCheckpointNote,
} from '../../db/tables/audit-checkpoints.ts'
import { readLogHead } from '../../db/tables/audit-log.ts'
import { findArchivedExchange } from '../archive/find-exchange.ts'
import { verifierOf } from '../audit-log/audit-key.ts'
import { commitTo } from '../audit-log/entry.ts'
import { type Epoch, readEpoch } from '../audit-log/epochs.ts'
import { proveLine, proveRow, type SignedSize } from '../audit-log/prove.ts'
import { parseCheckpoint } from '../audit-log/transparency/checkpoint.ts'
import { formatNote } from '../audit-log/transparency/note.ts'
import { readEntries } from '../audit-log/tree.ts'
import { verifyDatabase } from '../audit-log/verify-database.ts'
import { Fault } from '../fault.ts'
import { timeOfRequest } from '../http/request-id.ts'
import { offsetMax } from '../limits.ts'
import { type } from '../values/shape.ts'
import { uuidShape } from '../values/shapes.ts'
import type { Needs } from './operation/context.ts'
import { isInstallationOrganization } from './operation/installation.ts'
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
  note: 'string | null',
  cosigned: type({ size: 'number.integer', at: time, by: 'string[]' }).or('null'),
  failure: 'string | null',
  keys: type({ verifier_key: 'string', created_at: time, retired_at: timeOrNull }).array(),
}).configure({ title: 'AuditLog' })
export const proofResponse = type({
  index: 'number.integer',
  size: 'number.integer',
  origin: 'string',
  proof: 'string',
}).configure({ title: 'AuditProof' })

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

/**
 * A proof that the log has an exchange, a change or a record, under a checkpoint of this moment.
 * @throws Fault `not_found` if the database has no matching row; `conflict` if it was erased
 */
async function prove(
  context: LogContext & Needs<'registry'>,
  { organization, ...input }: typeof proveInput.infer,
): Promise<typeof proofResponse.infer> {
  const { orm, auditLog } = context
  const row = await findRow(context, input, organization)
  const signed = await auditLog.checkpoint()
  const found = 'line' in row ? await proveArchived(orm, signed, row) : await proveRow(orm, signed, row.source, row.id)
  if (found !== undefined && organization !== undefined) rejectForeign(context, found.line, organization)
  if (found === undefined)
    throw new Fault('not_found', 'The audit log does not cover this row', {
      hint: auditLog.settings.mode === 'changes' ? '; LATCHKEY_AUDIT_LOG leaves exchanges out' : '',
    })
  if (found.proof === undefined) throw new Fault('conflict', 'This row was erased: nothing can prove what it was')
  return { index: found.index, size: signed.size, origin: signed.origin, proof: found.proof }
}

async function findRow(
  context: LogContext,
  given: Omit<typeof proveInput.infer, 'organization'>,
  organization: string | undefined,
): Promise<{ source: LogSource; id: number } | ArchivedRow> {
  const { request_id: requestId, change_id: changeId, record_id: recordId } = given
  if ([requestId, changeId, recordId].filter((each) => each !== undefined).length !== 1)
    throw new Fault('invalid', 'Name one row: a request id, a change or a record of the log')
  if (changeId !== undefined) return { source: 'changes', id: changeId }
  if (recordId !== undefined) return { source: 'records', id: recordId }
  const point = { requestId: (requestId ?? '').toLowerCase(), at: timeOfRequest(requestId ?? '') }
  const found = await findAudit(context.reader, point)
  if (found !== undefined) return { source: 'exchanges', id: found.id }
  // It reads whole files, which is not for callers over HTTP: those have an organization.
  const archived = organization === undefined ? await findArchivedExchange(context, point) : undefined
  if (archived === 'without_salt') throw new Fault('not_found', 'The audit log does not cover this archived exchange')
  if (archived !== undefined) return archived
  throw new Fault('not_found', `There is no exchange with the request id ${requestId}`, {
    hint: await hintAtArchive(context, point.at),
  })
}

type ArchivedRow = { leaf: number; salt: Buffer; line: string }

/** @throws Fault `conflict` for a line that is not the one that was logged */
async function proveArchived(orm: Orm, signed: SignedSize, { leaf, salt, line }: ArchivedRow) {
  const [entry] = await readEntries(orm, leaf, leaf + 1)
  if (entry === undefined || leaf >= signed.size || !commitTo(salt, line).equals(entry.commitment))
    throw new Fault('conflict', 'The archive does not have the exchange that was logged')
  return proveLine(orm, signed, entry, { salt, line })
}

/** A row of another organization is as absent as none. Changes of the installation are those of the organization that it was set up with. */
function rejectForeign({ registry }: Needs<'registry'>, line: string, organization: string): void {
  const columns = JSON.parse(line.slice(line.indexOf('{'))) as { organization_id?: string | null }
  const isCommon = columns.organization_id === null && 'actor' in columns
  if (isCommon && isInstallationOrganization(registry, organization)) return
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
