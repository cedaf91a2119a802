// The key endpoints as the official client has them (reference: Key endpoints): `GET /key` for every caller, `/keys`
// for management keys.

import type { Actor } from '../../db/tables/admin-changes.ts'
import { Fault } from '../fault.ts'
import { readJson } from '../http/body.ts'
import { documented } from '../http/documented-route.ts'
import type { Endpoint, Handle } from '../http/endpoint.ts'
import { entityTag, ifMatchOf, withCurrent } from '../http/entity-tag.ts'
import { checkFields, readQuery, rejectQuery } from '../http/input.ts'
import { json } from '../http/reply.ts'
import { keyListRowsMax, operationBodyBytesMax } from '../limits.ts'
import type { RequestFacts } from '../spending/budget.ts'
import type { Budgets } from '../spending/budgets.ts'
import { keyReferenceText } from '../values/id-text.ts'
import { recordedText } from '../values/recorded-text.ts'
import { actorOf } from './actor.ts'
import type { Key } from './api-key.ts'
import { attributionOfRequest } from './attribution.ts'
import { authenticate, authenticateManagement, type BearerContext, type Principal } from './bearer.ts'
import {
  createBody,
  docs,
  ignoredFields,
  type keyResponse,
  listQuery,
  rotateBody,
  type ShownKey,
  shownNames,
  updateBody,
} from './openapi.ts'

/** A key as the operations show it. */
type KeyWithUser = ShownKey & { owner_id: string }
type Fields = Omit<typeof updateBody.inferIn, (typeof ignoredFields)[number]>
type Creation = Omit<typeof createBody.inferIn, (typeof ignoredFields)[number] | 'workspace_id'>
type Filter = Omit<typeof listQuery.inferIn, 'workspace_id'> & { workspace: string }
type KeyReference = { organization: string; key: string }
type Run<Name, Input, Response> = (name: Name, input: Input, actor?: Actor) => Promise<Response>
/**
 * The admin operations that these endpoints call. An intersection, since TypeScript compares overloads without their
 * type parameters.
 */
type RunKeyOperation = Run<'keys.show', KeyReference, KeyWithUser> &
  Run<'keys.list', Filter & { organization: string }, { data: KeyWithUser[]; total_count?: number }> &
  Run<
    'keys.create',
    Creation & { organization: string; workspace: string; owner: string },
    KeyWithUser & { key: string }
  > &
  Run<'keys.update', Fields & KeyReference & { if_match?: string }, KeyWithUser> &
  Run<'keys.rotate', KeyReference & typeof rotateBody.infer, KeyWithUser & { key: string }> &
  Run<'keys.delete', KeyReference, unknown>

export function createKeyEndpoints(run: RunKeyOperation): Endpoint<CurrentKeyContext>[] {
  return [
    documented({ ...docs.current, handle: showCurrent(run) }),
    documented({ ...docs.list, handle: list(run) }),
    documented({ ...docs.create, handle: create(run) }),
    documented({ ...docs.show, handle: show(run) }),
    documented({ ...docs.update, handle: update(run) }),
    documented({ ...docs.rotate, handle: rotate(run) }),
    documented({ ...docs.remove, handle: remove(run) }),
  ]
}

type CurrentKeyContext = BearerContext & {
  budgets: Pick<Budgets, 'remainingFor' | 'running'>
  dispatch: {
    ofKey: (keyId: string) => { running: number; waiting: number }
    runningOfBudget: (counter: string) => number
  }
}

/** What runs and waits at this node, and what limits it. */
function queueOf({ key }: Principal, asking: RequestFacts, { budgets, dispatch }: CurrentKeyContext) {
  const { running, waiting } = dispatch.ofKey(key.id)
  const limits = budgets.running.countersOf(key, { ...asking, models: [] }).map((counter) => ({
    budget: budgets.running.nameOf(counter) ?? '',
    running: dispatch.runningOfBudget(counter),
    concurrent_requests: budgets.running.limitOf(counter) ?? 0,
  }))
  return { running, waiting, budgets: limits }
}

/** What remains of the budgets of a caller. */
function budgetsOf({ key }: Principal, asking: RequestFacts, { budgets, now }: CurrentKeyContext) {
  return budgets.remainingFor(key, asking, now()).map(({ budget, per, unit, limit, spent, remaining, resetsAt }) => ({
    ...{ name: budget.row.name, per, unit, limit, spent, remaining },
    resets_at: resetsAt === Infinity ? null : new Date(resetsAt).toISOString(),
  }))
}

