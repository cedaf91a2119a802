// The body that an inference server gets: the client's own bytes, rewritten only where the preset, the usage of a
// stream or a fallback requires it. What stays the same stays as it was written, large numbers included.
import type { JsonObject } from '../http/body.ts'
import { withMembers, withMoreMembers } from '../http/json-text.ts'
import type { Fields } from '../presets/schema/fields.ts'
import type { Call } from './call.ts'
import type { OutgoingBody } from './upstream/forward.ts'

/**
 * The body that requests `model`, which is one of `call.models`, or undefined when the body names none. Undefined where
 * the path has no body. A form names one model, and is never changed. `priority` replaces that of the client.
 */
export function outgoingBody(
  call: Call,
  model: string | undefined,
  priority: number | undefined,
): OutgoingBody | undefined {
  const { json, form } = call
  if (json !== undefined) return { contentType: 'application/json', bytes: jsonFor(json, call, model, priority) }
  if (form === undefined) return undefined
  const { contentType, bytes, stream, failure } = form
  return { contentType, bytes, stream, failure }
}

function jsonFor(
  sent: JsonObject,
  { fields, requestsUsage }: Call,
  model: string | undefined,
  priority: number | undefined,
): Uint8Array<ArrayBuffer> {
  let wanted = priority === undefined ? fields : { ...fields, priority }
  if (requestsUsage)
    wanted = { ...wanted, stream_options: { ...(fields.stream_options as Fields | null), include_usage: true } }
  if (fields.models !== undefined && fields.models !== null) wanted = { ...wanted, models: undefined, model }
  return wanted === sent.fields ? sent.bytes : rewrite(sent, wanted)
}

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

/** The items that a list has in front of those of the old one; undefined when it differs in any other way. */
function itemsBefore(old: unknown, value: unknown): unknown[] | undefined {
  if (!Array.isArray(old) || !Array.isArray(value) || old.length === 0) return undefined
  const more = value.length - old.length
  return more > 0 && old.every((item, index) => item === value[more + index]) ? value.slice(0, more) : undefined
}
