// Admin operations on webhooks: where alerts are sent. Receivers verify the signature with the secret, which is shown once.

import type { Webhook } from '../../../db/schema/alert-schema.ts'
import { dropDeliveries } from '../../../db/tables/alerts.ts'
import { listSigningKeys } from '../../../db/tables/signing-keys.ts'
import { insertWebhook, updateWebhook } from '../../../db/tables/webhooks.ts'
import { Fault } from '../../fault.ts'
import { checkUnchanged } from '../../http/entity-tag.ts'
import { sealCredential } from '../../inference/upstream/credentials.ts'
import { graceSecondsDefault, graceSecondsMax } from '../../keys/key-shapes.ts'
import { newEventId } from '../../monitoring/alerts/alerts.ts'
import { openSecrets } from '../../monitoring/alerts/outbox.ts'
import { sendEvent } from '../../monitoring/alerts/send.ts'
import { joinSecrets, newSecret } from '../../monitoring/alerts/signature.ts'
import { addressProblem, webhookUrlProblem } from '../../monitoring/alerts/webhook-url.ts'
import { openMasterKey } from '../../tokens/keyring.ts'
import { type } from '../../values/shape.ts'
import { referenceShape } from '../../values/shapes.ts'
import { checkCertificates } from '../issuers/issuer-input.ts'
import { columnsOf, given, newColumnsOf } from '../kinds/fields.ts'
import { webhookFields } from '../kinds/webhook.ts'
import { type ChangeContext, commit } from '../operation/commit.ts'
import type { Needs } from '../operation/context.ts'
import { operation } from '../operation/operation.ts'
import { checkChanges, checkNameIsFree, findOrganization, findRow, organizationInput } from '../operation/references.ts'
import { readStates, showWebhook } from './webhook-response.ts'

const creation = type({ '+': 'reject', ...organizationInput, ...given(webhookFields, 'create') })
const changing = type({
  '+': 'reject',
  ...organizationInput,
  ...given(webhookFields, 'change'),
  webhook: referenceShape,
  'if_match?': 'string',
  'grace_seconds?': type(`0 <= number.integer <= ${graceSecondsMax}`).configure({
    says: 'With `secret`: how long the secret before still signs too; 0 ends it at once. Default: a day',
  }),
}).configure({ minProperties: 1 })
const oneInput = type({ '+': 'reject', ...organizationInput, webhook: referenceShape })

export const webhookOperations = {
  'webhooks.add': operation(creation, addWebhook, { mutates: true }),
  'webhooks.list': operation(type({ '+': 'reject', ...organizationInput }), listAll),
  'webhooks.show': operation(oneInput, async (context: Needs<'orm' | 'registry'>, input) =>
    showWebhook(pick(context, input), await readStates(context)),
  ),
  'webhooks.update': operation(changing, changeWebhook, { mutates: true }),
  'webhooks.delete': operation(oneInput, deleteWebhook, { mutates: true }),
  'webhooks.test': operation(oneInput, testWebhook),
}

type SaveContext = ChangeContext & Needs<'config' | 'outbound'>

async function addWebhook(context: SaveContext, input: typeof creation.infer) {
  const { orm, registry, now } = context
  const { id: organizationId } = findOrganization(registry, input.organization)
  checkNameIsFree('webhook', registry.webhooks, input.name, organizationId)
  const draft = draftWebhook(input, organizationId, now())
  checkWebhook(context, draft)
  await rejectPrivate(context, draft.url)
  const secret = input.secret ?? newSecret()
  const row = { ...draft, credentialEncrypted: await sealSecret(context, draft, secret) }
  await commit(context, [insertWebhook(orm, row)], [{ kind: 'webhook', id: row.id }])
  return { ...showWebhook(row, new Map()), ...(input.secret === undefined ? { secret } : {}) }
}

/** The row of a new webhook, without its secret; `now` in milliseconds. */
export function draftWebhook(
  input: Omit<typeof creation.infer, 'organization' | 'secret'>,
  organizationId: string,
  now: number,
): Webhook {
  const columns = newColumnsOf<Webhook>(webhookFields, input)
  const rest = { enabled: true, credentialEncrypted: null, managedBy: null, createdAt: now, updatedAt: now }
  return { id: crypto.randomUUID(), organizationId, ...columns, ...rest, deletedAt: null } as Webhook
}

/** @throws Fault `invalid` */
export function checkWebhook({ config }: Needs<'config'>, { url, caPem }: Pick<Webhook, 'url' | 'caPem'>): void {
  const problem = webhookUrlProblem(url, config.webhookNetworks)
  if (problem !== undefined) throw refused(url, problem)
  if (caPem !== null) checkCertificates(caPem)
}

