// An inference request as one value: read from its body once, completed by the preset that it names. Everything after
// works on this value.
import { Fault } from '../fault.ts'
import { type JsonObject, parseJsonObject, readBody, rejectOtherThanJson } from '../http/body.ts'
import { rejectLongSessionHeader } from '../http/session-header.ts'
import { fallbackModelsMax, modelCharactersMax } from '../limits.ts'
import { type PresetReference, readPresetReference, withoutPresetReference } from '../presets/reference.ts'
import type { Fields } from '../presets/schema/fields.ts'
import { completeBody } from '../presets/use.ts'
import type { PresetRegistry, Presets } from '../presets/versions.ts'
import { isLonger } from '../values/characters.ts'
import { type InferencePath, inferencePaths, type Target } from '../values/inference-paths.ts'
import { type Said, saidIn } from './said.ts'

/**
 * A body as the client sent it, which names no member twice, and the preset that it names. `fields` has no `preset`
 * that is null.
 */
export type SentBody = { sent: JsonObject; fields: Fields; preset: PresetReference | undefined; said: Said }

export type Call = {
  path: InferencePath
  sent: JsonObject
  /** The body as a value, completed by the preset. */
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
const foldedNames = ['model', 'models', 'stream', 'stream_options', 'background']
const longestFoldedName = Math.max(...foldedNames.map((name) => name.length))
const inLowerCase = /^[a-z_]*$/

/**
 * Reads and parses the body of a request.
 * @throws Fault `unsupported_media_type`, `too_large`, `timeout`, or `invalid` when it is not a JSON object or names a
 * preset wrongly
 */
export async function readSentBody(request: Request, bytesMax: number): Promise<SentBody> {
  rejectOtherThanJson(request)
  const bytes = await readBody(request, bytesMax)
  const sent = await parseJsonObject(bytes, { membersOnce: true })
  rejectLongSessionHeader(request, sent.fields.session_id)
  const preset = readPresetReference(sent.fields)
  // A null counts as absent, and some inference servers refuse fields that they do not know.
  const hasNullPreset = preset === undefined && Object.hasOwn(sent.fields, 'preset')
  const fields = hasNullPreset ? withoutPresetReference(sent.fields) : sent.fields
  return { sent, fields, preset, said: saidIn(fields, request.headers) }
}

/**
 * The call that a body makes, with what its preset adds.
 * @throws Fault `not_found` for an unknown preset; `invalid` when a model is not a name, or when it is unclear whether
 * a stream is asked for
 */
export async function completeCall(
  target: Target,
  { sent, fields: own, preset, said }: SentBody,
  workspaceId: string,
  context: { registry: PresetRegistry; presets: Presets },
): Promise<Call> {
  const { fields, presetVersion } =
    preset === undefined
      ? { fields: own, presetVersion: null }
      : await completeBody(target, own, preset, workspaceId, context)
  const { streams, options } = readStreaming(fields)
  const path = inferencePaths[target]
  const requestsUsage = path.takesStreamOptions && streams && options?.include_usage !== true
  return {
    path,
    sent,
    fields,
    presetVersion,
    models: readModels(fields),
    sessionId: typeof fields.session_id === 'string' ? fields.session_id : undefined,
    said,
    streams,
    requestsUsage,
    withholdsUsage: requestsUsage && !includesUsage(fields),
  }
}

function readModels({ model, models }: Fields): string[] {
  const fallbacks = models ?? []
  if (!Array.isArray(fallbacks) || fallbacks.length > fallbackModelsMax)
    throw invalid(`models must be a list of at most ${fallbackModelsMax} names`)
  // A model that is not text is left to the inference server to judge.
  const named: unknown[] = [...(typeof model === 'string' ? [model] : []), ...fallbacks]
  return [...new Set(named.map(checkModelName))]
}

function checkModelName(name: unknown): string {
  if (typeof name !== 'string' || name === '') throw invalid('model must be a name, and models a list of names')
  if (isLonger(name, modelCharactersMax)) throw invalid(`A model has at most ${modelCharactersMax} characters`)
  return name
}

/**
 * Inference servers differ in what they accept for `stream: true`: the number 1, the text "true", another case of the
 * name. A stream that Latchkey does not recognize would run without its usage being asked for.
 */
function readStreaming(fields: Fields): { streams: boolean; options?: Fields } {
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

/** OpenRouter's way to ask for the usage: `"usage": {"include": true}`. */
function includesUsage({ usage }: Fields): boolean {
  return (usage as { include?: unknown } | null | undefined)?.include === true
}

function invalid(message: string): Fault {
  return new Fault('invalid', message)
}
