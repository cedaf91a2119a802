// Admin operations on API keys. A key's text leaves here once, when it is made.

import { type ApiKeyWithNames, insertApiKey, listApiKeys, readApiKey, updateApiKey } from '../../db/api-keys.ts'
import { findUser, findWorkspace } from '../../db/organizations.ts'
import { createPace } from '../../db/pace.ts'
import { type ApiKey, keyKinds } from '../../db/schema.ts'
import { Fault } from '../fault.ts'
import { createApiKeyText, hashApiKey, keyStateOf, keyStates, labelApiKey } from '../keys/api-key.ts'
import { keyBounds } from '../keys/bounds.ts'
import { findOrDraftOwner } from '../keys/owner.ts'
import { remainingOf } from '../keys/spending.ts'
import { nanodollarsPerDollar } from '../limits.ts'
import { type } from '../values/shape.ts'
import { nameShape, referenceShape } from '../values/shapes.ts'
import { commit } from './commit.ts'
import type { AdminContext } from './context.ts'
import { type OperationContext, operation } from './operation.ts'
import { type Affected, readAffected } from './policy-impact.ts'
import {
  checkChanges,
  checkNameIsFree,
  findKey,
  findOrganization,
  notFound,
  organizationInput,
  timeOf,
} from './references.ts'

const boundsInput = type(keyBounds)

const createInput = type({
  '+': 'reject',
  ...organizationInput,
  ...keyBounds,
  name: nameShape,
  'kind?': type.enumerated(...keyKinds),
  'owner?': nameShape,
  'workspace?': referenceShape,
})
const listInput = type({
  '+': 'reject',
  ...organizationInput,
  'owner?': referenceShape,
  'state?': type.enumerated(...keyStates),
})
const updateInput = type({
  '+': 'reject',
  ...organizationInput,
  ...keyBounds,
  key: referenceShape,
  'name?': nameShape,
  'disabled?': 'boolean',
})
const oneInput = type({ '+': 'reject', ...organizationInput, key: referenceShape })
const keysAtOnceMax = 100
const keysPerStatement = 100
const someInput = type({
  '+': 'reject',
  ...organizationInput,
  'key?': referenceShape,
  'keys?': referenceShape.array().moreThanLength(0).atMostLength(keysAtOnceMax),
}).narrow(
  ({ key, keys }, context) => (key === undefined) !== (keys === undefined) || context.mustBe('with either key or keys'),
)

export const keyOperations = {
  'keys.create': operation(createInput, createKey, { mutates: true }),
  'keys.list': operation(listInput, listKeys),
  'keys.update': operation(updateInput, updateKey, { mutates: true }),
  'keys.show': operation(oneInput, async (context, input) => show(context, pick(context, input).id)),
  'keys.disable': operation(someInput, disableKeys, { mutates: true }),
  'keys.enable': operation(someInput, enableKeys, { mutates: true }),
  'keys.delete': operation(someInput, deleteKeys, { mutates: true }),
}

function disableKeys(context: OperationContext, input: typeof someInput.infer) {
  return changeSome(context, input, { disabled: true }, (key) => key)
}

function enableKeys(context: OperationContext, input: typeof someInput.infer) {
  return changeSome(context, input, { disabled: false }, (key) => key)
}

function deleteKeys(context: OperationContext, input: typeof someInput.infer) {
  return changeSome(context, input, { deletedAt: context.now() }, showDeleted)
}

async function listKeys(context: AdminContext, { organization, owner, state }: typeof listInput.infer) {
  const { id: organizationId } = findOrganization(context.registry, organization)
  const ownedBy = owner === undefined ? undefined : await findUser(context.orm, organizationId, owner)
  if (owner !== undefined && ownedBy === undefined)
    throw new Fault('not_found', `There is no owner ${JSON.stringify(owner)}`, { hint: '; see: latchkey keys list' })
  const listed = [...context.registry.keys.values()]
    .filter((key) => key.organizationId === organizationId && key.deletedAt === null)
    .filter((key) => ownedBy === undefined || key.ownerId === ownedBy.id)
    .filter((key) => state === undefined || keyStateOf(key, context.now()) === state)
    .toSorted((one, other) => one.createdAt - other.createdAt || (one.name < other.name ? -1 : 1))
  const pace = createPace()
  const data: ReturnType<typeof showApiKey>[] = []
  for (let start = 0; start < listed.length; start += keysPerStatement) {
    const ids = listed.slice(start, start + keysPerStatement).map(({ id }) => id)
    const rows = new Map((await listApiKeys(context.orm, ids)).map((row) => [row.key.id, row]))
    for (const id of ids) {
      const row = rows.get(id)
      if (row !== undefined) data.push(showApiKey(row, context))
    }
    await pace()
  }
  return { data }
}

