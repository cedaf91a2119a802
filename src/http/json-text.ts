// Measures a JSON text before it is parsed, and finds and replaces the members of its outermost object. It works on the bytes in slices, so
// that no body blocks other requests. For text that is not JSON the result has no meaning; the parser refuses it.

import { Fault } from '../fault.ts'
import { jsonLevelsMax, jsonMembersMax, jsonOutermostMembersMax, jsonValuesMax } from '../limits.ts'
import { joinChunks } from '../runtime/bounded-stream.ts'
import { giveWay } from '../scheduling/give-way.ts'
import { decodeUtf8 } from '../values/bytes.ts'

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a]
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d]

/** A member of the outermost object as byte positions: its name ends before `colon`, its value lies between `colon` and `end`. */
export type Member = { start: number; colon: number; end: number }
export type JsonOutline = {
  /** The members of the outermost object; a repeated one is listed twice. */
  members: readonly Member[]
  /** The number of members in all objects; repeated ones count twice. */
  membersInAll: number
}

const encoder = new TextEncoder()
/** Bytes per slice, which takes a few milliseconds. */
const sliceBytesMax = 2 * 1024 * 1024
/** The first bytes of a string are read one by one; from there, searching for its end is faster. */
const stepBytes = 16

type Scan = { at: number; isInText: boolean; levels: number; values: number; membersInAll: number; members: Member[] }

/**
 * One pass over the bytes that gives way to other work after each slice. A single slice returns no promise, which would cost more than the pass.
 * @throws Fault `invalid` beyond the bounds within which parsing is fast
 */
export function outlineJson(json: Uint8Array, sliceBytes = sliceBytesMax): JsonOutline | Promise<JsonOutline> {
  const scan: Scan = { at: 0, isInText: false, levels: 0, values: 0, membersInAll: 0, members: [] }
  scanSlice(json, scan, Math.min(json.length, sliceBytes))
  return scan.at < json.length ? outlineRest(json, scan, sliceBytes) : outlineOf(scan)
}

async function outlineRest(json: Uint8Array, scan: Scan, sliceBytes: number): Promise<JsonOutline> {
  while (scan.at < json.length) {
    await giveWay()
    scanSlice(json, scan, Math.min(json.length, scan.at + sliceBytes))
  }
  return outlineOf(scan)
}

function outlineOf({ members, membersInAll }: Scan): JsonOutline {
  // An empty object has a started member without a name.
  if (members.at(-1)?.colon === 0) members.pop()
  return { members, membersInAll }
}

/** Continues to `until`, or a few bytes further. */
function scanSlice(json: Uint8Array, scan: Scan, until: number): void {
  let { at, isInText, levels, values, membersInAll } = scan
  for (; at < until; at++) {
    if (isInText) {
      const end = endOfText(json, at, until)
      isInText = end < 0
      if (isInText) {
        at = ~end
        break
      }
      at = end
      continue
    }
    const byte = json[at]
    if (byte === quote) isInText = true
    else if (byte === colon) {
      membersInAll += 1
      if (membersInAll > jsonMembersMax) throw beyond(`have at most ${jsonMembersMax} members in all its objects`)
      if (levels === 1) nameMember(scan.members, at)
    } else if (byte === comma || byte === openBracket || byte === openBrace) {
      values += 1
      if (values > jsonValuesMax) throw beyond(`hold at most ${jsonValuesMax} values`)
      if (byte !== comma) {
        levels += 1
        if (levels > jsonLevelsMax) throw beyond(`be nested at most ${jsonLevelsMax} levels deep`)
        if (levels === 1 && byte === openBrace) beginMember(scan.members, at)
      } else if (levels === 1 && endMember(scan.members, at)) beginMember(scan.members, at)
    } else if (byte === closeBracket || byte === closeBrace) {
      if (levels === 1) endMember(scan.members, at)
      levels -= 1
    }
  }
  Object.assign(scan, { at, isInText, levels, values, membersInAll })
}

