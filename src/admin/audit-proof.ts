// The admin operation that proves a row: an exchange, also one that moved to an archive, an inference request, a change or a record of the log.
import type { LogSource } from '../../db/schema/log-schema.ts'
import { findAudit } from '../../db/tables/audit.ts'
import { findUsage } from '../../db/tables/usage.ts'
import { findArchivedExchange } from '../archive/find-exchange.ts'
import { type BuiltProof, proveArchived, proveRow, type SignedSize } from '../audit-log/prove.ts'
import { dayOf, type LedgerRow, proveRequest } from '../audit-log/prove-request.ts'
import { nextClosingAt } from '../audit-log/usage-days.ts'
import { Fault } from '../fault.ts'
import { timeOfRequest } from '../http/request-id.ts'
import { offsetMax } from '../limits.ts'
import { type } from '../values/shape.ts'
import { uuidShape } from '../values/shapes.ts'
import type { Needs } from './operation/context.ts'
import { isInstallationOrganization } from './operation/installation.ts'
import { operation } from './operation/operation.ts'
import { organizationInput } from './operation/references.ts'
import { hintAtArchive } from './reports/archived.ts'

const rowId = type(`1 <= number.integer <= ${offsetMax}`)
const proveInput = type({
  '+': 'reject',
  ...organizationInput,
  'request_id?': uuidShape.configure({ says: 'The x-request-id of an exchange or an inference request' }),
  'change_id?': rowId.configure({ says: 'The id of a change by an administrator' }),
  'record_id?': rowId.configure({ says: 'The id of a record, which belongs to the whole installation' }),
})

export const auditProofOperations = {
  // Not `mutates`: it waits for rows to be covered, and changes need not wait for that.
  'audit.prove': operation(proveInput, prove),
}

export const proofResponse = type({
  index: 'number.integer',
  size: 'number.integer',
  origin: 'string',
  proof: 'string',
}).configure({ title: 'AuditProof' })

/**
 * A proof that the log has an exchange, a request, a change or a record, under a checkpoint of this moment.
 * @throws Fault `not_found` if neither the database nor an archive has a matching row; `conflict` if it was erased, or the day of a request has no record
 */
async function prove(
  context: ProveContext,
  { organization, ...input }: typeof proveInput.infer,
): Promise<typeof proofResponse.infer> {
  const { orm, auditLog } = context
  const row = await findRow(context, input, organization)
  const signed = await auditLog.checkpoint()
  const found = 'id' in row ? await proveRow(orm, signed, row.source, row.id) : await row.prove(signed)
  if (found !== undefined && organization !== undefined) rejectForeign(context, found.line, organization)
  if (found === undefined && input.change_id !== undefined)
    throw new Fault('not_found', `The audit log has no change ${input.change_id}`, {
      hint: ': `latchkey audit changes` shows the numbers',
    })
  if (found === undefined)
    throw new Fault('not_found', 'The audit log does not cover this row', {
      hint: auditLog.settings.mode === 'changes' ? '; LATCHKEY_AUDIT_LOG leaves exchanges out' : '',
    })
  if (found.proof === undefined) throw new Fault('conflict', erased)
  return { index: found.index, size: signed.size, origin: signed.origin, proof: found.proof }
}

const erased = 'This row was erased: nothing can prove what it was'

type ProveContext = Needs<'orm' | 'reader' | 'database' | 'auditLog' | 'registry' | 'queueReads' | 'now'>
type KnownRow = { source: LogSource; id: number } | { prove: (signed: SignedSize) => Promise<BuiltProof> }

async function findRow(
  context: ProveContext,
  given: Omit<typeof proveInput.infer, 'organization'>,
  organization: string | undefined,
): Promise<KnownRow> {
  const { request_id: requestId, change_id: changeId, record_id: recordId } = given
  if ([requestId, changeId, recordId].filter((each) => each !== undefined).length !== 1)
    throw new Fault('invalid', 'Name one row: a request id, a change or a record of the log')
  if (changeId !== undefined) return { source: 'changes', id: changeId }
  if (recordId !== undefined) return { source: 'records', id: recordId }
  const point = { requestId: (requestId ?? '').toLowerCase(), at: timeOfRequest(requestId ?? '') }
  const found = await findAudit(context.reader, point)
  if (found !== undefined) return { source: 'exchanges', id: found.id }
  const request = await findUsage(context.reader, point)
  // A refusal would say that another organization made it.
  if (request !== undefined && (organization ?? request.organizationId) === request.organizationId)
    return { prove: (signed) => proveFromLedger(context, signed, request) }
  return { prove: (signed) => proveFromArchive(context, signed, point, organization) }
}

/** It reads a whole day: one proof at a time, and few wait. */
async function proveFromLedger(
  { reader, auditLog, queueReads, now }: ProveContext,
  signed: SignedSize,
  row: LedgerRow,
): Promise<BuiltProof> {
  if (auditLog.settings.mode !== 'full')
    throw new Fault('not_found', 'The audit log does not cover requests: LATCHKEY_AUDIT_LOG leaves them out')
  const proven = await queueReads('ledger', () => proveRequest(reader, signed, row))
  const day = dayOf(row.at)
  if (proven === undefined)
    throw new Fault('unavailable', 'Several proofs of requests are waiting: try again when they have ended')
  if (proven === 'open') {
    const due = new Date(nextClosingAt(now())).toISOString().slice(0, 16)
    throw new Fault(
      'conflict',
      `This request of ${day} has a proof once the log has the totals of its day: after ${due}Z`,
    )
  }
  if (proven === 'erased')
    throw new Fault(
      'conflict',
      `Requests of ${day} were erased: a trail proves the others, with the record of the erasure`,
    )
  if (proven === 'archived')
    throw new Fault('conflict', `Requests of ${day} are in archives, and only the whole day proves one of them`)
  if (proven === 'different')
    throw new Fault('conflict', `The ledger of ${day} is not the one whose totals were logged`, {
      hint: ': run `latchkey audit verify`',
    })
  return proven
}

/** It reads whole files: one proof at a time, and few wait. */
async function proveFromArchive(
  context: ProveContext,
  signed: SignedSize,
  point: { requestId: string; at: number },
  organizationId: string | undefined,
): Promise<BuiltProof> {
  const queued = context.queueReads('archives', async () => {
    const found = await findArchivedExchange(context, { ...point, organizationId })
    return typeof found === 'object' ? proveArchived(context.orm, signed, found) : found
  })
  if (queued === undefined)
    throw new Fault('unavailable', 'Several proofs from archives are waiting: try again when they have ended')
  const proven = await queued
  if (proven === undefined)
    throw new Fault('not_found', `There is no exchange or inference request with the request id ${point.requestId}`, {
      hint: await hintAtArchive(context, point.at),
    })
  if (proven === 'without_leaf') throw new Fault('not_found', 'The audit log does not cover this archived exchange')
  if (proven === 'erased') throw new Fault('conflict', erased)
  if (proven === 'different') throw new Fault('conflict', 'The archive does not have the exchange that was logged')
  return proven
}

/** A row of another organization is as absent as none. Changes of the installation are those of the organization that it was set up with. */
function rejectForeign({ registry }: Needs<'registry'>, line: string, organization: string): void {
  const columns = JSON.parse(line.slice(line.indexOf('{'))) as { organization_id?: string | null }
  const isCommon = columns.organization_id === null && 'actor' in columns
  if (isCommon && isInstallationOrganization(registry, organization)) return
  if (columns.organization_id !== organization)
    throw new Fault('not_found', 'This row does not exist in the organization')
}
