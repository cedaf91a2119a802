// Admin operations on organizations and their workspaces, and the first start of a database.

import { claimRecordings, type Organization, planNames, type User, type Workspace } from '../../db/schema/schema.ts'
import { insertApiKey } from '../../db/tables/api-keys.ts'
import {
  findWorkspace,
  insertOrganization,
  insertUser,
  insertWorkspace,
  listOrganizations,
  listWorkspaces,
  updateOrganization,
} from '../../db/tables/organizations.ts'
import { insertSigningKey } from '../../db/tables/signing-keys.ts'
import { Fault } from '../fault.ts'
import { isEntitled } from '../federation/policy-binding.ts'
import { checkUnchanged } from '../http/entity-tag.ts'
import { createUserRow } from '../keys/users.ts'
import { isTimeZone } from '../spending/periods.ts'
import { readMasterKey } from '../tokens/master-key.ts'
import { createSigningKey } from '../tokens/signing-keys.ts'
import { type } from '../values/shape.ts'
import { nameShape, referenceShape } from '../values/shapes.ts'
import { showApiKey } from './keys/key-response.ts'
import { draftApiKey } from './keys/keys.ts'
import { type ChangeContext, commit } from './operation/commit.ts'
import type { Needs } from './operation/context.ts'
import { isInitialized } from './operation/context.ts'
import { operation } from './operation/operation.ts'
import { checkChanges, findOrganization, organizationInput, timeOf } from './operation/references.ts'

const planShape = type.enumerated(...planNames)
const recordingShape = type.enumerated(...claimRecordings)

const initInput = type({ '+': 'reject', 'owner?': nameShape })
const createInput = type({
  '+': 'reject',
  name: nameShape,
  'plan?': planShape,
  'record_claims?': recordingShape,
})
const zoneShape = type('string')
  .narrow((name, context) => isTimeZone(name) || context.mustBe('the name of a time zone such as Europe/Berlin'))
  .configure({ says: 'IANA name of a time zone', minLength: 1, maxLength: 64 })
const updateInput = type({
  '+': 'reject',
  organization: referenceShape,
  'record_claims?': recordingShape,
  'time_zone?': zoneShape.or('null'),
  'budget_headers?': 'boolean',
  'upstream_headers?': 'boolean',
  'if_match?': 'string',
})
const planInput = type({ '+': 'reject', organization: referenceShape, plan: planShape })
const nothingInput = type({ '+': 'reject' })
const oneInput = type({ '+': 'reject', ...organizationInput })
const workspaceCreateInput = type({ '+': 'reject', ...organizationInput, name: nameShape })

const time = type('string').configure({ format: 'date-time' })
export const organizationResponse = type({
  id: 'string',
  name: 'string',
  plan: planShape,
  workload_identity: 'boolean',
  record_claims: recordingShape,
  time_zone: 'string | null',
  budget_headers: 'boolean',
  upstream_headers: 'boolean',
  created_at: time,
  updated_at: time,
}).configure({ title: 'Organization' })
export const workspaceResponse = type({
  id: 'string',
  name: 'string',
  organization_id: 'string',
  created_at: time,
}).configure({ title: 'Workspace' })

export const organizationOperations = {
  init: operation(initInput, initialize, { mutates: true }),
  'organizations.create': operation(createInput, createOrganization, { mutates: true }),
  'organizations.list': operation(nothingInput, async ({ orm }: Needs<'orm'>) => ({
    data: (await listOrganizations(orm)).map(showOrganization),
  })),
  'organizations.show': operation(oneInput, async ({ registry }: Needs<'registry'>, { organization }) =>
    showOrganization(findOrganization(registry, organization)),
  ),
  'organizations.plan': operation(planInput, changePlan, { mutates: true }),
  'organizations.update': operation(updateInput, changeSettings, { mutates: true }),
  'workspaces.create': operation(workspaceCreateInput, createWorkspace, { mutates: true }),
  'workspaces.list': operation(oneInput, listOf),
}

async function createOrganization(
  context: ChangeContext,
  { name, plan = 'enterprise', record_claims = 'selected' }: typeof createInput.infer,
) {
  if ([...context.registry.organizations.values()].some((row) => row.name === name)) {
    throw new Fault('conflict', `An organization named ${JSON.stringify(name)} already exists; choose another name`)
  }
  // The first organization stays the first, whatever the clock says.
  const at = Math.max(context.now(), ...[...context.registry.organizations.values()].map((row) => row.createdAt + 1))
  const { organization, workspace } = draftOrganization(name, { plan, recordClaims: record_claims }, at)
  const statements = [insertOrganization(context.orm, organization), insertWorkspace(context.orm, workspace)]
  await commit(context, statements, [{ kind: 'organization', id: organization.id }])
  return showOrganization(organization)
}

function changePlan(context: ChangeContext, { organization, plan }: typeof planInput.infer) {
  return change(context, organization, { plan })
}

