// Finds where a JSON text breaks the rules, after a parser has refused it: the line, the column and what was expected there. It repeats nothing
// of the text but the name of a member, since the rest may be secret. Its time is linear in the length of the text.
import { createPause, giveWay } from '../scheduling/give-way.ts'

/** `rule` continues a sentence. */
export type JsonProblem = { line: number; column: number; rule: string }
/** `name` is undefined where it is too long to be shown. */
export type RepeatedMember = { line: number; column: number; name: string | undefined }

/** What may come next. */
type State = 'start' | 'firstName' | 'name' | 'colon' | 'value' | 'firstItem' | 'afterValue' | 'end'

/** Long runs are read in pieces, so that none takes long. */
const spaces = /[ \t\n\r]{1,65536}/y
const inText = /(?:[ !#-[\]-\uffff]{1,4096}|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){1,256}/y
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
const quote = /"/y
const nameCharactersShown = 64
/** As many characters of a run take about as long as a step of `createPause`. */
const charactersPerStep = 16

type Scan = {
  readonly text: string
  readonly pause: ReturnType<typeof createPause>
  at: number
  state: State
  /** For each open container the names in it, or undefined for a list. */
  readonly levels: (Set<string> | undefined)[]
}
type JsonFinding = { at: number; rule: string } | { at: number; name: string }

/** The first problem in a text that is not a JSON object; undefined where it is one. Gives way within a long text. */
export async function findJsonProblem(text: string): Promise<JsonProblem | undefined> {
  const found = await scan(text, 0)
  if (found === undefined || 'name' in found) return undefined
  return { ...placeOf(text, found.at), rule: found.rule }
}

/** The first member that an object of this JSON text names again, in its outermost object or in any. Gives way within a long text. */
export async function findRepeatedMember(
  text: string,
  where: 'outermost' | 'anywhere',
): Promise<RepeatedMember | undefined> {
  const found = await scan(text, where === 'outermost' ? 1 : Number.POSITIVE_INFINITY)
  if (found === undefined || 'rule' in found) return undefined
  const name = found.name.length > nameCharactersShown ? undefined : found.name
  return { ...placeOf(text, found.at), name }
}

/** Names of members are compared down to this level. */
async function scan(text: string, levelsCompared: number): Promise<JsonFinding | undefined> {
  const all: Scan = { text, pause: createPause(), at: 0, state: 'start', levels: [] }
  for (;;) {
    await skipRuns(all, spaces)
    if (all.at === text.length && all.state === 'end') return undefined
    const found = takeMark(all) ? undefined : await takeToken(all, levelsCompared)
    if (found !== undefined) return found
    if (all.pause.isDueAfter(1)) await giveWay()
  }
}

/** Takes a bracket, comma or colon where it is allowed. */
function takeMark(all: Scan): boolean {
  const { text, at, state, levels } = all
  const mark = text[at]
  const isValue = state === 'value' || state === 'firstItem'
  if (mark === '{' && (isValue || state === 'start')) open(all, new Set(), 'firstName')
  else if (mark === '[' && isValue) open(all, undefined, 'firstItem')
  else if (mark === ':' && state === 'colon') all.state = 'value'
  else if (mark === ',' && state === 'afterValue') all.state = levels.at(-1) === undefined ? 'value' : 'name'
  else if (mark === '}' && (state === 'firstName' || (state === 'afterValue' && levels.at(-1) !== undefined)))
    close(all)
  else if (mark === ']' && (state === 'firstItem' || (state === 'afterValue' && levels.at(-1) === undefined)))
    close(all)
  else return false
  all.at += 1
  return true
}

function open(all: Scan, names: Set<string> | undefined, state: State): void {
  all.levels.push(names)
  all.state = state
}

function close(all: Scan): void {
  all.levels.pop()
  all.state = all.levels.length === 0 ? 'end' : 'afterValue'
}

/** Takes a name or a value. Returns what is wrong with it, or the name where the object had it before. */
async function takeToken(all: Scan, levelsCompared: number): Promise<JsonFinding | undefined> {
  const { text, at, state, levels } = all
  const isName = state === 'firstName' || state === 'name'
  const isValue = state === 'value' || state === 'firstItem'
  if (isValue && skip(all, scalar)) {
    all.state = 'afterValue'
    return undefined
  }
  if (text[at] !== '"' || !(isName || isValue)) return { at, rule: ruleAt(all) }
  const problem = await takeText(all)
  if (problem !== undefined) return problem
  all.state = isName ? 'colon' : 'afterValue'
  const names = levels.at(-1)
  if (!isName || names === undefined || levels.length > levelsCompared) return undefined
  const name = JSON.parse(text.slice(at, all.at)) as string
  if (names.has(name)) return { at, name }
  names.add(name)
  return undefined
}

function ruleAt({ text, at, state, levels }: Scan): string {
  if (text[at] === '\ufeff') return 'remove the byte order mark'
  const rule = `expected ${state === 'afterValue' ? `a comma or ${levels.at(-1) === undefined ? ']' : '}'}` : expected[state]}`
  if (at === text.length) return `${rule}, but the text ends`
  return text[at] === "'" ? `${rule}, not single quotes` : rule
}

const expected: Readonly<Record<Exclude<State, 'afterValue'>, string>> = {
  start: '{',
  firstName: 'a name in double quotes, or }',
  name: 'a name in double quotes',
  colon: 'a colon',
  value: 'a value',
  firstItem: 'a value, or ]',
  end: 'nothing after the last }',
}

/** Takes a text in double quotes. Returns what is wrong with it. */
async function takeText(all: Scan): Promise<JsonFinding | undefined> {
  const start = all.at
  all.at += 1
  await skipRuns(all, inText)
  const { text, at } = all
  if (skip(all, quote)) return undefined
  if (at === text.length) return { at: start, rule: 'expected a double quote at the end of the text that begins here' }
  if (text[at] === '\\') return { at, rule: 'expected \\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u and four hex digits' }
  return { at, rule: 'expected an escape, such as \\n, in place of a control character' }
}

async function skipRuns(all: Scan, run: RegExp): Promise<void> {
  for (let from = all.at; skip(all, run); from = all.at)
    if (all.pause.isDueAfter((all.at - from) / charactersPerStep)) await giveWay()
}

function skip(all: Scan, expression: RegExp): boolean {
  expression.lastIndex = all.at
  if (!expression.test(all.text)) return false
  all.at = expression.lastIndex
  return true
}

/** Lines and columns count from 1; a column is a UTF-16 code unit. */
function placeOf(text: string, at: number): { line: number; column: number } {
  let line = 1
  let begin = 0
  for (let end = text.indexOf('\n'); end >= 0 && end < at; end = text.indexOf('\n', begin)) {
    line += 1
    begin = end + 1
  }
  return { line, column: at - begin + 1 }
}
