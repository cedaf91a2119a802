// What a JSON text holds, found before it is parsed: how much, and where the members of its outermost object are. It works on the bytes, a
// slice at a time, so that no body holds up other requests. Of a text that is no JSON it finds something; the parser refuses that one.

import { Fault } from '../fault.ts'
import { jsonLevelsMax, jsonMembersMax, jsonOutermostMembersMax, jsonValuesMax } from '../limits.ts'
import { giveWay } from '../scheduling/give-way.ts'
import { decodeUtf8, joinChunks } from '../values/bytes.ts'

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a]
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d]

/** A member of the outermost object, by positions in the bytes: its name is before `colon`, its value after it and before `end`. */
export type Member = { start: number; colon: number; end: number }
export type JsonOutline = {
  /** Those of the outermost object; one that is named twice is here twice. */
  members: readonly Member[]
  /** How many members all objects have, those named twice counted twice. */
  membersInAll: number
}

const encoder = new TextEncoder()
/** Bytes that are looked through in one go: some milliseconds. */
const sliceBytesMax = 2 * 1024 * 1024
/** So much of a text is looked through byte by byte; for the end of a longer one it is quicker to search. */
const stepBytes = 16

type Scan = { at: number; isInText: boolean; levels: number; values: number; membersInAll: number; members: Member[] }

/**
 * One pass over the bytes, giving way to other work after each slice. For a single slice there is no promise, which would cost more than it.
 * @throws Fault `invalid` beyond the bounds within which parsing is quick
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
  // An empty object has begun a member that never came.
  if (members.at(-1)?.colon === 0) members.pop()
  return { members, membersInAll }
}

/** Goes on to `until`, or a little further. */
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

/** Where the text that goes on at `from`, which no backslash precedes, ends: at its quote, or, when that is not before `until`, `~` of where to go on. */
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
    throw beyond(`have at most ${jsonOutermostMembersMax} members outside its lists and objects`)
  members.push({ start: at + 1, colon: 0, end: 0 })
}

function nameMember(members: Member[], at: number): void {
  const last = members.at(-1)
  if (last !== undefined) last.colon = at
}

/** Whether there was one, since the outermost value may be a list. */
function endMember(members: Member[], at: number): boolean {
  const last = members.at(-1)
  if (last !== undefined) last.end = at
  return last !== undefined
}

/** `values` are set, or left out where they are undefined; `prepended` are some items to put before those of a list that has some. */
export type Changes = { values: Record<string, unknown>; prepended?: Record<string, readonly unknown[]> }

/**
 * The object in a JSON text with some members changed. The bytes of all others, and of the items of a list, stay as they were written: a
 * number may be one that no parser here can hold.
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

/** The same for members that the object does not have yet, which most streams need. */
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

/** The end of an object, with these members; what is undefined is left out. */
function endWith(values: Record<string, unknown>, isContinued: boolean): string {
  const members = JSON.stringify(values).slice(1)
  return isContinued && members !== '}' ? `,${members}` : members
}

/** A member's name, if it is no longer than that: one that is, is not looked for. */
function nameOf(json: Uint8Array, { start, colon }: Member, charactersMax: number): string | undefined {
  const from = json.indexOf(quote, start)
  const end = endOfText(json, from + 1, colon)
  // A character takes six bytes at the most, as \u0061 does.
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
