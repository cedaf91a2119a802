// An inference request as one value: read from its body once, completed by the preset that it names. Everything after
// works on this value. The body is JSON, a form, or none, as the row of the path says.
import { Fault } from '../fault.ts'
import { type JsonObject, parseJsonObject, readBody, rejectOtherThanJson } from '../http/body.ts'
import { rejectLongSessionHeader } from '../http/session-header.ts'
import { fallbackModelsMax, modelCharactersMax } from '../limits.ts'
import { type PresetReference, readPresetReference, withoutPresetReference } from '../presets/reference.ts'
import type { Fields } from '../presets/schema/fields.ts'
import { completeBody } from '../presets/use.ts'
import type { PresetRegistry, Presets } from '../presets/versions.ts'
import { isLonger } from '../values/characters.ts'
import { type InferencePath, inferencePaths, isJsonTarget, type Target } from '../values/inference-paths.ts'
import { readForm, type SentForm } from './form-body.ts'
import { type Said, saidIn } from './said.ts'

/**
 * A body as the client sent it, and the preset that it names. JSON names no member twice. `fields` has no `preset` that
 * is null.
 */
export type SentBody = {
  json: JsonObject | undefined
  form: SentForm | undefined
  fields: Fields
  preset: PresetReference | undefined
  said: Said
}

export type Call = {
  path: InferencePath
  /** The path on the upstream, relative to its base URL, or to what is before its version. */
  upstreamPath: string
  json: JsonObject | undefined
  form: SentForm | undefined
  /** The body as a value, completed by the preset; of a form, its fields without files. */
  fields: Fields
  /** The version that completed the body, as `slug@3`. */
  presetVersion: string | null
  /** The models to try, in order: `model`, then the fallback list `models`. Empty when the body names none. */
  models: readonly string[]
  sessionId: string | undefined
  /** What the caller says of the request, for reports. */
  said: Said
  streams: boolean
  /** The stream options of the client do not ask for the usage event: Latchkey asks for it. */
  requestsUsage: boolean
  /** The client did not ask for the usage event in any way: it is withheld from the client. */
  withholdsUsage: boolean
}

/** Enough for every inference server known, which have at most four. The options are written again. */
const streamOptionsMax = 32
const foldedNames = ['model', 'models', 'stream', 'stream_options', 'background', 'previous_response_id']
const longestFoldedName = Math.max(...foldedNames.map((name) => name.length))
const inLowerCase = /^[a-z_]*$/

const readers: Record<InferencePath['body'], (request: Request, bytesMax: number) => Promise<SentBody>> = {
  json: readJsonBody,
  form: readFormBody,
  none: async ({ headers }) => ({
    ...{ json: undefined, form: undefined, fields: {}, preset: undefined },
    said: saidIn({}, headers),
  }),
}

/**
 * Reads and parses the body of a request, as far as it must be known.
 * @throws Fault `unsupported_media_type`, `too_large`, `timeout`, or `invalid` when it is not a JSON object or form, or
 * names a preset wrongly
 */
export function readSentBody(target: Target, request: Request, bytesMax: number): Promise<SentBody> {
  return readers[inferencePaths[target].body](request, bytesMax)
}

async function readFormBody(request: Request, bytesMax: number): Promise<SentBody> {
  const form = await readForm(request, bytesMax)
  rejectLongSessionHeader(request, undefined)
  const { fields } = form
  if (readPresetReference({ model: fields.model }) !== undefined || fields.preset !== undefined)
    throw invalid('A form cannot name a preset: name the model itself')
  return { json: undefined, form, fields, preset: undefined, said: saidIn(fields, request.headers) }
}

async function readJsonBody(request: Request, bytesMax: number): Promise<SentBody> {
  rejectOtherThanJson(request)
  const bytes = await readBody(request, bytesMax)
  const parsed = parseJsonObject(bytes, { membersOnce: true })
  const json = parsed instanceof Promise ? await parsed : parsed
  const { fields } = json
  rejectLongSessionHeader(request, fields.session_id)
  const preset = readPresetReference(fields)
  // A null counts as absent, and some inference servers refuse fields that they do not know.
  const hasNullPreset = preset === undefined && Object.hasOwn(fields, 'preset')
  const own = hasNullPreset ? withoutPresetReference(fields) : fields
  return { json, form: undefined, fields: own, preset, said: saidIn(own, request.headers) }
}

