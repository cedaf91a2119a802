// Admin operations on API keys. The text of a key is returned once, when the key is created.

import { createPace, filterInSlices } from '../../../db/read/pace.ts'
import type { ApiKey } from '../../../db/schema/schema.ts'
import type { Role } from '../../../db/schema/value-names.ts'
import { insertApiKey, listApiKeys, readApiKey, updateApiKey } from '../../../db/tables/api-keys.ts'
import { findUser, findWorkspace } from '../../../db/tables/organizations.ts'
import { Fault } from '../../fault.ts'
import { checkUnchanged } from '../../http/entity-tag.ts'
import { createApiKeyText, hashApiKey, keyStateOf, labelApiKey } from '../../keys/api-key.ts'
import type { KeyBudget } from '../../keys/openapi.ts'
import { rejectAbove, roleOfNew } from '../../keys/roles.ts'
import { findOrDraftUser } from '../../keys/users.ts'
import { valueOfKey } from '../../registry/trust-rows.ts'
import { columnsOf, newColumnsOf } from '../kinds/fields.ts'
import { keyFields } from '../kinds/key.ts'
import { rejectHeaderOfTarget } from '../operation/attribution-header.ts'
import { rejectCrowd } from '../operation/budget-count.ts'
import { type ChangeContext, commit } from '../operation/commit.ts'
import type { Needs } from '../operation/context.ts'
import { withLastUse } from '../operation/last-use-response.ts'
import { containsText, showNext, showPage } from '../operation/list-page.ts'
import { operation } from '../operation/operation.ts'
import { checkChanges, checkNameIsFree, findKey, findOrganization, notFound, timeOf } from '../operation/references.ts'
import { type PolicyImpact, readAffected } from '../policies/policy-impact.ts'
import { budgetsOfKey } from './key-budgets.ts'
import { checkBounds, createInput, listInput, oneInput, rejectExpired, someInput, updateInput } from './key-input.ts'
import { showApiKey } from './key-response.ts'

const keysPerStatement = 100

export const keyOperations = {
  'keys.create': operation(createInput, createKey, { mutates: true }),
  'keys.list': operation(listInput, listKeys),
  'keys.update': operation(updateInput, updateKey, { mutates: true }),
  'keys.show': operation(oneInput, showUsed),
  'keys.disable': operation(someInput, disableKeys, { mutates: true }),
  'keys.enable': operation(someInput, enableKeys, { mutates: true }),
  'keys.delete': operation(someInput, deleteKeys, { mutates: true }),
}

export type KeyContext = ChangeContext & Needs<'spending' | 'role'>

function disableKeys(context: KeyContext, input: typeof someInput.infer) {
  return changeSome(context, input, { disabled: true }, (key) => key)
}

function enableKeys(context: KeyContext, input: typeof someInput.infer) {
  return changeSome(context, input, { disabled: false }, (key) => key)
}

function deleteKeys(context: KeyContext, input: typeof someInput.infer) {
  return changeSome(context, input, { deletedAt: context.now() }, showDeleted)
}

async function listKeys(
  context: Needs<'orm' | 'registry' | 'spending' | 'budgets' | 'lastUses' | 'now'>,
  input: typeof listInput.infer,
) {
  const { organization, owner, state, kind, contains, include_disabled: includesDisabled = true } = input
  const { id: organizationId } = findOrganization(context.registry, organization)
  const user = owner === undefined ? undefined : await findUser(context.orm, organizationId, owner)
  if (owner !== undefined && user === undefined)
    throw new Fault('not_found', `There is no user ${JSON.stringify(owner)}`, { hint: '; see: latchkey keys list' })
  const workspaceId = await workspaceIdOf(context, organizationId, input.workspace)
  const { keys } = context.registry
  const fits = containsText(contains)
  const isListed = (id: string) => {
    const held = keys.held(id)
    if (held === undefined) return false
    const read = <Field extends keyof ApiKey>(field: Field) => valueOfKey(held, field)
    const stateNow = () => keyStateOf({ disabled: read('disabled'), expiresAt: read('expiresAt') }, context.now())
    return (
      read('organizationId') === organizationId &&
      read('deletedAt') === null &&
      (user === undefined || read('userId') === user.id) &&
      (workspaceId === undefined || read('workspaceId') === workspaceId) &&
      (kind === undefined || read('kind') === kind) &&
      (includesDisabled || !read('disabled')) &&
      (state === undefined || stateNow() === state) &&
      (contains === undefined || fits(read('name')))
    )
  }
  const order = keys.keysNow()
  const showThem = (some: readonly string[]) => showSome(context, some)
  if (input.after !== undefined) return showNext(context, order, isListed, input, showThem)
  const createdAt = (id: string) => {
    const held = keys.held(id)
    return held && valueOfKey(held, 'createdAt')
  }
  return showPage(context, await filterInSlices(order, isListed), input, { show: showThem, createdAt })
}