/** The position of the quote that ends the string around `from`; `~` of the position to continue from where that is not before `until`. */
function endOfText(json: Uint8Array, from: number, until: number): number {
  for (let at = from; ; ) {
    for (const stop = Math.min(until, at + stepBytes); at < stop; ) {
      const byte = json[at]
      if (byte === quote) return at
      at += byte === backslash ? 2 : 1
    }
    if (at >= until) return ~at
    const found = json.indexOf(quote, at)
    if (found < 0) return ~json.length
    let escapes = found
    while (escapes > at && json[escapes - 1] === backslash) escapes -= 1
    if ((found - escapes) % 2 === 0) return found
    at = found + 1
  }
}

function beginMember(members: Member[], at: number): void {
  if (members.length === jsonOutermostMembersMax)
    throw beyond(`have at most ${jsonOutermostMembersMax} members in its outermost object`)
  members.push({ start: at + 1, colon: 0, end: 0 })
}

function nameMember(members: Member[], at: number): void {
  const last = members.at(-1)
  if (last !== undefined) last.colon = at
}

/** Whether a member was open: the outermost value may be a list. */
function endMember(members: Member[], at: number): boolean {
  const last = members.at(-1)
  if (last !== undefined) last.end = at
  return last !== undefined
}

/** `values` replace members, or remove them where undefined; `prepended` items are put before the items of a non-empty list. */
export type Changes = { values: Record<string, unknown>; prepended?: Record<string, readonly unknown[]> }

/**
 * The object in a JSON text with some members changed. The bytes of all others, and of list items, stay the same: a number may exceed what
 * our parser can represent.
 */
export function withMembers(
  json: Uint8Array,
  { members }: Pick<JsonOutline, 'members'>,
  { values, prepended = {} }: Changes,
): Uint8Array<ArrayBuffer> {
  const longest = Math.max(0, ...[values, prepended].flatMap(Object.keys).map((name) => name.length))
  const pieces: Uint8Array[] = []
  for (const member of members) {
    const name = nameOf(json, member, longest)
    const items = name !== undefined && Object.hasOwn(prepended, name) ? prepended[name] : undefined
    if (name !== undefined && Object.hasOwn(values, name)) continue
    if (pieces.length > 0) pieces.push(encode(','))
    const { start, colon, end } = member
    if (items === undefined) pieces.push(json.subarray(start, end))
    else pieces.push(json.subarray(start, colon + 1), ...prependedTo(json.subarray(colon + 1, end), items))
  }
  const kept = [encode('{'), ...pieces]
  const end = encode(endWith(values, pieces.length > 0))
  return joinChunks(
    [...kept, end],
    kept.reduce((length, { byteLength }) => length + byteLength, end.byteLength),
  )
}

/** The same for members that the object does not have, which most streams need. */
export function withMoreMembers(
  json: Uint8Array,
  { members }: Pick<JsonOutline, 'members'>,
  values: Record<string, unknown>,
): Uint8Array<ArrayBuffer> {
  const last = members.at(-1)
  const end = encode(endWith(values, last !== undefined))
  const kept = last === undefined ? encode('{') : json.subarray(0, last.end)
  return joinChunks([kept, end], kept.byteLength + end.byteLength)
}

/** The end of an object, with these members and without those that are undefined. */
function endWith(values: Record<string, unknown>, isContinued: boolean): string {
  const members = JSON.stringify(values).slice(1)
  return isContinued && members !== '}' ? `,${members}` : members
}

/** The name of a member; undefined where it is longer than any name of interest. */
function nameOf(json: Uint8Array, { start, colon }: Member, charactersMax: number): string | undefined {
  const from = json.indexOf(quote, start)
  const end = endOfText(json, from + 1, colon)
  // A character takes at most six bytes, as in \u0061.
  if (end - from > 6 * charactersMax + 1) return undefined
  return JSON.parse(decodeUtf8(json.subarray(from, end + 1)) ?? '') as string
}

function prependedTo(list: Uint8Array, items: readonly unknown[]): Uint8Array[] {
  return [encode(`${JSON.stringify(items).slice(0, -1)},`), list.subarray(list.indexOf(openBracket) + 1)]
}

function encode(text: string): Uint8Array {
  return encoder.encode(text)
}

function beyond(rule: string): Fault {
  return new Fault('invalid', `The body must ${rule}`, { reason: 'body_json_bounds' })
}
