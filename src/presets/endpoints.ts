// The preset endpoints (reference: Preset endpoints): any credential of the workspace reads, a management key that may write changes.

import type { Actor } from '../../db/admin-changes.ts'
import type { Orm } from '../../db/open.ts'
import { readPresetVersion } from '../../db/presets.ts'
import { Fault } from '../fault.ts'
import { readJson } from '../http/body.ts'
import type { Endpoint, Handle, RequestInfo } from '../http/endpoint.ts'
import { checkFields, noQuery, readQuery } from '../http/input.ts'
import { json } from '../http/reply.ts'
import type { Params } from '../http/router.ts'
import { authenticate, authenticateManagement, type BearerContext } from '../keys/bearer.ts'
import { operationBodyBytesMax, presetBodyBytesMax, presetPageRowsDefault } from '../limits.ts'
import { giveWay } from '../scheduling/give-way.ts'
import { isPresetSlug } from '../values/preset-text.ts'
import {
  archiveDescription,
  listDescription,
  pageQuery,
  restoreDescription,
  saveDescriptions,
  showDescription,
  updateBody,
  updateDescription,
  versionDescription,
  versionsDescription,
} from './openapi.ts'
import { type Dialect, readPreset } from './preset.ts'
import { checkPresetSlug } from './reference.ts'
import { showDesignated, versionText } from './responses.ts'
import { presetVersionShape } from './shapes.ts'
import type { PresetRegistry, Presets } from './versions.ts'

/** What the preset endpoints need. */
export type PresetContext = BearerContext & { registry: PresetRegistry; presets: Presets; orm: Orm }

type Key = { id: string; organizationId: string; workspaceId: string }
type Within = { organization: string; workspace: string }
type Named = Within & { preset: string }
type Page = typeof pageQuery.inferIn
type Changes = typeof updateBody.inferIn
type Archiving = 'presets.archive' | 'presets.restore'
type Run<Name, Input> = (name: Name, input: Input, actor?: Actor) => Promise<unknown>
/** The admin operations that these endpoints call. */
type RunPresetOperation = Run<'presets.list', Within & Page> &
  Run<'presets.show' | 'presets.version', Named> &
  Run<'presets.update', Named & Changes> &
  Run<Archiving, Named>

const dialectOfPath: [path: string, dialect: Dialect][] = [
  ['chat/completions', 'chat'],
  ['messages', 'messages'],
  ['responses', 'responses'],
]

export function createPresetEndpoints(runOperation: RunPresetOperation): Endpoint<PresetContext>[] {
  const one = '/presets/{slug}'
  return [
    ...dialectOfPath.map(
      ([path, dialect]): Endpoint<PresetContext> => ({
        method: 'POST',
        path: `${one}/${path}`,
        openapi: saveDescriptions[dialect],
        handle: (request, context, info) => save(dialect, request, context, info),
      }),
    ),
    { method: 'GET', path: '/presets', openapi: listDescription, handle: list },
    { method: 'GET', path: one, openapi: showDescription, handle: show },
    { method: 'GET', path: `${one}/versions`, openapi: versionsDescription, handle: listVersions },
    { method: 'GET', path: `${one}/versions/{version}`, openapi: versionDescription, handle: showOneVersion },
    { method: 'PATCH', path: one, openapi: updateDescription, handle: update },
    { method: 'DELETE', path: one, openapi: archiveDescription, handle: changing('presets.archive') },
    { method: 'POST', path: `${one}/restore`, openapi: restoreDescription, handle: changing('presets.restore') },
  ]

  async function list(request: Request, context: PresetContext): Promise<Response> {
    const { key } = await authenticate(request, context)
    const input = { ...within(key), ...readQuery(request, pageQuery) }
    return reply(await orNotFound(runOperation('presets.list', input)))
  }

  async function show(request: Request, context: PresetContext, { params }: RequestInfo): Promise<Response> {
    const { key } = await authenticate(request, context)
    readQuery(request, noQuery)
    const input = { ...within(key), preset: slugOf(params) }
    return reply({ data: await orNotFound(runOperation('presets.show', input)) })
  }

  async function showOneVersion(request: Request, context: PresetContext, { params }: RequestInfo): Promise<Response> {
    const { key } = await authenticate(request, context)
    readQuery(request, noQuery)
    if (!/^[1-9]\d*$/.test(params.version ?? '') || !presetVersionShape.allows(Number(params.version))) throw notFound()
    const preset = `${slugOf(params)}@${params.version}`
    return reply({ data: await orNotFound(runOperation('presets.version', { ...within(key), preset })) })
  }

  async function update(
    request: Request,
    context: PresetContext,
    { params, requestId }: RequestInfo,
  ): Promise<Response> {
    const key = await authenticateManagement(request, context, { writes: true })
    readQuery(request, noQuery)
    const fields = checkFields(await readJson(request, operationBodyBytesMax), updateBody)
    const input = { ...fields, ...within(key), preset: slugOf(params) }
    return reply({ data: await orNotFound(runOperation('presets.update', input, actorOf(key, requestId))) })
  }

  function changing(operation: Archiving): Handle<PresetContext> {
    return async (request, context, { params, requestId }) => {
      const key = await authenticateManagement(request, context, { writes: true })
      readQuery(request, noQuery)
      const input = { ...within(key), preset: slugOf(params) }
      return reply({ data: await orNotFound(runOperation(operation, input, actorOf(key, requestId))) })
    }
  }
}

/** A preset of another workspace and one that does not exist get the same response. */
async function orNotFound<Result>(result: Promise<Result>): Promise<Result> {
  try {
    return await result
  } catch (error) {
    throw error instanceof Fault && error.code === 'not_found' ? notFound() : error
  }
}

/** Makes a version of a body (reference: Preset endpoints). Does not go the way of the other changes, each a commit of its own. */
async function save(
  dialect: Dialect,
  request: Request,
  context: PresetContext,
  { params, requestId }: RequestInfo,
): Promise<Response> {
  const key = await authenticateManagement(request, context, { writes: true })
  readQuery(request, noQuery)
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
async function listVersions(request: Request, context: PresetContext, { params }: RequestInfo): Promise<Response> {
  const { key } = await authenticate(request, context)
  const { offset = 0, limit = presetPageRowsDefault } = readQuery(request, pageQuery)
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

function within({ organizationId, workspaceId }: Key): Within {
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
