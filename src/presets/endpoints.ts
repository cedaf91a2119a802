// The preset endpoints (reference: Preset endpoints). Any credential of the workspace reads; a management key with write access changes.

import type { Orm } from '../../db/file/open.ts'
import type { Actor } from '../../db/tables/admin-changes.ts'
import { readPresetVersion } from '../../db/tables/presets.ts'
import { Fault } from '../fault.ts'
import { readJson } from '../http/body.ts'
import { documented } from '../http/documented-route.ts'
import type { Endpoint, Handle, RequestInfo } from '../http/endpoint.ts'
import { entityTag, ifMatchOf, withCurrent } from '../http/entity-tag.ts'
import { checkFields, readQuery } from '../http/input.ts'
import { json } from '../http/reply.ts'
import type { Params } from '../http/router.ts'
import { rejectLongSessionHeader } from '../http/session-header.ts'
import { actorOf } from '../keys/actor.ts'
import { authenticateManagement, authenticateReader, type BearerContext } from '../keys/bearer.ts'
import { operationBodyBytesMax, presetBodyBytesMax, presetPageRowsDefault } from '../limits.ts'
import { giveWay } from '../scheduling/give-way.ts'
import type { SharedRun } from '../scheduling/mutex.ts'
import { isPresetSlug } from '../values/preset-text.ts'
import { checkWorkspace, checkWorkspaceInQuery, readWorkspace } from './named-workspace.ts'
import { docs, listQuery, pageQuery, saveDocs, updateBody } from './openapi.ts'
import { type Dialect, readPreset } from './preset.ts'
import { checkPresetSlug, readPresetReference } from './reference.ts'
import { showDesignated, versionText } from './responses.ts'
import { presetVersionShape } from './shapes.ts'
import type { PresetRegistry, Presets } from './versions.ts'

/** What the preset endpoints need. */
export type PresetContext = BearerContext & {
  registry: PresetRegistry
  presets: Presets
  orm: Orm
  runShared: SharedRun
}

type Key = { id: string; organizationId: string; workspaceId: string }
type WorkspaceInput = { organization: string; workspace: string }
type PresetInput = WorkspaceInput & { preset: string }
type Page = Omit<typeof listQuery.inferIn, 'workspace_id'>
type Changes = typeof updateBody.inferIn
/** The fields of a request, and the workspace that it names. */
type SentChanges = Changes & { if_match?: string; workspace_id?: unknown }
type Run<Name, Input> = (name: Name, input: Input, actor?: Actor) => Promise<unknown>
/** The admin operations that these endpoints call. */
type RunPresetOperation = Run<'presets.list', WorkspaceInput & Page> &
  Run<'presets.show' | 'presets.version', PresetInput> &
  Run<'presets.update', PresetInput & Changes & { if_match?: string }> &
  Run<'presets.apply', PresetInput & { target: 'chat'; body: string }> &
  Run<'presets.archive' | 'presets.restore', PresetInput>

export function createPresetEndpoints(run: RunPresetOperation): Endpoint<PresetContext>[] {
  const showVersion = reading((input) => run('presets.version', input), versionReferenceOf)
  const update = changing(
    'presets.update',
    (input, actor) => {
      const { organization, workspace, preset } = input
      const show = () => run('presets.show', { organization, workspace, preset })
      return withCurrent(run('presets.update', input, actor), show)
    },
    readChanges,
  )
  return [
    ...saveDocs.map(({ dialect, ...doc }) =>
      documented<PresetContext>({
        ...doc,
        handle: (request, context, info) => save(run, dialect, request, context, info),
      }),
    ),
    documented({ ...docs.list, handle: listing((input) => run('presets.list', input)) }),
    documented({ ...docs.show, handle: reading((input) => run('presets.show', input), slugOf) }),
    documented({ ...docs.versions, handle: listVersions }),
    documented({ ...docs.version, handle: showVersion }),
    documented({ ...docs.complete, handle: complete(run) }),
    documented({ ...docs.update, handle: update }),
    documented({
      ...docs.archive,
      handle: changing('presets.archive', (input, actor) => run('presets.archive', input, actor)),
    }),
    documented({
      ...docs.restore,
      handle: changing('presets.restore', (input, actor) => run('presets.restore', input, actor)),
    }),
  ]
}

function listing(run: (input: WorkspaceInput & Page) => Promise<unknown>): Handle<PresetContext> {
  return async (request, context) => {
    const { key } = await authenticateReader(request, context)
    const { workspace_id, ...page } = readQuery(request, listQuery)
    checkWorkspace(key, workspace_id)
    return reply(await orNotFound(run({ ...within(key), ...page })))
  }
}

