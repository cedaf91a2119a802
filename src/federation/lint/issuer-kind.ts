// What the linter knows of a kind of issuer: whom its claims name, from the outside in, and the claims of a stranger.
// The kinds are data in their own files; this file reads them for the facts of a path.
import type { JsonObject } from '../../tokens/jwt-text.ts'
import type { Atom, ClaimName } from './atom.ts'
import type { Fact, Facts } from './fact.ts'
import type { RuleName } from './rules.ts'

type Pattern = Pick<RegExp, 'test'>

/**
 * A claim that names what a level is about. An exact value must match `value`, a prefix must match `prefix`, a suffix
 * `suffix` and a text within `contained`; a missing pattern accepts every value, and no part of one. A prefix that
 * matches only `open` ends within the name.
 */
export type Pin = {
  claim: ClaimName
  /** Nobody else can get this value later, unlike a name. */
  immutable?: true
  value?: Pattern
  prefix?: Pattern
  suffix?: Pattern
  contained?: Pattern
  open?: Pattern
  /** The claim is a list, which must have an item that matches. */
  item?: Pattern
  /** Another claim without whose value this one names nobody. */
  beside?: { claim: ClaimName; value: RegExp }
}

/** A pattern that no text matches. */
export const nothing = /(?!)/

/** Whom tokens are about, such as an owner, or one of its repositories. */
export type Level = { pins: readonly Pin[] }

/** From nothing to certain: the claim is free, tested somewhere inside, begins so, or is known. */
export type Certainty = 'free' | 'contained' | 'open' | 'pinned'
const certainties: readonly Certainty[] = ['free', 'contained', 'open', 'pinned']

export type Check = { rule: RuleName; applies: (facts: Facts) => boolean }

export type IssuerKind = {
  id: string
  title: string
  /** `subjects` are texts with which a subject is compared. */
  matches: (issuerUrl: string, subjects: readonly string[]) => boolean
  /**
   * Whether everyone can have tokens of this issuer, so that a policy must name its tenant. False if the URL names the
   * tenant, undefined if it depends on the installation: see shared-issuer.ts.
   */
  isShared: (issuerUrl: string) => boolean | undefined
  /** From the outside in: the tenant, then what belongs to it. */
  levels: readonly Level[]
  /** The rule for policies that name the tenant and nothing within it. */
  wideRule?: RuleName
  /** The rule for policies that name tenants by names that can pass to others. */
  namesRule?: RuleName
  checks: readonly Check[]
  /** Claims that the checks read in addition to those of the levels. */
  checkedClaims?: readonly ClaimName[]
  /** Claims that the author of a job sets, such as the name of an environment or a branch. */
  chosenClaims?: readonly string[]
  /** Rules for policies that do not name the tenant, before the general ones. */
  strangerChecks?: readonly Check[]
  /** All claims of a stranger's token in its most dangerous form, except `iss`, `aud` and the times. */
  stranger: JsonObject
  /** What is different if the audience of a policy names the tenant, because nobody else gets tokens for it. */
  ofAudience?: { audience: RegExp } & Pick<IssuerKind, 'levels' | 'stranger'>
  /** The exact subjects that its tokens can have, twice at least. Undefined: any. */
  subjects?: RegExp
  /** Claims that some tokens lack. */
  sometimes: readonly ClaimName[]
  /** Claims that the stranger's token does not show, and none that the linter should report as unknown. */
  alsoKnown?: RegExp
  /** Audiences that the platform mints for other services. */
  defaultAudience?: RegExp
  /** Tokens live for hours. */
  hasLongTokens?: true
  /** A subject of a stranger that contains a text. */
  carry?: (text: string) => string
  /** Makes claims agree with those that the policy fixes. */
  cohere?: (claims: JsonObject, isFixed: (name: string) => boolean) => void
}

/** Returns how certain the facts are about a level, by the best of its claims. */
export function certaintyOf({ pins }: Level, facts: Facts): Certainty {
  let best = 0
  for (const pin of pins) best = Math.max(best, certainties.indexOf(certaintyOfPin(pin, facts)))
  return certainties[best] ?? 'free'
}

/** Reports whether a claim that never passes to others is known. */
export function isPinnedForever(levels: readonly Level[], facts: Facts): boolean {
  return levels.some(({ pins }) =>
    pins.some((pin) => pin.immutable === true && certaintyOfPin(pin, facts) === 'pinned'),
  )
}

function certaintyOfPin(pin: Pin, facts: Facts): Certainty {
  const { claim, open = /[\s\S]/, beside } = pin
  const fact = facts.get(claim)
  if (fact === undefined || (beside !== undefined && !isExactly(facts, beside.claim, beside.value))) return 'free'
  if (isNamed(pin, fact)) return 'pinned'
  if (open.test(fact.prefix)) return 'open'
  return fact.contained.length > 0 || fact.suffix !== '' ? 'contained' : 'free'
}

function isAmong(atom: Atom, pattern: Pattern): boolean {
  if (atom.kind !== 'among' || atom.negated || atom.piece === true) return false
  return atom.values.every((value) => pattern.test(String(value)))
}

function isNamed({ value = /[\s\S]/, prefix, suffix, contained, item }: Pin, fact: Fact): boolean {
  // Of several pieces, one may be a stranger's: `environment + "-" + repository_owner` is also joined by `labs`.
  const values = fact.isPiece && (fact.values?.length ?? 0) > 1 ? undefined : fact.values
  return (
    values?.every((each) => ['string', 'number'].includes(typeof each) && value.test(String(each))) === true ||
    prefix?.test(fact.prefix) === true ||
    suffix?.test(fact.suffix) === true ||
    (contained !== undefined && fact.contained.some((text) => contained.test(text))) ||
    (item !== undefined && fact.items.some((atoms) => atoms.some((atom) => isAmong(atom, item))))
  )
}

/** Reports whether a claim can only have values that match. */
export function isOnly(facts: Facts, claim: ClaimName, pattern: RegExp): boolean {
  const fact = facts.get(claim)
  if (fact === undefined) return false
  if (fact.values !== undefined) return fact.values.every((value) => pattern.test(String(value)))
  return fact.prefix !== '' && pattern.test(fact.prefix)
}

/** Reports whether a claim can only have these exact values. */
export function isExactly(facts: Facts, claim: ClaimName, pattern: RegExp): boolean {
  return facts.get(claim)?.values?.every((value) => pattern.test(String(value))) === true
}

/** Reports whether a claim is limited to values of which one matches. */
export function canBe(facts: Facts, claim: ClaimName, pattern: RegExp): boolean {
  return facts.get(claim)?.values?.some((value) => pattern.test(String(value))) === true
}

/** Reports whether anything is asked of the value of a claim. */
export function isAsked(facts: Facts, claim: ClaimName): boolean {
  const fact = facts.get(claim)
  if (fact === undefined) return false
  return fact.values !== undefined || fact.prefix + fact.suffix + fact.contained.join('') !== ''
}
