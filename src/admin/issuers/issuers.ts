// Admin operations on issuers: their URLs, and the sources of their keys.

import { mapInSlices } from '../../../db/read/pace.ts'
import type { Issuer as IssuerRow } from '../../../db/schema/schema.ts'
import { insertIssuer, updateIssuer } from '../../../db/tables/issuers.ts'
import { Fault } from '../../fault.ts'
import type { Issuer } from '../../federation/issuer/issuer.ts'
import { objectionToIssuerUrl } from '../../federation/issuer/issuer-url.ts'
import { checkUnchanged } from '../../http/entity-tag.ts'
import { clockSkewSecondsDefault } from '../../limits.ts'
import { shellWord } from '../../runtime/file-access.ts'
import { columnsOf, newColumnsOf } from '../kinds/fields.ts'
import { issuerFields } from '../kinds/issuer.ts'
import { type ChangeContext, commit } from '../operation/commit.ts'
import type { Needs } from '../operation/context.ts'
import type { issuerResponse } from '../operation/issuer-response.ts'
import { withLastUse } from '../operation/last-use-response.ts'
import { containsText, showNext, showPage } from '../operation/list-page.ts'
import { operation } from '../operation/operation.ts'
import { checkChanges, checkNameIsFree, findIssuer, findOrganization } from '../operation/references.ts'
import { rejectHarmfulChange } from '../policies/issuer-change.ts'
import { readAffected } from '../policies/policy-impact.ts'
import {
  addInput,
  byDiscovery,
  checkCertificates,
  listInput,
  nameKeySource,
  oneInput,
  updateInput,
  verifyInput,
} from './issuer-input.ts'
import { keyColumns, rejectPast } from './key-columns.ts'
import { checkPageClient, pageSecretColumn } from './page-client.ts'
import { type ShowIssuerContext, showIssuer } from './show-issuer.ts'
import { describeFor, verifyIssuer } from './verify-issuer.ts'

export const issuerOperations = {
  'issuers.add': operation(addInput, addIssuer, { mutates: true }),
  'issuers.list': operation(listInput, listIssuers),
  'issuers.show': operation(oneInput, showUsed),
  'issuers.update': operation(updateInput, updateIssuerFields, { mutates: true }),
  'issuers.verify': operation(verifyInput, verify),
  // It waits for the issuer's server, so it must not hold up other changes.
  'issuers.refresh': operation(oneInput, refresh),
  'issuers.delete': operation(oneInput, deleteIssuer, { mutates: true }),
}

async function addIssuer(context: ChangeContext & ShowIssuerContext & Needs<'config'>, input: typeof addInput.infer) {
  const { id: organizationId } = findOrganization(context.registry, input.organization)
  rejectPast(context, input.keys_expire_at)
  const draft = draftIssuer(context, input, organizationId)
  const row = { ...draft, ...(await pageSecretColumn(context, draft.id, input.page_secret)) }
  checkIssuer(context, row)
  await rejectContradiction(row)
  await commit(context, [insertIssuer(context.orm, row)], [{ kind: 'issuer', id: row.id }])
  return showIssuer(context, row.id)
}

type IssuerDraft = Omit<typeof addInput.infer, 'organization'>
type NewColumns = Pick<IssuerRow, 'name' | 'issuerUrl' | 'caPem' | 'shared'> &
  Pick<IssuerRow, 'keysStaleSeconds' | 'clockSkewSeconds' | 'maxTokenAgeSeconds'> &
  Pick<IssuerRow, 'loginClientId' | 'loginScopes' | 'loginRedirectUri'> &
  Pick<IssuerRow, 'pageClientId' | 'pageAuthentication' | 'pageMaxAgeSeconds'>

/** The columns of a new issuer without those of its keys: what the input lacks has its default. */
export function newIssuerColumns(input: { name: string; issuer_url: string }): NewColumns {
  return newColumnsOf<IssuerRow>(issuerFields, input) as NewColumns
}

/** The row of a new issuer. @throws Fault `invalid` for a source of keys that cannot be used */
export function draftIssuer(
  context: Needs<'config' | 'registry' | 'now'>,
  input: IssuerDraft,
  organizationId: string,
): IssuerRow {
  const now = context.now()
  return {
    id: crypto.randomUUID(),
    organizationId,
    ...byDiscovery,
    keysExpireAt: null,
    keyBundle: null,
    bundleSignerId: null,
    pageSecretEncrypted: null,
    ...keyColumns(context, organizationId, input),
    ...newIssuerColumns(input),
    createdAt: now,
    updatedAt: now,
    deletedAt: null,
    managedBy: null,
  }
}

async function listIssuers(context: ShowIssuerContext & Needs<'lastUses' | 'now'>, input: typeof listInput.infer) {
  const { id } = findOrganization(context.registry, input.organization)
  const fits = containsText(input.contains)
  const rows = [...context.registry.issuers.values()].filter(
    (row) => row.organizationId === id && row.deletedAt === null && fits(row.name),
  )
  const ids = rows.map((row) => row.id)
  const showThem = (some: readonly string[]) => mapInSlices(some, (each) => showIssuer(context, each))
  if (input.after !== undefined) return showNext(context, ids, () => true, input, showThem)
  const createdAt = (issuerId: string) => context.registry.issuers.get(issuerId)?.createdAt
  return showPage(context, ids, input, { show: showThem, createdAt })
}

async function showUsed(
  context: ShowIssuerContext & Needs<'lastUses'>,
  input: typeof oneInput.infer,
): Promise<typeof issuerResponse.infer> {
  const shown = await showIssuer(context, pick(context, input).id)
  const [used] = await withLastUse(context, [shown])
  return used ?? shown
}