/** Shows the preset, or the version of it, that the path names. */
function reading(
  run: (input: PresetInput) => Promise<unknown>,
  presetOf: (params: Params) => string,
): Handle<PresetContext> {
  return async (request, context, { params }) => {
    const { key } = await authenticateReader(request, context)
    checkWorkspaceInQuery(key, request)
    const data = await orNotFound(run({ ...within(key), preset: presetOf(params) }))
    return reply({ data }, entityTag(data))
  }
}

/** Changes the preset that the path names. */
function changing(
  act: 'presets.update' | 'presets.archive' | 'presets.restore',
  run: (input: PresetInput & Changes & { if_match?: string }, actor: Actor) => Promise<unknown>,
  readFields: (request: Request) => Promise<SentChanges> = readWorkspace,
): Handle<PresetContext> {
  return async (request, context, { params, requestId }) => {
    const key = await authenticateManagement(request, context, act)
    checkWorkspaceInQuery(key, request)
    const { workspace_id, ...fields } = await readFields(request)
    checkWorkspace(key, workspace_id)
    const input = { ...fields, ...within(key), preset: slugOf(params) }
    const data = await orNotFound(run(input, actorOf(request, context, requestId)))
    return reply({ data }, entityTag(data))
  }
}

/** Completes a request without sending it. */
function complete(run: RunPresetOperation): Handle<PresetContext> {
  return async (request, context, { params }) => {
    const { key } = await authenticateReader(request, context)
    checkWorkspaceInQuery(key, request)
    const slug = slugOf(params)
    const body = await readJson(request, presetBodyBytesMax)
    const named = readPresetReference(body)
    const preset = named?.version === undefined ? slug : `${slug}@${named.version}`
    const input = { ...within(key), preset, target: 'chat' as const, body: JSON.stringify(body) }
    return reply({ data: await orNotFound(run('presets.apply', input)) })
  }
}

async function readChanges(request: Request): Promise<SentChanges> {
  return { ...checkFields(await readJson(request, operationBodyBytesMax), updateBody), ...ifMatchOf(request) }
}

/** A preset of another workspace and one that does not exist get the same response. */
async function orNotFound<Result>(result: Promise<Result>): Promise<Result> {
  try {
    return await result
  } catch (error) {
    throw error instanceof Fault && error.code === 'not_found' ? notFound() : error
  }
}

/** Creates a version from a body (reference: Preset endpoints). It shares its turn, and so its commit, with other posts. */
async function save(
  run: RunPresetOperation,
  dialect: Dialect,
  request: Request,
  context: PresetContext,
  { params, requestId }: RequestInfo,
): Promise<Response> {
  const key = await authenticateManagement(request, context, 'presets.save')
  checkWorkspaceInQuery(key, request)
  const slug = params.slug ?? ''
  checkPresetSlug(slug)
  const body = await readJson(request, presetBodyBytesMax)
  rejectLongSessionHeader(request, body.session_id)
  const content = readPreset(dialect, body)
  const { organizationId, workspaceId, userId: creatorId } = key
  const actor = actorOf(request, context, requestId)
  const { if_match: ifMatch } = ifMatchOf(request)
  const draft = { organizationId, workspaceId, creatorId, slug, content, actor, operation: 'presets.save', ifMatch }
  const saved = context.runShared(() => context.presets.save(draft))
  const show = () => run('presets.show', { ...within(key), preset: slug })
  const { preset, version } = await (ifMatch === undefined ? saved : withCurrent(saved, show))
  return reply({ data: showDesignated(preset, version) })
}

/** A page of long versions is many megabytes, so each is read when the one before it is sent, and none is parsed. */
async function listVersions(request: Request, context: PresetContext, { params }: RequestInfo): Promise<Response> {
  const { key } = await authenticateReader(request, context)
  const { offset = 0, limit = presetPageRowsDefault, workspace_id } = readQuery(request, pageQuery)
  checkWorkspace(key, workspace_id)
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
      // The database client reads without yielding to the event loop.
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

function within({ organizationId, workspaceId }: Key): WorkspaceInput {
  return { organization: organizationId, workspace: workspaceId }
}

function reply(body: unknown, headers: { etag?: string } = {}): Response {
  return json(200, body, { 'cache-control': 'no-store', ...headers })
}

/** Text that is not a slug names no preset. */
function slugOf({ slug = '' }: Params): string {
  if (!isPresetSlug(slug)) throw notFound()
  return slug
}

function versionReferenceOf(params: Params): string {
  const { version = '' } = params
  if (!/^[1-9]\d*$/.test(version) || !presetVersionShape.allows(Number(version))) throw notFound()
  return `${slugOf(params)}@${version}`
}

function notFound(): Fault {
  return new Fault('not_found', 'Resource not found')
}
