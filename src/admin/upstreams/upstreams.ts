// Admin operations on upstreams: the inference servers of the installation, the models that each serves, and whether it responds.

import type { Upstream as UpstreamRow } from '../../../db/schema/upstream-schema.ts'
import { listSigningKeys } from '../../../db/tables/signing-keys.ts'
import { insertUpstream, updateUpstream } from '../../../db/tables/upstreams.ts'
import { Fault } from '../../fault.ts'
import { checkUnchanged } from '../../http/entity-tag.ts'
import { sealCredential } from '../../inference/upstream/credentials.ts'
import { configuredUpstreamName, type Upstream } from '../../inference/upstream/targets.ts'
import { openMasterKey } from '../../tokens/keyring.ts'
import { type } from '../../values/shape.ts'
import { checkCertificates } from '../issuers/issuer-input.ts'
import { columnsOf, newColumnsOf, showFields } from '../kinds/fields.ts'
import { upstreamFields } from '../kinds/upstream.ts'
import { withoutSlash } from '../kinds/upstream-shapes.ts'
import { type ChangeContext, commit } from '../operation/commit.ts'
import type { Needs } from '../operation/context.ts'
import { operation } from '../operation/operation.ts'
import { checkChanges, notFound } from '../operation/references.ts'
import { queueStateOf, showQueue } from './queue-state.ts'
import { checkUpstream } from './upstream-check.ts'
import { addInput, checkInput, exchangeColumn, oneInput, tuneInput, updateInput } from './upstream-input.ts'
import type { upstreamResponse } from './upstream-response.ts'

export const upstreamOperations = {
  'upstreams.add': operation(addInput, addUpstream, { mutates: true }),
  'upstreams.list': operation(type({ '+': 'reject' }), async (context: ShowContext & Needs<'registry'>) => ({
    data: context.registry.upstreamsInOrder.map((row) => showUpstream(context, row)),
  })),
  'upstreams.show': operation(oneInput, async (context: ShowContext & Needs<'registry'>, { upstream }) =>
    showUpstream(context, findAny(context, upstream)),
  ),
  'upstreams.update': operation(updateInput, changeUpstream, { mutates: true }),
  'upstreams.tune': operation(tuneInput, tuneUpstream, { mutates: true }),
  'upstreams.remove': operation(oneInput, removeUpstream, { mutates: true }),
  'upstreams.check': operation(checkInput, checkUpstreams),
  'upstreams.top': operation(type({ '+': 'reject' }), showQueue),
}

function tuneUpstream(context: UpdateContext, { if_match, ...input }: typeof tuneInput.infer) {
  checkUnchanged(find(context, input.upstream), if_match)
  return changeUpstream(context, input)
}

type UpdateContext = ChangeContext & ShowContext & Needs<'config'>

async function changeUpstream(context: UpdateContext, input: typeof updateInput.infer) {
  checkChanges(input, ['upstream'])
  const upstream = find(context, input.upstream)
  if (input.name !== undefined) checkName(context, input.name, upstream.id)
  const { base_url, ca_pem } = input
  if (typeof ca_pem === 'string') checkCertificates(ca_pem)
  const change: Partial<UpstreamRow> = {
    ...columnsOf<UpstreamRow>(upstreamFields, input),
    ...(await credentialColumn(context, upstream.id, input.credential)),
    ...exchangeColumn(input, withoutSlash(base_url ?? upstream.baseUrl), upstream.credentialExchange),
    updatedAt: context.now(),
  }
  await commit(context, [updateUpstream(context.orm, upstream.id, change)], [{ kind: 'upstream', id: upstream.id }])
  return showUpstream(context, find(context, upstream.id))
}

async function removeUpstream(context: ChangeContext, input: typeof oneInput.infer) {
  const { id } = find(context, input.upstream)
  const change = { deletedAt: context.now(), updatedAt: context.now(), credentialEncrypted: null }
  await commit(context, [updateUpstream(context.orm, id, change)], [{ kind: 'upstream', id }])
  return { id, deleted: true }
}

