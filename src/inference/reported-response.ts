// Adds the routing report to a response as it passes: to a JSON object as its last member, to a stream in its last event or in one event more.
// All other bytes stay as they are. A response that it cannot read passes without a report.
import { Fault } from '../fault.ts'
import { outlineJson, withMoreMembers } from '../http/json-text.ts'
import type { InferencePath } from '../values/inference-paths.ts'
import type { RoutingReport } from './routing-report.ts'
import { type Inspector, isObject, parseObject } from './usage.ts'

/** Asked for once, when the response ends. */
export type Report = () => RoutingReport
/** Which event of a stream has the report: the last one, or one more of this object type. */
type ReportIn = NonNullable<InferencePath['reportIn']>

const [openBrace, closeBrace] = [0x7b, 0x7d]
const nothing = new Uint8Array(0)
/** How much white space may follow the end of an object. */
const tailBytesMax = 1_024
const doneLine = /(?:^|[\r\n])data:[ \t]*\[DONE\]/
const lastTypes = ['message_stop', 'response.completed', 'response.incomplete', 'response.failed']

/** Holds back the end of the outermost object until the response ends. */
export function reportInJson(inner: Inspector, report: Report): Inspector {
  let first: number | undefined
  /** From the last brace on, if only white space follows. */
  let tail: Uint8Array = nothing
  let hasMembers = false
  const pass = (bytes: Uint8Array): Uint8Array => {
    const all = tail.byteLength === 0 ? bytes : Buffer.concat([tail, bytes])
    const end = all.findLastIndex(isVisible)
    first ??= all.find(isVisible)
    const isEnd = first === openBrace && all[end] === closeBrace && all.byteLength - end <= tailBytesMax
    tail = isEnd ? all.subarray(end) : nothing
    const passed = isEnd ? all.subarray(0, end) : all
    hasMembers ||= passed.some((byte) => isVisible(byte) && byte !== openBrace)
    return passed
  }
  return {
    ...inner,
    take: (chunk) => pass(inner.take(chunk)),
    rest: () => {
      const passed = pass(inner.rest())
      if (tail.byteLength === 0 || !hasMembers) return Buffer.concat([passed, tail])
      return Buffer.concat([passed, Buffer.from(`,"openrouter_metadata":${JSON.stringify(report())}`), tail])
    },
  }
}

/** `id` is that of an added event if the stream names none, `created` its time in seconds since 1970 UTC. */
export function reportInStream(
  inner: Inspector,
  report: Report,
  reportIn: ReportIn,
  added: { id: string; created: number },
): Inspector {
  let isAdded = false
  const pass = (released: Uint8Array): Uint8Array => {
    if (isAdded || !inner.isFinal()) return released
    isAdded = true
    const text = Buffer.from(released).toString('latin1')
    const reported =
      reportIn === 'last event'
        ? inLastEvent(text, report())
        : beforeDone(text, eventOf(reportIn, inner, report, added))
    return reported === undefined ? released : Buffer.from(reported, 'latin1')
  }
  return { ...inner, take: (chunk) => pass(inner.take(chunk)), rest: () => pass(inner.rest()) }
}

function eventOf(object: string, inner: Inspector, report: Report, added: { id: string; created: number }): object {
  const { responseId: id = added.id, model = '' } = inner.result()
  return { id, object, created: added.created, model, choices: [], openrouter_metadata: report() }
}

/** Here and below, text is latin1: one character per byte. */
function beforeDone(text: string, event: object): string | undefined {
  const found = doneLine.exec(text)
  if (found === null) return undefined
  const at = found.index + found[0].indexOf('data')
  return `${text.slice(0, at)}data: ${Buffer.from(JSON.stringify(event)).toString('latin1')}\n\n${text.slice(at)}`
}

function inLastEvent(text: string, report: RoutingReport): string | undefined {
  const at = text.lastIndexOf('data:') + 'data:'.length
  const length = text.slice(at).search(/[\r\n]|$/)
  const data = text.slice(at, at + length)
  const { type, response } = parseObject(data)
  if (!lastTypes.includes(String(type))) return undefined
  const json = Buffer.from(data, 'latin1')
  const reported = isObject(response) ? withinResponse(json, report) : withReport(json, report)
  return reported && text.slice(0, at) + reported.toString('latin1') + text.slice(at + length)
}

function withinResponse(json: Buffer, report: RoutingReport): Buffer | undefined {
  const member = outlineOf(json)?.members.find(
    ({ start, colon }) => json.toString('latin1', start, colon).trim() === '"response"',
  )
  if (member === undefined) return undefined
  const { colon, end } = member
  const reported = withReport(json.subarray(colon + 1, end), report)
  return reported && Buffer.concat([json.subarray(0, colon + 1), reported, json.subarray(end)])
}

function withReport(json: Buffer, openrouter_metadata: RoutingReport): Buffer | undefined {
  const outline = outlineOf(json)
  return outline && Buffer.from(withMoreMembers(json, outline, { openrouter_metadata }))
}

/** Undefined beyond the bounds of JSON. Events are short, so that nothing has to wait. */
function outlineOf(json: Buffer) {
  try {
    const outline = outlineJson(json)
    return outline instanceof Promise ? undefined : outline
  } catch (error) {
    if (error instanceof Fault) return undefined
    throw error
  }
}

function isVisible(byte: number): boolean {
  return byte !== 0x20 && (byte < 0x09 || byte > 0x0d)
}
