// What of a request body must be known to forward it: the models asked for, the session, and whether and how it streams.

import { Fault } from '../fault.ts'
import type { JsonObject } from '../http/body.ts'
import { withMembers, withMoreMembers } from '../http/json-text.ts'
import { fallbackModelsMax, modelCharactersMax } from '../limits.ts'
import { isLonger } from '../values/characters.ts'

/** No inference server knows more than four. They are written again. */
const streamOptionsMax = 32
const foldedNames = ['model', 'models', 'stream', 'stream_options']
const longestFoldedName = Math.max(...foldedNames.map((name) => name.length))
const inLowerCase = /^[a-z_]*$/

export type InferenceRequest = {
  /** What to ask for, in order: `model`, then the fallback list `models`. Empty when the body names none. */
  models: string[]
  sessionId: string | undefined
  streams: boolean
  /** The client did not ask for the usage event of a stream, so it is asked for on our own account and withheld. */
  withholdsUsage: boolean
  /** What the upstream gets for one of `models`: the client's own bytes, unless the usage has to be asked for or there is a fallback list. */
  bodyFor: (model: string | undefined) => Uint8Array<ArrayBuffer>
}

type Fields = Record<string, unknown>

/** A body as it was sent, naming no member twice, and what it says once a preset has completed it, or the same. */
export type GivenBody = { sent: JsonObject; fields: Fields }

/**
 * `takesStreamOptions`: whether the usage of a stream has to be asked for with `stream_options`, as in chat completions.
 * @throws Fault `invalid` when the body names models by anything but text, or leaves open whether it asks for a stream
 */
export function readInferenceRequest(
  { sent, fields }: GivenBody,
  { takesStreamOptions }: { takesStreamOptions: boolean },
): InferenceRequest {
  const models = readModels(fields)
  const sessionId = typeof fields.session_id === 'string' ? fields.session_id : undefined
  const { streams, options } = readStreaming(fields)
  const withholdsUsage = takesStreamOptions && streams && options?.include_usage !== true
  const known = { models, sessionId, streams, withholdsUsage }
  const wanted = withholdsUsage ? { ...fields, stream_options: { ...options, include_usage: true } } : fields
  if (fields.models !== undefined && fields.models !== null)
    return { ...known, bodyFor: (model) => rewrite(sent, { ...wanted, models: undefined, model }) }
  let body: Uint8Array<ArrayBuffer> | undefined
  const bodyOnce = () => {
    body ??= rewrite(sent, wanted)
    return body
  }
  return { ...known, bodyFor: bodyOnce }
}

function readModels({ model, models }: Fields): string[] {
  const fallbacks = models ?? []
  if (!Array.isArray(fallbacks) || fallbacks.length > fallbackModelsMax)
    throw invalid(`models must be a list of at most ${fallbackModelsMax} names`)
  // Whether a model of another type is one, the upstream says.
  const named = [...(typeof model === 'string' ? [model] : []), ...fallbacks]
  for (const name of named) {
    if (typeof name !== 'string' || name === '') throw invalid('model must be a name, and models a list of names')
    if (isLonger(name, modelCharactersMax)) throw invalid(`A model has at most ${modelCharactersMax} characters`)
  }
  return [...new Set(named as string[])]
}

/**
 * Inference servers differ in what they take for `stream: true`: the number 1, the text "true", another case of the name. What we took
 * for no stream would then stream without its usage being asked for.
 */
function readStreaming(fields: Fields): { streams: boolean; options?: Fields } {
  for (const name of Object.keys(fields)) {
    // What is longer is none of these in any case, since no letter gets shorter in the other one.
    if (name.length > longestFoldedName || inLowerCase.test(name)) continue
    // By way of the upper case, since some letters beyond ASCII have the same one.
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

/** The body with other fields: those that are the same stay as they were written, numbers beyond ours among them. */
function rewrite({ bytes, outline, fields }: JsonObject, wanted: Fields): Uint8Array<ArrayBuffer> {
  const values: Fields = {}
  const prepended: Record<string, unknown[]> = {}
  for (const name of Object.keys(fields)) if (!Object.hasOwn(wanted, name)) values[name] = undefined
  for (const [name, value] of Object.entries(wanted)) {
    if (Object.is(fields[name], value)) continue
    const items = itemsBefore(fields[name], value)
    if (items === undefined) values[name] = value
    else prepended[name] = items
  }
  const names = Object.keys(values)
  if (Object.keys(prepended).length > 0 || names.some((name) => Object.hasOwn(fields, name)))
    return withMembers(bytes, outline, { values, prepended })
  return names.length === 0 ? bytes : withMoreMembers(bytes, outline, values)
}

/** What a list has before all the items of the old one; undefined when it is not the old one with more items before it. */
function itemsBefore(old: unknown, value: unknown): unknown[] | undefined {
  if (!Array.isArray(old) || !Array.isArray(value) || old.length === 0) return undefined
  const more = value.length - old.length
  return more > 0 && old.every((item, index) => item === value[more + index]) ? value.slice(0, more) : undefined
}

function invalid(message: string): Fault {
  return new Fault('invalid', message)
}