/** A workspace that does not exist has no keys. */
async function workspaceIdOf({ orm }: Needs<'orm'>, organizationId: string, reference: string | undefined) {
  if (reference === undefined) return undefined
  return (await findWorkspace(orm, organizationId, reference))?.id ?? reference
}

async function showSome(context: Needs<'orm' | 'spending' | 'budgets' | 'now'>, all: readonly string[]) {
  const pace = createPace()
  const shown: (KeyShown & ReturnType<typeof limitedBy>)[] = []
  for (let start = 0; start < all.length; start += keysPerStatement) {
    const ids = all.slice(start, start + keysPerStatement)
    const rows = new Map((await listApiKeys(context.orm, ids)).map((row) => [row.key.id, row]))
    for (const id of ids) {
      const row = rows.get(id)
      if (row !== undefined) shown.push({ ...showApiKey(row, context), ...limitedBy(context, row.key) })
    }
    await pace()
  }
  return shown
}

/** Management keys have no budgets. */
function limitedBy(context: Needs<'budgets' | 'now'>, key: Readonly<ApiKey>): { limited_by?: KeyBudget[] } {
  return key.kind === 'inference' ? { limited_by: budgetsOfKey(context, key) } : {}
}

/** When each of the two texts was last used since the rotation, while both work. */
async function usesOfTexts({ registry, lastUses }: Needs<'registry' | 'lastUses'>, { id, previous_until }: KeyShown) {
  const { hash = '', previousHash = '' } = registry.keys.get(id) ?? {}
  if (previous_until === null || previousHash === '') return {}
  const uses = await lastUses.read([hash, previousHash])
  const at = (text: string) => timeOf(uses.get(text)?.usedAt ?? null)
  return { current_last_used_at: at(hash), previous_last_used_at: at(previousHash) }
}

async function showUsed(
  context: Needs<'orm' | 'registry' | 'spending' | 'budgets' | 'lastUses' | 'now'>,
  input: typeof oneInput.infer,
) {
  const key = pick(context, input)
  const shown = await showKey(context, key.id)
  const [used] = await withLastUse(context, [shown])
  return { ...shown, ...limitedBy(context, key), ...used, ...(await usesOfTexts(context, shown)) }
}

async function createKey(context: KeyContext, input: typeof createInput.infer) {
  const { orm, registry, now } = context
  const organization = findOrganization(registry, input.organization)
  checkNameIsFree('key', registry.keys, input.name, organization.id)
  const workspaceName = input.workspace ?? 'default'
  const workspace = await findWorkspace(orm, organization.id, workspaceName)
  if (workspace === undefined) throw notFound('workspace', workspaceName)
  const drafted = await findOrDraftUser(context, organization.id, input.owner ?? 'admin')
  rejectExpired(input, now())
  const ids = { organizationId: organization.id, workspaceId: workspace.id, userId: drafted.user.id }
  const { row, text } = draftApiKey(ids, input, now())
  rejectAbove(context.role, row)
  checkBounds(row, input)
  await rejectCrowd(registry.budgets.values(), [row])
  await commit(
    context,
    [...drafted.statements, insertApiKey(orm, row)],
    [...drafted.touched, { kind: 'key', id: row.id }],
  )
  return { ...(await showKey(context, row.id)), key: text }
}