async function updateIssuerFields(
  context: ChangeContext & ShowIssuerContext & Needs<'config'>,
  input: typeof updateInput.infer,
) {
  checkChanges(input, ['organization', 'issuer', 'if_match'])
  rejectPast(context, input.keys_expire_at)
  const issuer = pick(context, input)
  checkUnchanged(issuer, input.if_match)
  const change = {
    ...keyColumns(context, issuer.organizationId, input, issuer),
    ...columnsOf<IssuerRow>(issuerFields, input),
    ...(await pageSecretColumn(context, issuer.id, input.page_secret)),
    shared: sharedAfter(issuer, input),
    updatedAt: context.now(),
  }
  const after = { ...issuer, ...change }
  checkIssuer(context, after)
  if (input.shared !== undefined) await rejectContradiction(after)
  await rejectHarmfulChange(context, { before: issuer, after })
  await commit(context, [updateIssuer(context.orm, issuer.id, change)], [{ kind: 'issuer', id: issuer.id }])
  return showIssuer(context, issuer.id)
}

/** An answer is about one URL. */
function sharedAfter(issuer: Issuer, { shared, issuer_url: url = issuer.issuerUrl }: typeof updateInput.infer) {
  if (shared !== undefined) return shared
  return url === issuer.issuerUrl ? issuer.shared : null
}

async function deleteIssuer(context: ChangeContext, input: typeof oneInput.infer) {
  const { id } = pick(context, input)
  const now = context.now()
  const affected = readAffected(context, 'issuerId', [id]).get(id)
  await commit(context, [updateIssuer(context.orm, id, { deletedAt: now, updatedAt: now })], [{ kind: 'issuer', id }])
  return { id, deleted: true, ...affected }
}

async function verify(
  context: Needs<'config' | 'registry' | 'outbound' | 'now' | 'log' | 'actor' | 'role'>,
  input: typeof verifyInput.infer,
) {
  if (input.issuer !== undefined) {
    const { issuer, organization } = input
    return verifyIssuer(context, pick(context, organization === undefined ? { issuer } : { issuer, organization }))
  }
  const { issuer_url: issuerUrl } = input
  if (issuerUrl === undefined)
    throw new Fault('invalid', 'No issuer was named; give a saved issuer or an issuer URL', { hint: ' (--url)' })
  const caPem = input.ca_pem ?? null
  if (caPem !== null) checkCertificates(caPem)
  const source = { ...byDiscovery, ...nameKeySource(context, input) }
  return verifyIssuer(context, { ...source, issuerUrl, caPem, clockSkewSeconds: clockSkewSecondsDefault })
}

async function refresh(context: ShowIssuerContext, input: typeof oneInput.infer) {
  const issuer = pick(context, input)
  await context.issuerKeys.refresh(issuer).catch((error: unknown) => explainUnreachable(context, error, issuer))
  return showIssuer(context, issuer.id)
}

function explainUnreachable(context: Needs<'actor' | 'role' | 'registry'>, error: unknown, { name }: Issuer): never {
  if (!(error instanceof Fault) || error.code !== 'unavailable') throw error
  const message = context.actor.kind === 'key' ? describeFor(context, error) : error.message
  const hint = `${error.hint}; if the server cannot reach the issuer: latchkey issuers update ${shellWord(name)} --jwks-file FILE`
  throw new Fault('unavailable', message, { reason: error.reason, detail: error.detail, hint })
}

function pick({ registry }: Needs<'registry'>, { organization, issuer }: typeof oneInput.infer): Issuer {
  return findIssuer(registry, issuer, findOrganization(registry, organization).id)
}

/** Checks what depends on the issuer alone. @throws Fault `invalid` */
export function checkIssuerFields({ config }: Needs<'config'>, row: IssuerRow): void {
  const objection = objectionToIssuerUrl(row.issuerUrl, config.insecureIssuers)
  if (objection !== undefined)
    throw new Fault('invalid', `The issuer URL ${JSON.stringify(row.issuerUrl)} ${objection}`)
  if (row.caPem !== null) checkCertificates(row.caPem)
  checkPageClient(row)
  if (row.loginScopes !== null && !row.loginScopes.split(' ').includes('openid'))
    throw new Fault(
      'invalid',
      `The scopes ${JSON.stringify(row.loginScopes)} lack openid, without which no ID token is issued`,
      {
        hint: ': add it (--login-scopes)',
      },
    )
}

/** @throws Fault `invalid` for the answer that nobody else gets tokens of a service that everybody uses */
export async function rejectContradiction({ issuerUrl, shared }: Pick<IssuerRow, 'issuerUrl' | 'shared'>) {
  if (shared !== false) return
  const { knownServiceOf } = await import('../../federation/lint/shared-issuer.ts')
  const service = knownServiceOf(issuerUrl)
  if (service === undefined) return
  throw new Fault(
    'invalid',
    `Everyone can get tokens of ${JSON.stringify(issuerUrl)} (${service}), so shared may not be false: leave it out`,
    { hint: ' (--shared)' },
  )
}

function checkIssuer(context: Needs<'config' | 'registry'>, row: IssuerRow): void {
  checkIssuerFields(context, row)
  const { registry } = context
  checkNameIsFree('issuer', registry.issuers, row.name, row.organizationId, row.id)
  for (const other of registry.issuers.values()) {
    if (other.id === row.id || other.deletedAt !== null) continue
    if (other.organizationId !== row.organizationId || other.issuerUrl !== row.issuerUrl) continue
    throw issuerUrlTaken(other.name, row.issuerUrl)
  }
}

export function issuerUrlTaken(name: string, url: string): Fault {
  return new Fault(
    'conflict',
    `The issuer ${JSON.stringify(name)} already has the URL ${JSON.stringify(url)}; update that issuer instead`,
  )
}
