// The admin operation that erases a subject from the audit log and the ledger.
import { listFilesHolding } from '../../db/tables/archives.ts'
import { eraseSubject } from '../audit-log/erase.ts'
import { Fault } from '../fault.ts'
import { type } from '../values/shape.ts'
import { claimValueShape, referenceShape } from '../values/shapes.ts'
import type { Needs } from './operation/context.ts'
import { operation } from './operation/operation.ts'
import { findIssuerIdEver, organizationInput } from './operation/references.ts'

const becauseCharactersMax = 500
const eraseInput = type({
  '+': 'reject',
  ...organizationInput,
  issuer: referenceShape.configure({ says: 'The issuer, by name or id; a deleted one by id' }),
  subject: claimValueShape.configure({ says: 'The `sub` of its tokens, exactly' }),
  because: type(`1 <= string <= ${becauseCharactersMax}`).configure({ says: 'Why; the audit log keeps it' }),
})

export const auditErasureOperations = {
  // Not `mutates`: it reads whole tables, and changes need not wait for that. The audit log runs it alone.
  'audit.erase': operation(eraseInput, erase),
}

type EraseContext = Needs<
  'orm' | 'reader' | 'writer' | 'auditLog' | 'alerts' | 'registry' | 'actor' | 'now' | 'log' | 'onProgress'
>

/** @throws Fault `invalid` if the reason names the subject, `not_found` for an unknown issuer, `unavailable` if the server stops meanwhile */
async function erase(context: EraseContext, { organization, issuer, subject, because }: typeof eraseInput.infer) {
  const { orm, reader, writer, auditLog, alerts, registry, actor, now, log, onProgress } = context
  if (because.includes(subject))
    throw new Fault('invalid', 'The reason names the subject, and the audit log keeps the reason: leave the name out')
  const issuerId = await findIssuerIdEver(registry, issuer, organization)
  const organizationId = (registry.issuers.get(issuerId) ?? (await registry.deleted.issuer(issuerId)))?.organizationId
  const by = {
    actor: actor.kind,
    key_id: actor.kind === 'key' ? actor.keyId : null,
    os_user: (actor.kind === 'local' ? actor.osUser : null) ?? null,
  }
  const { settings, isOver } = auditLog
  const { mode } = settings
  const reason = { because, by, organization_id: organizationId ?? '', issuer_id: issuerId }
  // Those that are not saved yet would be saved with their values afterward.
  await alerts?.settle()
  const erased = await auditLog.runExclusive(() =>
    eraseSubject({ orm, reader, writer, mode, now, isOver }, { issuerId, subject }, reason, onProgress),
  )
  // From now on, its records cannot be taken out of the log again.
  if (mode !== 'off' && erased.exchanges + erased.usage > 0) await auditLog.checkpoint()
  log('info', 'subject_erased', { issuer_id: issuerId, ...erased, because })
  const files = await listFilesHolding(reader, { organizationId: reason.organization_id })
  return { ...erased, archives: files.map(({ file }) => file) }
}
