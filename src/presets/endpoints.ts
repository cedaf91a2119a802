// The preset endpoints (interface §4.3, decisions §7): any credential of the workspace reads, a management key that may write changes.
import { readPresetVersion } from '../../db/presets.ts'
import type { Context, Endpoint, RequestInfo } from '../context.ts'
import { Fault } from '../fault.ts'
import { readJson } from '../http/body.ts'
import { queryOf } from '../http/query.ts'
import { json } from '../http/reply.ts'
import type { Params } from '../http/router.ts'
import { authenticate, authenticateManagement } from '../keys/bearer.ts'
import { operationBodyBytesMax, presetBodyBytesMax, presetPageRowsDefault, presetPageRowsMax } from '../limits.ts'
import type { Actor } from '../registry.ts'
import { giveWay } from '../turns.ts'
import { showDesignated, versionText } from './answers.ts'
import {
  archiveDescription,
  listDescription,
  restoreDescription,
  saveDescriptions,
  showDescription,
  updateDescription,
  versionDescription,
  versionsDescription,
} from './descriptions.ts'
import { type Dialect, readPreset } from './preset.ts'
import { checkPresetSlug, isPresetSlug } from './reference.ts'

type Key = { id: string; organizationId: string; workspaceId: string }
/** The door to the admin operations. */
type RunOperation = (name: string, input: unknown, actor?: Actor) => Promise<unknown>

const dialectOfPath: [path: string, dialect: Dialect][] = [
  ['chat/completions', 'chat'],
  ['messages', 'messages'],
  ['responses', 'responses'],
]

/** What a caller may change; an archived preset is made and unmade by requests of their own. */
const settable = ['name', 'description', 'status', 'designated_version']

export function createPresetEndpoints(runOperation: RunOperation): Endpoint[] {
  const one = '/presets/{slug}'
  return [
    ...dialectOfPath.map(
      ([path, dialect]): Endpoint => ({
        method: 'POST',
        path: `${one}/${path}`,
        describes: saveDescriptions[dialect],
        handle: (request, context, info) => save(dialect, request, context, info),
      }),
    ),
    { method: 'GET', path: '/presets', describes: listDescription, handle: list },
    { method: 'GET', path: one, describes: showDescription, handle: show },
    { method: 'GET', path: `${one}/versions`, describes: versionsDescription, handle: listVersions },
    { method: 'GET', path: `${one}/versions/{version}`, describes: versionDescription, handle: showOneVersion },
    { method: 'PATCH', path: one, describes: updateDescription, handle: update },
    { method: 'DELETE', path: one, describes: archiveDescription, handle: changing('presets.archive') },
    { method: 'POST', path: `${one}/restore`, describes: restoreDescription, handle: changing('presets.restore') },
  ]

  async function list(request: Request, context: Context): Promise<Response> {
    const { key } = await authenticate(request, context)
    return reply(await run('presets.list', { ...within(key), ...readPage(request) }))
  }

  async function show(request: Request, context: Context, { params }: RequestInfo): Promise<Response> {
    const { key } = await authenticate(request, context)
    return reply({ data: await run('presets.show', { ...within(key), preset: slugOf(params) }) })
  }

  async function showOneVersion(request: Request, context: Context, { params }: RequestInfo): Promise<Response> {
    const { key } = await authenticate(request, context)
    if (!/^[1-9]\d{0,8}$/.test(params.version ?? '')) throw notFound()
    const preset = `${slugOf(params)}@${params.version}`
    return reply({ data: await run('presets.version', { ...within(key), preset }) })
  }

  async function update(request: Request, context: Context, { params, requestId }: RequestInfo): Promise<Response> {
    const key = await authenticateManagement(request, context, { writes: true })
    const fields = await readJson(request, operationBodyBytesMax)
    const given = Object.keys(fields)
    if (given.length === 0) throw new Fault('invalid', `Nothing to change: send at least one of ${settable.join(', ')}`)
    const unknown = given.find((name) => !settable.includes(name))
    if (unknown !== undefined)
      throw new Fault('invalid', `${JSON.stringify(unknown)} cannot be changed: use one of ${settable.join(', ')}`)
    const input = { ...fields, ...within(key), preset: slugOf(params) }
    return reply({ data: await run('presets.update', input, actorOf(key, requestId)) })
  }

  function changing(operation: string): Endpoint['handle'] {
    return async (request, context, { params, requestId }) => {
      const key = await authenticateManagement(request, context, { writes: true })
      return reply({ data: await run(operation, { ...within(key), preset: slugOf(params) }, actorOf(key, requestId)) })
    }
  }

  /** What is another workspace's is told no differently than what is not there. */
  async function run(operation: string, input: object, actor?: Actor): Promise<unknown> {
    try {
      return await runOperation(operation, input, actor)
    } catch (error) {
      throw error instanceof Fault && error.code === 'not_found' ? notFound() : error
    }
  }
}