/**
 * The call that a body makes, with what its preset adds. At once without a preset.
 * @throws Fault `not_found` for an unknown preset; `invalid` when a model is not a name, or when it is unclear whether
 * a stream is asked for
 */
export function completeCall(
  target: Target,
  sent: SentBody,
  { workspaceId, responseId }: { workspaceId: string; responseId?: string | undefined },
  context: { registry: PresetRegistry; presets: Presets },
): Call | Promise<Call> {
  const { fields, preset } = sent
  if (preset === undefined || !isJsonTarget(target))
    return callOf(target, sent, { fields, presetVersion: null }, responseId)
  return completeBody(target, fields, preset, workspaceId, context).then((completed) =>
    callOf(target, sent, completed, responseId),
  )
}

function callOf(
  target: Target,
  { json, form, said }: SentBody,
  { fields, presetVersion }: { fields: Fields; presetVersion: string | null },
  responseId: string | undefined,
): Call {
  const path = inferencePaths[target]
  const { streams, options } = form === undefined ? readStreaming(fields) : streamingOf(fields)
  const requestsUsage = path.takesStreamOptions && streams && options?.include_usage !== true
  return {
    path,
    upstreamPath: path.ofResponse
      ? path.endpoint.replace('{response}', encodeURIComponent(responseId ?? ''))
      : path.endpoint,
    json,
    form,
    fields,
    presetVersion,
    models: readModels(form === undefined ? fields : { model: fields.model }),
    sessionId: typeof fields.session_id === 'string' ? fields.session_id : undefined,
    said,
    streams,
    requestsUsage,
    withholdsUsage: requestsUsage && !includesUsage(fields),
  }
}

function readModels({ model, models }: Fields): string[] {
  const fallbacks: unknown = models ?? []
  if (!Array.isArray(fallbacks) || fallbacks.length > fallbackModelsMax)
    throw invalid(`models must be a list of at most ${fallbackModelsMax} names`)
  // A model that is not text is left to the inference server to judge.
  const named: unknown[] = typeof model === 'string' ? [model, ...fallbacks] : fallbacks
  const names: string[] = []
  for (const name of named) if (!names.includes(checkModelName(name))) names.push(name as string)
  return names
}

function checkModelName(name: unknown): string {
  if (typeof name !== 'string' || name === '') throw invalid('model must be a name, and models a list of names')
  if (isLonger(name, modelCharactersMax))
    throw invalid(`A model has at most ${modelCharactersMax} characters: shorten the name`)
  // An inference server may trim it, or write it to a log: it would name another model there, or be another line.
  if (controlCharacter.test(name)) throw invalid('A model is a name without line breaks and other control characters')
  return name
}

const controlCharacter = /\p{Cc}/u

type StreamChoice = { streams: boolean; options?: Fields }

/**
 * Inference servers differ in what they accept for `stream: true`: the number 1, the text "true", another case of the
 * name. A stream that Latchkey does not recognize would run without its usage being asked for.
 */
function readStreaming(fields: Fields): StreamChoice {
  for (const name of Object.keys(fields)) {
    // A longer name cannot match: no letter gets shorter in the other case.
    if (name.length > longestFoldedName || inLowerCase.test(name)) continue
    // Through upper case, since some letters beyond ASCII share one.
    const folded = name.toUpperCase().toLowerCase()
    if (foldedNames.includes(folded)) throw invalid(`Write ${folded} in lower case`)
  }
  const { stream, stream_options: options } = fields
  if (stream !== undefined && stream !== null && typeof stream !== 'boolean')
    throw invalid('stream must be true or false')
  if (options === undefined) return { streams: stream === true }
  if (options === null) return { streams: stream === true, options: {} }
  if (typeof options !== 'object' || Array.isArray(options) || Object.keys(options).length > streamOptionsMax)
    throw invalid(`stream_options must be an object with at most ${streamOptionsMax} members`)
  return { streams: stream === true, options: options as Fields }
}

/** A form has only text. */
function streamingOf({ stream }: Fields): StreamChoice {
  return { streams: stream === 'true' }
}

/** OpenRouter's way to ask for the usage: `"usage": {"include": true}`. */
function includesUsage({ usage }: Fields): boolean {
  return (usage as { include?: unknown } | null | undefined)?.include === true
}

function invalid(message: string): Fault {
  return new Fault('invalid', message, { reason: 'body_refused', detail: message })
}