async function createKey(context: OperationContext, input: typeof createInput.infer) {
  const { orm, registry, now } = context
  const organization = findOrganization(registry, input.organization)
  checkNameIsFree('key', registry.keys.values(), input.name, organization.id)
  const workspaceName = input.workspace ?? 'default'
  const workspace = await findWorkspace(orm, organization.id, workspaceName)
  if (workspace === undefined) throw notFound('workspace', workspaceName)
  const owner = await findOrDraftOwner(context, organization.id, input.owner ?? 'admin')
  const kind = input.kind ?? 'inference'
  const { row: draft, text } = draftApiKey(
    { organizationId: organization.id, workspaceId: workspace.id, ownerId: owner.user.id, name: input.name, kind },
    now(),
  )
  const row = { ...draft, ...boundsOf(input, now()) }
  checkBounds(row, input)
  await commit(context, [...owner.statements, insertApiKey(orm, row)], [...owner.touched, { kind: 'key', id: row.id }])
  return { ...(await show(context, row.id)), key: text }
}

async function updateKey(context: OperationContext, input: typeof updateInput.infer) {
  checkChanges(input, ['organization', 'key'])
  const { registry } = context
  const key = pick(context, input)
  if (input.name !== undefined) checkNameIsFree('key', registry.keys.values(), input.name, key.organizationId, key.id)
  const fields: Partial<ApiKey> = {
    ...boundsOf(input, context.now()),
    ...(input.name === undefined ? {} : { name: input.name }),
    ...(input.disabled === undefined ? {} : { disabled: input.disabled }),
  }
  checkBounds({ ...key, ...fields }, input)
  return change(context, input, fields)
}

/** The columns that the given bounds set; what is absent stays as it is. */
function boundsOf(input: typeof boundsInput.infer, now: number): Partial<ApiKey> {
  const { expires_at, limit, limit_reset, requests_per_minute, tokens_per_minute, allowed_models, allowed_presets } =
    input
  if (expires_at instanceof Date && expires_at.getTime() <= now)
    throw new Fault('invalid', 'expires_at must be in the future')
  return {
    ...(expires_at === undefined ? {} : { expiresAt: expires_at?.getTime() ?? null }),
    ...(limit === undefined
      ? {}
      : { limitNanodollars: limit === null ? null : Math.round(limit * nanodollarsPerDollar) }),
    ...(limit_reset === undefined ? {} : { limitReset: limit_reset }),
    ...(requests_per_minute === undefined ? {} : { requestsPerMinute: requests_per_minute }),
    ...(tokens_per_minute === undefined ? {} : { tokensPerMinute: tokens_per_minute }),
    ...(allowed_models === undefined ? {} : { allowedModels: allowed_models }),
    ...(allowed_presets === undefined ? {} : { allowedPresets: allowed_presets }),
  }
}

/** A management key calls no inference, so that a bound on inference would promise what nothing keeps; and so would the period of no limit. */
function checkBounds(key: ApiKey, { limit_reset }: typeof boundsInput.infer): void {
  const { kind, limitNanodollars, requestsPerMinute, tokensPerMinute, allowedModels, allowedPresets } = key
  const bounds = [limitNanodollars, requestsPerMinute, tokensPerMinute, allowedModels, allowedPresets]
  const isBounded = bounds.some((bound) => bound !== null)
  if (kind !== 'inference' && isBounded)
    throw new Fault(
      'invalid',
      'Limits, rates, models and presets are for inference keys; a management key calls no inference',
    )
  if (typeof limit_reset === 'string' && limitNanodollars === null)
    throw new Fault('invalid', `There is no limit that could begin anew ${limit_reset}; give one with the period`)
}