async function checkUpstreams(
  context: Needs<'config' | 'inEffect' | 'orm' | 'registry' | 'outbound' | 'monotonic' | 'log'>,
  { upstream }: typeof checkInput.infer,
) {
  const checked = upstream === undefined ? context.registry.upstreamsInOrder : [findAny(context, upstream)]
  return { data: await Promise.all(checked.map((each) => checkUpstream(context, each))) }
}

async function addUpstream(context: ChangeContext & ShowContext & Needs<'config'>, input: typeof addInput.infer) {
  checkName(context, input.name)
  if (typeof input.ca_pem === 'string') checkCertificates(input.ca_pem)
  const draft = draftUpstream(input, context.now())
  const row = { ...draft, ...(await credentialColumn(context, draft.id, input.credential)) }
  await commit(context, [insertUpstream(context.orm, row)], [{ kind: 'upstream', id: row.id }])
  return showUpstream(context, find(context, row.id))
}

type NewColumns = Pick<UpstreamRow, 'name' | 'baseUrl' | 'models' | 'priority' | 'caPem'> &
  Pick<UpstreamRow, 'firstByteSeconds' | 'idleSeconds' | 'forwardHeaders' | 'returnHeaders'> &
  Pick<
    UpstreamRow,
    'maxRunning' | 'weight' | 'affinity' | 'probePath' | 'probeSeconds' | 'sendPriority' | 'sendFairnessId'
  >

/** The row of a new upstream, without its credential; `now` in milliseconds. */
export function draftUpstream(input: typeof addInput.infer, now: number): UpstreamRow {
  return {
    id: crypto.randomUUID(),
    ...(newColumnsOf<UpstreamRow>(upstreamFields, input) as NewColumns),
    credentialEncrypted: null,
    createdAt: now,
    updatedAt: now,
    deletedAt: null,
    managedBy: null,
    credentialExchange: null,
    ...exchangeColumn(input, withoutSlash(input.base_url)),
  }
}

/** The sealed credential, if the input names one; null removes it. */
export async function credentialColumn(
  context: Needs<'config' | 'orm'>,
  id: string,
  credential: string | null | undefined,
) {
  if (credential === undefined) return {}
  if (credential === null) return { credentialEncrypted: null }
  const masterKey = await openMasterKey(context.config.masterKey, await listSigningKeys(context.orm))
  return { credentialEncrypted: await sealCredential(masterKey, id, credential) }
}

function findAny({ registry }: Needs<'registry'>, reference: string): Upstream {
  const found = registry.upstreamsInOrder.find(({ id, name }) => id === reference || name === reference)
  if (found === undefined) throw notFound('upstream', reference)
  return found
}

/** An upstream that was added. Only these can be changed. */
function find(context: Needs<'registry'>, reference: string): Upstream {
  if (reference === configuredUpstreamName)
    throw new Fault('invalid', 'The upstream "configured" comes from LATCHKEY_UPSTREAM_URL: change it there')
  return findAny(context, reference)
}

function checkName({ registry }: Needs<'registry'>, name: string, exceptId?: string): void {
  const isTaken = registry.upstreamsInOrder.some((row) => row.name === name && row.id !== exceptId)
  if (name === configuredUpstreamName || isTaken)
    throw new Fault('conflict', `An upstream named ${JSON.stringify(name)} already exists; choose another name`)
}

type ShowContext = Needs<'inEffect' | 'dispatch' | 'circuits' | 'probes' | 'now' | 'monotonic'>

function showUpstream(context: ShowContext, row: Upstream): typeof upstreamResponse.infer {
  const isConfigured = row.id === configuredUpstreamName
  const derived = {
    has_credential: isConfigured
      ? context.inEffect.read().upstreamApiKey !== undefined
      : row.credentialEncrypted !== null || row.credentialExchange !== null,
    ...queueStateOf(context, row),
    ...(isConfigured ? { created_at: null, updated_at: null } : {}),
  }
  return showFields(upstreamFields, row, derived) as typeof upstreamResponse.infer
}