/** A name is judged again for each delivery, since it can lead elsewhere by then. */
async function rejectPrivate({ outbound, config }: Needs<'outbound' | 'config'>, url: string): Promise<void> {
  const { protocol, hostname } = new URL(url)
  const addresses = outbound.usesProxy ? [] : await outbound.resolve(hostname).catch(() => [])
  const problem = addressProblem(addresses, protocol === 'http:', config.webhookNetworks)
  if (problem !== undefined) throw refused(url, problem)
}

function refused(url: string, problem: string): Fault {
  return new Fault('invalid', `The URL of the webhook, ${JSON.stringify(url)}, ${problem}`)
}

/** With the secret before, if it still signs for a while. */
export async function sealSecret(
  context: Needs<'config' | 'orm' | 'now'>,
  row: Pick<Webhook, 'id' | 'credentialEncrypted'>,
  secret: string,
  graceSeconds = graceSecondsDefault,
): Promise<string> {
  const masterKey = await openMasterKey(context.config.masterKey, await listSigningKeys(context.orm))
  const now = context.now()
  const [before] = (graceSeconds > 0 && (await openSecrets(masterKey, row, now))) || []
  return sealCredential(masterKey, row.id, joinSecrets(secret, before, now + graceSeconds * 1_000))
}

async function changeWebhook(context: SaveContext, input: typeof changing.infer) {
  if (input.grace_seconds !== undefined && input.secret === undefined)
    throw new Fault('invalid', 'grace_seconds is for the secret before: send secret with it')
  checkChanges(input, ['organization', 'webhook', 'if_match', 'grace_seconds'])
  const { orm, registry, now } = context
  const before = pick(context, input)
  checkUnchanged(before, input.if_match)
  if (input.name !== undefined)
    checkNameIsFree('webhook', registry.webhooks, input.name, before.organizationId, before.id)
  const sealed =
    input.secret === undefined
      ? {}
      : { credentialEncrypted: await sealSecret(context, before, input.secret, input.grace_seconds) }
  const row: Webhook = { ...before, ...columnsOf<Webhook>(webhookFields, input), ...sealed, updatedAt: now() }
  checkWebhook(context, row)
  if (input.url !== undefined) await rejectPrivate(context, row.url)
  await commit(context, [updateWebhook(orm, row.id, row)], [{ kind: 'webhook', id: row.id }])
  return showWebhook(row, await readStates(context))
}

async function deleteWebhook(context: ChangeContext, input: typeof oneInput.infer) {
  const row = pick(context, input)
  const { orm, now } = context
  const change = { deletedAt: now(), updatedAt: now(), credentialEncrypted: null }
  await commit(
    context,
    [updateWebhook(orm, row.id, change), dropDeliveries(orm, row)],
    [{ kind: 'webhook', id: row.id }],
  )
  return { id: row.id, deleted: true }
}

async function listAll(context: Needs<'orm' | 'registry'>, { organization }: { organization?: string }) {
  const { id } = findOrganization(context.registry, organization)
  const states = await readStates(context)
  const rows = [...context.registry.webhooks.values()].filter(
    ({ organizationId, deletedAt }) => organizationId === id && deletedAt === null,
  )
  return { data: rows.map((row) => showWebhook(row, states)) }
}

/** Sends an event that means nothing, once, also to a webhook that is disabled. */
async function testWebhook(
  context: Needs<'orm' | 'registry' | 'config' | 'outbound' | 'now'>,
  input: typeof oneInput.infer,
) {
  const row = pick(context, input)
  const masterKey = await openMasterKey(context.config.masterKey, await listSigningKeys(context.orm))
  const secrets = await openSecrets(masterKey, row, context.now())
  if (secrets === undefined)
    throw new Fault('conflict', `The secret of the webhook ${JSON.stringify(row.name)} is missing: set it again`)
  const event = { id: newEventId(), type: 'webhook.test' as const, at: context.now(), data: { webhook: row.name } }
  const startedAt = performance.now()
  const outcome = await sendEvent(context, { url: row.url, caPem: row.caPem, secrets }, event)
  return {
    ...{ id: event.id, ok: outcome.ok, status: outcome.ok ? outcome.status : null },
    problem: outcome.ok ? null : outcome.problem,
    milliseconds: Math.round(performance.now() - startedAt),
  }
}

function pick({ registry }: Needs<'registry'>, { organization, webhook }: typeof oneInput.infer): Readonly<Webhook> {
  return findRow(registry, 'webhook', registry.webhooks, webhook, findOrganization(registry, organization).id)
}