function pick(
  { registry }: AdminContext,
  { organization, key }: { organization?: string; key: string },
): Readonly<ApiKey> {
  return findKey(registry, key, findOrganization(registry, organization).id)
}

type KeyShown = ReturnType<typeof showApiKey>

function showDeleted({ id, name }: KeyShown) {
  return { id, name, deleted: true as const }
}

/** One or several keys in one commit. A policy has one key, so each key names the policies that it stops. */
async function changeSome<Shown extends object>(
  context: OperationContext,
  { organization, key, keys = [] }: typeof someInput.infer,
  fields: Pick<Partial<ApiKey>, 'disabled' | 'deletedAt'>,
  showChanged: (key: KeyShown) => Shown,
): Promise<(Shown & Affected) | { data: (Shown & Affected)[] }> {
  const { orm, now } = context
  const named = (key === undefined ? keys : [key]).map((reference) => pick(context, { organization, key: reference }))
  const ids = [...new Set(named.map(({ id }) => id))]
  const isStopping = fields.disabled !== false
  const affected = ids.map((id) => (isStopping ? readAffected(context, ({ keyId }) => keyId === id) : {}))
  await commit(
    context,
    ids.map((id) => updateApiKey(orm, id, { ...fields, updatedAt: now() })),
    ids.map((id) => ({ kind: 'key', id })),
  )
  const shown = await Promise.all(ids.map((id) => show(context, id)))
  const data = shown.map((row, index) => ({ ...showChanged(row), ...affected[index] }))
  const [only] = data
  return key === undefined || only === undefined ? { data } : only
}

async function change(
  context: OperationContext,
  input: { organization?: string; key: string },
  fields: Partial<ApiKey>,
) {
  const { id } = pick(context, input)
  await commit(context, [updateApiKey(context.orm, id, { ...fields, updatedAt: context.now() })], [{ kind: 'key', id }])
  return show(context, id)
}

async function show(context: AdminContext, id: string) {
  const row = await readApiKey(context.orm, id)
  if (row === undefined) throw notFound('key', id)
  return showApiKey(row, context)
}

/** A new key as a row, and its text, which exists nowhere else. */
export function draftApiKey(
  fields: Pick<ApiKey, 'organizationId' | 'workspaceId' | 'ownerId' | 'name' | 'kind'>,
  now: number,
): { row: ApiKey; text: string } {
  const text = createApiKeyText()
  const times = { createdAt: now, updatedAt: now, deletedAt: null }
  return {
    row: {
      id: crypto.randomUUID(),
      ...fields,
      hash: hashApiKey(text),
      label: labelApiKey(text),
      disabled: false,
      expiresAt: null,
      limitNanodollars: null,
      limitReset: null,
      requestsPerMinute: null,
      tokensPerMinute: null,
      allowedModels: null,
      allowedPresets: null,
      ...times,
    },
    text,
  }
}

export function showApiKey(
  { key, workspaceName, ownerName }: ApiKeyWithNames,
  { spending, now }: Pick<AdminContext, 'spending' | 'now'>,
) {
  const spent = spending.of(key.id, now())
  const dollars = (nanodollars: number) => nanodollars / nanodollarsPerDollar
  const dollarsOrNull = (nanodollars: number | null) => (nanodollars === null ? null : dollars(nanodollars))
  return {
    id: key.id,
    hash: key.hash,
    name: key.name,
    label: key.label,
    kind: key.kind,
    state: keyStateOf(key, now()),
    disabled: key.disabled,
    organization_id: key.organizationId,
    workspace_id: key.workspaceId,
    workspace: workspaceName,
    owner_id: key.ownerId,
    owner: ownerName,
    expires_at: timeOf(key.expiresAt),
    limit: dollarsOrNull(key.limitNanodollars),
    limit_reset: key.limitReset,
    limit_remaining: dollarsOrNull(remainingOf(key, spent)),
    usage: dollars(spent.ever),
    usage_daily: dollars(spent.daily),
    usage_weekly: dollars(spent.weekly),
    usage_monthly: dollars(spent.monthly),
    requests_per_minute: key.requestsPerMinute,
    tokens_per_minute: key.tokensPerMinute,
    allowed_models: key.allowedModels,
    allowed_presets: key.allowedPresets,
    created_at: timeOf(key.createdAt),
    updated_at: timeOf(key.updatedAt),
  }
}