function changeSettings(context: ChangeContext, input: typeof updateInput.infer) {
  checkChanges(input, ['organization', 'if_match'])
  checkUnchanged(findOrganization(context.registry, input.organization), input.if_match)
  const { organization, record_claims: recordClaims, time_zone: timeZone } = input
  const { budget_headers: budgetHeaders, upstream_headers: upstreamHeaders } = input
  return change(context, organization, {
    ...(recordClaims === undefined ? {} : { recordClaims }),
    ...(timeZone === undefined ? {} : { timeZone }),
    ...(budgetHeaders === undefined ? {} : { budgetHeaders }),
    ...(upstreamHeaders === undefined ? {} : { upstreamHeaders }),
  })
}

async function change(context: ChangeContext, reference: string, fields: Partial<Organization>) {
  const organization = findOrganization(context.registry, reference)
  const change = { ...fields, updatedAt: context.now() }
  await commit(
    context,
    [updateOrganization(context.orm, organization.id, change)],
    [{ kind: 'organization', id: organization.id }],
  )
  return showOrganization({ ...organization, ...change })
}

async function createWorkspace(
  context: ChangeContext,
  { organization: reference, name }: typeof workspaceCreateInput.infer,
) {
  const organization = findOrganization(context.registry, reference)
  if ((await findWorkspace(context.orm, organization.id, name)) !== undefined) {
    throw new Fault('conflict', `A workspace named ${JSON.stringify(name)} already exists; choose another name`)
  }
  const workspace = draftWorkspace(organization.id, name, context.now())
  await commit(context, [insertWorkspace(context.orm, workspace)], [{ kind: 'workspace', id: workspace.id }])
  return showWorkspace(workspace)
}

async function listOf({ orm, registry }: Needs<'orm' | 'registry'>, { organization }: typeof oneInput.infer) {
  const rows = await listWorkspaces(orm, findOrganization(registry, organization).id)
  return { data: rows.map(showWorkspace) }
}

/** Creates the default organization with a workspace, a user, a management key and a signing key, all in one commit. It runs only once. */
async function initialize(
  context: ChangeContext & Needs<'config' | 'spending'>,
  { owner = 'admin' }: typeof initInput.infer,
) {
  if (isInitialized(context))
    throw new Fault(
      'conflict',
      `The database ${JSON.stringify(context.config.databasePath)} is already initialized; to create another management key: latchkey keys create --management --name NAME`,
      { reason: 'already_initialized' },
    )
  const { orm, now } = context
  const signingKey = await createSigningKey(await readMasterKey(context.config.masterKey, { create: true }), now())
  const { organization, workspace } = draftOrganization(
    'default',
    { plan: 'enterprise', recordClaims: 'selected' },
    now(),
  )
  const user: User = createUserRow(organization.id, owner, now())
  const ids = { organizationId: organization.id, workspaceId: workspace.id, userId: user.id }
  const { row, text } = draftApiKey(ids, { name: 'first management key', kind: 'management' }, now())
  const statements = [
    insertOrganization(orm, organization),
    insertWorkspace(orm, workspace),
    insertUser(orm, user),
    insertApiKey(orm, row),
    insertSigningKey(orm, signingKey),
  ]
  await commit(context, statements, [
    { kind: 'organization', id: organization.id },
    { kind: 'key', id: row.id },
  ])
  return {
    database: context.config.databasePath,
    master_key_file: context.config.masterKey.kind === 'file' ? context.config.masterKey.path : null,
    organization: showOrganization(organization),
    workspace: showWorkspace(workspace),
    management_key: showApiKey({ key: row, workspaceName: workspace.name, userName: user.name }, context),
    key: text,
  }
}

function draftOrganization(
  name: string,
  fields: Pick<Organization, 'plan' | 'recordClaims'>,
  now: number,
): { organization: Organization; workspace: Workspace } {
  const rest = { timeZone: null, budgetHeaders: false, upstreamHeaders: false, createdAt: now, updatedAt: now }
  const organization = { id: crypto.randomUUID(), name, ...fields, ...rest }
  return { organization, workspace: draftWorkspace(organization.id, 'default', now) }
}

function draftWorkspace(organizationId: string, name: string, now: number): Workspace {
  return { id: crypto.randomUUID(), organizationId, name, createdAt: now }
}

function showOrganization(row: Readonly<Organization>): typeof organizationResponse.infer {
  return {
    id: row.id,
    name: row.name,
    plan: row.plan,
    workload_identity: isEntitled(row),
    record_claims: row.recordClaims,
    time_zone: row.timeZone,
    budget_headers: row.budgetHeaders,
    upstream_headers: row.upstreamHeaders,
    created_at: timeOf(row.createdAt),
    updated_at: timeOf(row.updatedAt),
  }
}

function showWorkspace(row: Workspace): typeof workspaceResponse.infer {
  return { id: row.id, name: row.name, organization_id: row.organizationId, created_at: timeOf(row.createdAt) }
}
