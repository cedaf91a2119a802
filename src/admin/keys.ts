// Admin operations on API keys. A key's text leaves here once, when it is made.

import { type ApiKeyWithNames, insertApiKey, listApiKeys, readApiKey, updateApiKey } from '../../db/api-keys.ts'
import { findUser, findWorkspace, insertUser } from '../../db/organizations.ts'
import { type ApiKey, keyKinds, type User } from '../../db/schema.ts'
import type { AdminContext } from '../context.ts'
import { createApiKeyText, hashApiKey, labelApiKey } from '../keys/api-key.ts'
import { commit } from '../registry.ts'
import { type } from '../shape.ts'
import { type Affected, readAffected } from './affected.ts'
import { type OperationContext, operation } from './operation.ts'
import {
  checkNameIsFree,
  findKey,
  findOrganization,
  nameShape,
  notFound,
  organizationInput,
  referenceShape,
  timeOf,
} from './references.ts'

const createInput = type({
  '+': 'reject',
  ...organizationInput,
  name: nameShape,
  'kind?': type.enumerated(...keyKinds),
  'owner?': nameShape,
  'workspace?': referenceShape,
})
const listInput = type({ '+': 'reject', ...organizationInput })
const oneInput = type({ '+': 'reject', ...organizationInput, key: referenceShape })

export const keyOperations = {
  'keys.create': operation(createInput, createKey),
  'keys.list': operation(listInput, async ({ orm, registry }, { organization }) => {
    const rows = await listApiKeys(orm, findOrganization(registry, organization).id)
    return { data: rows.map(showApiKey) }
  }),
  'keys.show': operation(oneInput, async (context, input) => show(context, pick(context, input).id)),
  'keys.disable': operation(oneInput, async (context, input) => {
    const affected = affectedBy(context, input)
    return { ...(await change(context, input, { disabled: true })), ...affected }
  }),
  'keys.enable': operation(oneInput, (context, input) => change(context, input, { disabled: false })),
  'keys.delete': operation(oneInput, async (context, input) => {
    const affected = affectedBy(context, input)
    const { id } = await change(context, input, { deletedAt: context.now() })
    return { id, deleted: true, ...affected }
  }),
}

async function createKey(context: OperationContext, input: typeof createInput.infer) {
  const { orm, registry, now } = context
  const organization = findOrganization(registry, input.organization)
  checkNameIsFree('key', registry.keys.values(), input.name, organization.id)
  const workspaceName = input.workspace ?? 'default'
  const workspace = await findWorkspace(orm, organization.id, workspaceName)
  if (workspace === undefined) throw notFound('workspace', workspaceName)
  const ownerName = input.owner ?? 'admin'
  const known = await findUser(orm, organization.id, ownerName)
  const owner = known ?? createUserRow(organization.id, ownerName, now())
  const kind = input.kind ?? 'inference'
  const { row, text } = draftApiKey(
    { organizationId: organization.id, workspaceId: workspace.id, ownerId: owner.id, name: input.name, kind },
    now(),
  )
  const statements = [...(known === undefined ? [insertUser(orm, owner)] : []), insertApiKey(orm, row)]
  await commit(context, statements, [{ kind: 'key', id: row.id }])
  return { ...(await show(context, row.id)), key: text }
}

function pick({ registry }: AdminContext, { organization, key }: typeof oneInput.infer): Readonly<ApiKey> {
  return findKey(registry, key, findOrganization(registry, organization).id)
}

function affectedBy(context: AdminContext, input: typeof oneInput.infer): Affected {
  const { id } = pick(context, input)
  return readAffected(context.registry, ({ keyId }) => keyId === id)
}

async function change(context: OperationContext, input: typeof oneInput.infer, fields: Partial<ApiKey>) {
  const { id } = pick(context, input)
  await commit(context, [updateApiKey(context.orm, id, { ...fields, updatedAt: context.now() })], [{ kind: 'key', id }])
  return show(context, id)
}

async function show({ orm }: AdminContext, id: string) {
  const row = await readApiKey(orm, id)
  if (row === undefined) throw notFound('key', id)
  return showApiKey(row)
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
      ...times,
    },
    text,
  }
}

/** Decisions §6: a user id is `user_` and 24 letters or digits. */
export function createUserRow(organizationId: string, name: string, now: number): User {
  const digits = Buffer.from(crypto.getRandomValues(new Uint8Array(12))).toString('hex')
  return { id: `user_${digits}`, organizationId, name, createdAt: now }
}

export function showApiKey({ key, workspaceName, ownerName }: ApiKeyWithNames) {
  return {
    id: key.id,
    hash: key.hash,
    name: key.name,
    label: key.label,
    kind: key.kind,
    disabled: key.disabled,
    organization_id: key.organizationId,
    workspace_id: key.workspaceId,
    workspace: workspaceName,
    owner_id: key.ownerId,
    owner: ownerName,
    created_at: timeOf(key.createdAt),
    updated_at: timeOf(key.updatedAt),
  }
}
