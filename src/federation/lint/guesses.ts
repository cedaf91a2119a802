// What to try in a stranger's token: names, ids and other values near the constants of a condition. Names that the
// condition writes out are its tenant's, and no stranger has them.
import type { ASTNode } from '@marcbachmann/cel-js'
import type { JsonObject } from '../../tokens/jwt-text.ts'
import type { Condition } from '../condition/compile.ts'
import { childrenOf } from '../condition/explanation.ts'
import type { ClaimName } from './atom.ts'
import { valueAt } from './candidate.ts'
import { claimOf, constantOf, isClaims, type Scope } from './constants.ts'
import type { IssuerKind } from './issuer-kind.ts'
import type { Witness } from './witness.ts'

export type Constants = { texts: readonly string[]; numbers: readonly number[] }

export type Guesses = {
  /** The stranger under other names. */
  profiles: readonly Witness[]
  /** What to try as a claim of a token, whose other claims are given by name. */
  valuesFor: (claim: ClaimName, others: ReadonlyMap<ClaimName, unknown>) => readonly unknown[]
}

/** The names that samples of strangers have for their organization and their project. */
const [owner, project] = [/mallory/g, /\blab\b/g]

const [textsMax, numbersMax, namesMax, projectsMax, valuesMax, joinedMax] = [12, 6, 24, 4, 40, 3]
/** The longest name of an account at the platforms. */
const nameCharactersMax = 39

/** Returns the constants of a condition, sorted, so that the order in the source does not matter. */
export function constantsIn({ ast, source }: Condition): Constants {
  const [texts, numbers] = [new Set<string>(), new Set<number>()]
  const scope = emptyScope(source)
  const visit = (node: ASTNode): void => {
    const constant = ['value', '+', '-_'].includes(node.op) ? constantOf(node, scope) : undefined
    if (typeof constant === 'string') texts.add(constant)
    else if (typeof constant === 'number') numbers.add(constant)
    else childrenOf(node).forEach(visit)
  }
  visit(ast)
  return { texts: [...texts].toSorted(), numbers: [...numbers].toSorted((one, other) => one - other) }
}

/** Returns the claims that a condition reads, sorted. */
export function claimsReadIn({ ast, source }: Condition): ClaimName[] {
  const claims = new Set<ClaimName>()
  const scope = emptyScope(source)
  const visit = (node: ASTNode): void => {
    const claim = claimOf(node, scope)
    if (claim !== undefined) claims.add(claim)
    else childrenOf(node).forEach(visit)
    if (node.op !== 'in' || !isClaims(node.args[1])) return
    const name = constantOf(node.args[0], scope)
    if (typeof name === 'string') claims.add(name)
  }
  visit(ast)
  return [...claims].toSorted()
}

function emptyScope(source: string): Scope {
  return { source, bindings: new Map(), budget: { nodes: 1_000, evaluations: 0 } }
}

export function guessesOf(constants: Constants, kind: IssuerKind, stranger: Witness): Guesses {
  const texts = constants.texts.slice(0, textsMax)
  const numbers = constants.numbers.slice(0, numbersMax)
  const words = texts.flatMap((text) => text.split(/[^\p{L}\p{N}_.-]+/u)).filter((word) => word !== '')
  const taken = new Set([...texts, ...words, ...numbers.map(String)].map((text) => text.toLowerCase()))
  const isFree = (text: string): boolean => !taken.has(text.toLowerCase())
  const names = unique(namesNear(words, numbers)).filter(isFree).slice(0, namesMax)
  const ids = unique([...numbers.flatMap(around).map(String), ...texts.flatMap(idsNear), '1100000001', '60']).filter(
    isFree,
  )
  const free = unique<string | number>([
    ...texts,
    ...numbers.flatMap(around),
    ...numbers.flatMap(around).map(String),
    ...words,
    ...texts.flatMap((text) => [`${text}x`, `x${text}`, text.slice(0, -1)]),
    ...numbers.filter((count) => count >= 0 && count <= 200).map((count) => 'x'.repeat(count)),
  ])
  const tenant = new Set(kind.levels[0]?.pins.map(({ claim }) => claim))
  return {
    profiles: [
      ...names.map((name) => renamed(stranger, owner, name)),
      ...unique(words)
        .slice(0, projectsMax)
        .map((word) => renamed(stranger, project, word)),
    ],
    valuesFor: (claim, others) => {
      const sample = valueAt(stranger, claim)
      if (typeof sample === 'boolean') return [!sample]
      if (typeof sample === 'number') return [...around(sample), ...numbers.flatMap(around)]
      if (!tenant.has(claim)) return [...joinedWith(others, texts), ...free.slice(0, valuesMax), true, undefined]
      if (typeof sample === 'string' && /^[^/:]*\d$/.test(sample)) return ids.slice(0, valuesMax)
      const carried = claim === 'sub' && kind.carry !== undefined ? texts.map(kind.carry) : []
      return [...carried, ...(typeof sample === 'string' ? names.map((name) => sample.replaceAll(owner, name)) : names)]
    },
  }
}

/** Names that begin or end like a word, are a part of it, or have a length that the condition mentions. */
function namesNear(words: readonly string[], numbers: readonly number[]): string[] {
  const lengths = numbers.flatMap(around).filter((length) => length >= 1 && length <= nameCharactersMax)
  const alike = words.flatMap((word) => [
    ...[`${word}evil`, `${word}-evil`, `evil${word}`, `evil-${word}`, word.slice(0, -1), word.slice(1), `${word}x`],
    ...lengths.map((length) => word.padEnd(length, 'm')),
  ])
  const numerals = numbers.map((number) => `0${number}`)
  const others = ['mallory', 'm', 'zz', 'm-1', '1m', ...numerals, ...lengths.map((length) => 'm'.repeat(length))]
  return [...alike, ...others].filter(
    (name) => /^[a-z0-9](?:[\w.-]*[a-z0-9])?$/i.test(name) && name.length <= nameCharactersMax,
  )
}

function around(number: number): number[] {
  return [number + 1, number - 1, number]
}

/** Values of other claims, alone and behind a constant text. */
function joinedWith(others: ReadonlyMap<ClaimName, unknown>, texts: readonly string[]): string[] {
  const values = [...others.values()].filter((value) => typeof value === 'string').slice(0, joinedMax)
  return values.flatMap((value) => ['', ...texts.slice(0, joinedMax)].map((text) => text + value))
}

/** Other ids that begin or end like one that is written out. */
function idsNear(text: string): string[] {
  return /^\d+$/.test(text) ? [`${text}1`, `1${text}`, text.slice(0, -1)].filter((id) => id !== '') : []
}

function unique<Value>(values: readonly Value[]): Value[] {
  return [...new Set(values)]
}

/** The same claims with another name wherever it is. */
function renamed(claims: Witness, name: RegExp, by: string): Witness {
  const rename = (value: unknown): unknown => {
    if (typeof value === 'string') return value.replaceAll(name, by)
    if (Array.isArray(value)) return value.map(rename)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([member, each]) => [member, rename(each)]))
  }
  return rename(claims) as JsonObject
}