async function updateKey(context: KeyContext, input: typeof updateInput.infer) {
  checkChanges(input, ['organization', 'key', 'if_match'])
  const { registry } = context
  const key = pick(context, input)
  rejectAbove(context.role, key)
  checkUnchanged(key, input.if_match)
  if (input.name !== undefined) checkNameIsFree('key', registry.keys, input.name, key.organizationId, key.id)
  rejectExpired(input, context.now())
  const fields = columnsOf<ApiKey>(keyFields, input)
  checkBounds({ ...key, ...fields }, input)
  rejectHeaderOfTarget(registry, { ...key, ...fields })
  if (input.labels !== undefined) await rejectCrowd(registry.budgets.values(), [{ ...key, ...fields }])
  return change(context, input, fields)
}

function pick(
  { registry }: Needs<'registry'>,
  { organization, key }: { organization?: string; key: string },
): Readonly<ApiKey> {
  return findKey(registry, key, findOrganization(registry, organization).id)
}

type KeyShown = ReturnType<typeof showApiKey>

function showDeleted({ id, name }: KeyShown) {
  return { id, name, deleted: true as const }
}

/** Changes one or several keys in one commit. Each key lists the policies that become inactive; a policy has one key. */
async function changeSome<Shown extends object>(
  context: KeyContext,
  { organization, key, keys = [] }: typeof someInput.infer,
  fields: Pick<Partial<ApiKey>, 'disabled' | 'deletedAt'>,
  showChanged: (key: KeyShown) => Shown,
): Promise<(Shown & PolicyImpact) | { data: (Shown & PolicyImpact)[] }> {
  const { orm, now } = context
  const named = (key === undefined ? keys : [key]).map((reference) => pick(context, { organization, key: reference }))
  for (const each of named) rejectAbove(context.role, each)
  const ids = [...new Set(named.map(({ id }) => id))]
  const isStopping = fields.disabled !== false
  const affected = isStopping ? readAffected(context, 'keyId', ids) : undefined
  await commit(
    context,
    ids.map((id) => updateApiKey(orm, id, { ...fields, updatedAt: now() })),
    ids.map((id) => ({ kind: 'key', id })),
  )
  const shown = await Promise.all(ids.map((id) => showKey(context, id)))
  const data = shown.map((row, index) => ({ ...showChanged(row), ...affected?.get(ids[index] ?? '') }))
  const [only] = data
  return key === undefined || only === undefined ? { data } : only
}

async function change(
  context: ChangeContext & Needs<'spending'>,
  input: { organization?: string; key: string },
  fields: Partial<ApiKey>,
) {
  const { id } = pick(context, input)
  await commit(context, [updateApiKey(context.orm, id, { ...fields, updatedAt: context.now() })], [{ kind: 'key', id }])
  return showKey(context, id)
}

export async function showKey(context: Needs<'orm' | 'spending' | 'now'>, id: string) {
  const row = await readApiKey(context.orm, id)
  if (row === undefined) throw notFound('key', id)
  return showApiKey(row, context)
}

type NewColumns = Omit<ApiKey, 'id' | 'organizationId' | 'workspaceId' | 'userId' | 'hash' | 'label'>

/** The row of a new key, and its text, which is stored nowhere; `now` in milliseconds. */
export function draftApiKey(
  ids: Pick<ApiKey, 'organizationId' | 'workspaceId' | 'userId'>,
  input: { name: string; kind?: ApiKey['kind']; role?: Role },
  now: number,
): { row: ApiKey; text: string } {
  const text = createApiKeyText()
  const columns = {
    ...newColumnsOf<ApiKey>(keyFields, input),
    ...roleOfNew(input),
    ...{ managedBy: null, createdAt: now, updatedAt: now, deletedAt: null, previousHash: '', previousUntil: 0 },
  } as NewColumns
  return {
    row: { id: crypto.randomUUID(), ...ids, hash: hashApiKey(text), label: labelApiKey(text), ...columns },
    text,
  }
}