/** Interface §4.3. Does not take the way of the other changes, of which each is a commit of its own. */
async function save(
  dialect: Dialect,
  request: Request,
  context: Context,
  { params, requestId }: RequestInfo,
): Promise<Response> {
  const key = await authenticateManagement(request, context, { writes: true })
  const slug = params.slug ?? ''
  checkPresetSlug(slug)
  const content = readPreset(dialect, await readJson(request, presetBodyBytesMax))
  const { organizationId, workspaceId, ownerId: creatorId } = key
  const actor = actorOf(key, requestId)
  const draft = { organizationId, workspaceId, creatorId, slug, content, actor, operation: 'presets.save' }
  const { preset, version } = await context.presets.save(draft)
  return reply({ data: showDesignated(preset, version) })
}

/** A page of long versions is many megabytes, so each is read when the one before it has gone out, and none is parsed. */
async function listVersions(request: Request, context: Context, { params }: RequestInfo): Promise<Response> {
  const { key } = await authenticate(request, context)
  const { offset = 0, limit = presetPageRowsDefault } = readPage(request)
  if (limit < 1 || limit > presetPageRowsMax) throw new Fault('invalid', `limit must be from 1 to ${presetPageRowsMax}`)
  const preset = context.registry.presetsOf.get(key.workspaceId)?.get(slugOf(params))
  if (preset === undefined || preset.status === 'archived') throw notFound()
  const { id, latestVersion, designatedVersion } = preset
  const last = Math.min(offset + limit, latestVersion)
  const end = JSON.stringify({ total_count: latestVersion, designated_version: designatedVersion }).replace('{', '],')
  let next = offset + 1
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encoder.encode('{"data":[')),
    pull: async (controller) => {
      // Reading takes no turn of the event loop by itself, and others wait for theirs.
      await giveWay()
      const row = next <= last ? await readPresetVersion(context.orm, id, next) : undefined
      if (row === undefined) {
        controller.enqueue(encoder.encode(end))
        controller.close()
        return
      }
      controller.enqueue(encoder.encode((next > offset + 1 ? ',' : '') + versionText(row)))
      next += 1
    },
  })
  return new Response(body, { headers: { 'content-type': 'application/json', 'cache-control': 'no-store' } })
}

function within({ organizationId, workspaceId }: Key) {
  return { organization: organizationId, workspace: workspaceId }
}

function actorOf({ id: keyId }: Key, requestId: string): Actor {
  return { kind: 'key', keyId, requestId }
}

function reply(body: unknown): Response {
  return json(200, body, { 'cache-control': 'no-store' })
}

/** What has no slug's form is not there. */
function slugOf({ slug = '' }: Params): string {
  if (!isPresetSlug(slug)) throw notFound()
  return slug
}

function notFound(): Fault {
  return new Fault('not_found', 'Resource not found')
}

/** @throws Fault `invalid` for what is no whole number; the operation knows how large it may be */
function readPage(request: Request): { offset?: number; limit?: number } {
  const query = queryOf(request)
  const page: { offset?: number; limit?: number } = {}
  for (const name of ['offset', 'limit'] as const) {
    const value = query.get(name)
    if (value === null) continue
    if (!/^\d{1,9}$/.test(value)) throw new Fault('invalid', `${name} must be a whole number`)
    page[name] = Number(value)
  }
  return page
}