function showCurrent(run: RunKeyOperation): Handle<CurrentKeyContext> {
  return async (request, context) => {
    const principal = await authenticate(request, context)
    const { key, accessToken } = principal
    rejectQuery(request)
    const asking = {
      policyId: accessToken?.policyId ?? null,
      attribution: attributionOfRequest(principal, request),
      session: recordedText(request.headers.get('x-session-id')),
    }
    // `budgets` has those of the caller.
    const { limited_by: _, ...shown } = await findKey(run, key, key.hash)
    const isManagement = key.kind !== 'inference'
    const data = {
      ...responseOf(shown),
      organization_id: key.organizationId,
      is_management_key: isManagement,
      is_provisioning_key: isManagement,
      is_free_tier: false,
      allowed_data_regions: [],
      free_model_daily_requests: { limit: 0, remaining: 0, used: 0 },
      budgets: budgetsOf(principal, asking, context),
      queue: queueOf(principal, asking, context),
      rate_limit: { requests: -1, interval: '1m', note: 'Not in use; see requests_per_minute' },
    }
    return reply(200, { data })
  }
}

function list(run: RunKeyOperation): Handle<BearerContext> {
  return async (request, context) => {
    const key = await authenticateManagement(request, context, 'keys.list')
    const query = readQuery(request, listQuery)
    const { workspace_id: workspace = key.workspaceId, limit = keyListRowsMax, unused_since, ...others } = query
    const filter = { ...others, ...(unused_since && { unused_since: unused_since.toISOString() }) }
    const listed = await run('keys.list', { ...filter, organization: key.organizationId, workspace, limit })
    return reply(200, { data: listed.data.map(responseOf), total_count: listed.total_count })
  }
}

function create(run: RunKeyOperation): Handle<BearerContext> {
  return async (request, context, { requestId }) => {
    const key = await authenticateManagement(request, context, 'keys.create')
    rejectQuery(request)
    const body = await readJson(request, operationBodyBytesMax)
    const { workspace_id, ...fields } = checkFields(body, createBody, ignoredFields)
    const input = {
      ...fields,
      organization: key.organizationId,
      workspace: workspace_id ?? key.workspaceId,
      owner: key.userId,
    }
    const made = await run('keys.create', input, actorOf(request, context, requestId))
    return reply(201, { data: responseOf(made), key: made.key })
  }
}

function show(run: RunKeyOperation): Handle<BearerContext> {
  return async (request, context, { params }) => {
    const key = await authenticateManagement(request, context, 'keys.show')
    rejectQuery(request)
    const data = responseOf(await findKey(run, key, params.hash))
    return reply(200, { data }, entityTag(data))
  }
}

function update(run: RunKeyOperation): Handle<BearerContext> {
  return async (request, context, { params, requestId }) => {
    const key = await authenticateManagement(request, context, 'keys.update')
    rejectQuery(request)
    const fields = checkFields(await readJson(request, operationBodyBytesMax), updateBody, ignoredFields)
    const { hash } = await findKey(run, key, params.hash)
    const input = { ...fields, ...ifMatchOf(request), organization: key.organizationId, key: hash }
    const change = run('keys.update', input, actorOf(request, context, requestId))
    const data = responseOf(await withCurrent(change, async () => responseOf(await findKey(run, key, hash))))
    return reply(200, { data }, entityTag(data))
  }
}

function rotate(run: RunKeyOperation): Handle<BearerContext> {
  return async (request, context, { params, requestId }) => {
    const key = await authenticateManagement(request, context, 'keys.rotate')
    rejectQuery(request)
    const body = checkFields(await readJson(request, operationBodyBytesMax), rotateBody, [])
    const { hash } = await findKey(run, key, params.hash)
    const input = { ...body, organization: key.organizationId, key: hash }
    const rotated = await run('keys.rotate', input, actorOf(request, context, requestId))
    return reply(200, { data: responseOf(rotated), key: rotated.key })
  }
}

function remove(run: RunKeyOperation): Handle<BearerContext> {
  return async (request, context, { params, requestId }) => {
    const key = await authenticateManagement(request, context, 'keys.delete')
    rejectQuery(request)
    const { hash } = await findKey(run, key, params.hash)
    await run('keys.delete', { organization: key.organizationId, key: hash }, actorOf(request, context, requestId))
    return reply(200, { deleted: true })
  }
}

/** @throws Fault `not_found` when the organization has no key with this hash or id */
async function findKey(run: RunKeyOperation, { organizationId }: Key, reference = ''): Promise<KeyWithUser> {
  const notFound = () => new Fault('not_found', 'Resource not found')
  // No name looks like an id.
  if (!keyReferenceText.test(reference)) throw notFound()
  try {
    return await run('keys.show', { organization: organizationId, key: reference })
  } catch (error) {
    throw error instanceof Fault && error.code === 'not_found' ? notFound() : error
  }
}

function reply(status: number, body: unknown, headers: { etag?: string } = {}): Response {
  return json(status, body, { 'cache-control': 'no-store', ...headers })
}

/**
 * A key as the official client reads it, with the limits that only this service has. The fields for keys of other
 * providers are empty.
 */
function responseOf(shown: KeyWithUser): typeof keyResponse.infer {
  const own = Object.fromEntries(shownNames.map((name) => [name, shown[name]])) as ShownKey
  return {
    ...own,
    creator_user_id: shown.owner_id,
    byok_usage: 0,
    byok_usage_daily: 0,
    byok_usage_weekly: 0,
    byok_usage_monthly: 0,
    include_byok_in_limit: false,
    external_user: null,
  }
}
