// What a JSON text tells before and beside being parsed: how much it holds, and where the members of its outermost object stand. It knows
// texts alone; of one that is no JSON it tells something up to the first mistake, beyond which no parser goes either.
import { Fault } from '../fault.ts'
import { jsonLevelsMax, jsonMembersMax, jsonValuesMax } from '../limits.ts'

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a]
const [openBracket, closeBracket, openBrace, closeBrace] = [0x5b, 0x5d, 0x7b, 0x7d]

/**
 * How many members the outermost object has, those named twice counted twice. One pass over the text, in which strings cost next to nothing.
 * @throws Fault `invalid` beyond the bounds within which parsing is quick
 */
export function countMembers(json: string): number {
  let levels = 0
  let values = 0
  let members = 0
  let outermost = 0
  for (let at = 0; at < json.length; at++) {
    const character = json.charCodeAt(at)
    if (character === quote) at = endOfString(json, at)
    else if (character === colon) {
      members += 1
      if (levels === 1) outermost += 1
      if (members > jsonMembersMax) throw beyond(`have at most ${jsonMembersMax} members in all its objects`)
    } else if (character === comma || character === openBracket || character === openBrace) {
      values += 1
      if (values > jsonValuesMax) throw beyond(`hold at most ${jsonValuesMax} values`)
      if (character === comma) continue
      levels += 1
      if (levels > jsonLevelsMax) throw beyond(`be nested at most ${jsonLevelsMax} levels deep`)
    } else if (character === closeBracket || character === closeBrace) levels -= 1
  }
  return outermost
}

/**
 * The object in a JSON text with some members set, or left out where they are undefined. Whatever stands in the others stays as it was
 * written: a number may be one that no parser here can hold.
 */
export function withMembers(json: string, changes: Record<string, unknown>): string {
  const members: string[] = []
  let levels = 0
  let start = 0
  let name: string | undefined
  for (let at = 0; at < json.length; at++) {
    const character = json.charCodeAt(at)
    const isEnd = levels === 1 && (character === comma || character === closeBrace)
    if (isEnd && name !== undefined && !Object.hasOwn(changes, name)) members.push(json.slice(start, at))
    if (character === quote) {
      const end = endOfString(json, at)
      if (levels === 1) name ??= JSON.parse(json.slice(at, end + 1)) as string
      at = end
    } else if (character === openBracket || character === openBrace) levels += 1
    else if (character === closeBracket || character === closeBrace) levels -= 1
    if (isEnd || (levels === 1 && character === openBrace)) {
      start = at + 1
      name = undefined
    }
  }
  // Without its braces; what is undefined is left out.
  const set = JSON.stringify(changes).slice(1, -1)
  if (set !== '') members.push(set)
  return `{${members.join(',')}}`
}

/** Where the string that begins here ends. */
function endOfString(json: string, start: number): number {
  for (let before = start; ; ) {
    const end = json.indexOf('"', before + 1)
    if (end < 0) return json.length
    let escapes = end
    while (escapes - 1 > before && json.charCodeAt(escapes - 1) === backslash) escapes -= 1
    if ((end - escapes) % 2 === 0) return end
    before = end
  }
}

function beyond(rule: string): Fault {
  return new Fault('invalid', `The body must ${rule}`, { reason: 'body_json_bounds' })
}
