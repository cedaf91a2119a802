// Builds the claims of a stranger that fit a path, and runs the real policy on them. Only what it accepts is shown.

import type { JsonObject } from '../../tokens/jwt-text.ts'
import { isStringArray } from '../../values/json-members.ts'
import { conditionEnvironment } from '../condition/compile.ts'
import type { Issuer } from '../issuer/issuer.ts'
import { type Policy, rules } from '../policy.ts'
import { checkLengths, type SubjectToken } from '../subject-token/claims.ts'
import { type Atom, type ClaimName, membersOf } from './atom.ts'
import { admits, type Fact, type Facts, factsOf } from './fact.ts'
import type { IssuerKind } from './issuer-kind.ts'

/** What the linter reads of a policy. */
export type LintedPolicy = Pick<Policy, 'audience' | 'subject' | 'condition' | 'requiredScope' | 'requiredTokenType'> &
  Partial<Pick<Policy, 'attributeTo' | 'attributeEnvironment'>>

/** What the linter reads of an issuer. */
export type LintedIssuer = Pick<Issuer, 'issuerUrl' | 'maxTokenAgeSeconds' | 'shared'>

/** The claims of a token, for people to read. */
export type Witness = JsonObject

/** The times of every example, in seconds: the linter has no clock. */
const issuedAt = 1_795_000_000
const lifetimeSeconds = 300

/** Returns a stranger's token as the issuer sends it, for the audience of the policy. */
export function strangerOf(kind: IssuerKind, issuerUrl: string, audience: string): Witness {
  const times = { iat: issuedAt, nbf: issuedAt, exp: issuedAt + lifetimeSeconds }
  const jti = '90000000-0000-4000-8000-00000000000f'
  return { iss: issuerUrl, aud: audience, ...structuredClone(kind.stranger), ...times, jti }
}

/** Returns a token with these claims, or undefined if no token can have them. */
export function tokenOf(claims: Witness): SubjectToken | undefined {
  const { iss, sub, aud } = claims
  if (typeof iss !== 'string' || typeof sub !== 'string' || sub === '') return undefined
  const audience = typeof aud === 'string' ? [aud] : aud
  if (!isStringArray(audience)) return undefined
  return { algorithm: 'RS256', kid: undefined, issuer: iss, subject: sub, audience, payload: claims }
}

/** Reports whether every check of the policy accepts a token with these claims. The condition is the one that is saved. */
export function isAccepted(policy: LintedPolicy, claims: Witness): boolean {
  const token = tokenOf(claims)
  if (token === undefined) return false
  const whole = { ...policy, conditionEnvironment: policy.condition === null ? null : conditionEnvironment } as Policy
  return checkLengths(token) === undefined && Object.values(rules).every((rule) => rule(whole, token) === undefined)
}

/**
 * Returns claims that satisfy the facts and that `accepts` accepts, or undefined. What the facts leave open is a
 * stranger's, in agreement with the rest if possible.
 */
export function findWitness(
  kind: IssuerKind,
  stranger: Witness,
  facts: Facts,
  accepts: (claims: Witness) => boolean,
): Witness | undefined {
  const isMentioned = (claim: ClaimName) => facts.has(claim)
  for (const isFixed of [undefined, isMentioned]) {
    const claims = buildWitness(kind, stranger, facts, isFixed)
    if (accepts(claims)) return claims
  }
  return undefined
}

/** Reports whether facts ask for a value. An exclusion alone leaves it open. */
export function isRequired(facts: Facts, claim: ClaimName): boolean {
  const fact = facts.get(claim)
  if (fact === undefined) return false
  const { values, prefix, suffix, contained, orders, isList, isAbsent } = fact
  return values !== undefined || prefix + suffix !== '' || contained.length + orders.length > 0 || isList || isAbsent
}

/** Returns the stranger's claims, changed to satisfy the facts and then to agree with those that are fixed. */
export function buildWitness(
  kind: IssuerKind,
  stranger: Witness,
  facts: Facts,
  isFixed = (claim: ClaimName) => isRequired(facts, claim),
): Witness {
  const claims = structuredClone(stranger)
  const sorted = [...facts].toSorted(([one], [other]) => (one < other ? -1 : 1))
  for (const [claim, fact] of sorted) setClaim(claims, claim, fact, kind)
  kind.cohere?.(claims, isFixed)
  return claims
}

/** Returns the subject and some other claims of a token, in its order. */
export function claimsToShow(witness: Witness, claims: readonly ClaimName[]): Witness {
  const names = new Set(['sub', ...claims].map((claim) => membersOf(claim)[0]))
  return Object.fromEntries(Object.entries(witness).filter(([name]) => names.has(name)))
}

function setClaim(claims: Witness, claim: ClaimName, fact: Fact, kind: IssuerKind): void {
  placeValue(claims, claim, (current) => choose(current, fact, claim === 'sub' ? kind.carry : undefined))
}

/** Replaces the value of a claim, which can be within another one. Undefined: the token lacks the claim. */
export function placeValue(claims: Witness, claim: ClaimName, valueFor: (current: unknown) => unknown): void {
  const members = membersOf(claim)
  const last = members.pop() ?? ''
  let parent: Witness = claims
  for (const member of members) {
    if (typeof parent[member] !== 'object' || parent[member] === null) parent[member] = {}
    parent = parent[member] as Witness
  }
  const value = valueFor(Object.hasOwn(parent, last) ? parent[last] : undefined)
  if (value === undefined) delete parent[last]
  else parent[last] = value
}

function choose(current: unknown, fact: Fact, carry?: (text: string) => string): unknown {
  if (fact.isAbsent) return undefined
  if (fact.isList) return listOf(current, fact)
  if (admits(fact, current)) return current
  if (fact.values !== undefined) return fact.values[0]
  if (fact.orders.length > 0) return numberOf(fact)
  const text = textOf(typeof current === 'string' ? current : 'other', fact, carry)
  return admits(fact, text) ? text : `${text}x`
}

function listOf(current: unknown, fact: Fact): unknown[] {
  const list: unknown[] = Array.isArray(current) ? [...current] : typeof current === 'string' ? [current] : []
  for (const item of fact.items) list.push(itemOf(item))
  return list
}

/** Atoms of items begin with `@`: the item itself, or one of its members. */
function itemOf(atoms: readonly Atom[]): unknown {
  const facts = factsOf(atoms) ?? new Map<ClaimName, Fact>()
  const own = facts.get('@')
  if (own !== undefined) return choose(undefined, own)
  const item: Witness = {}
  for (const [claim, fact] of facts) {
    const [, member, ...deeper] = membersOf(claim)
    if (member !== undefined && deeper.length === 0) item[member] = choose(undefined, fact)
  }
  return facts.size === 0 ? 'stranger' : item
}

function numberOf({ orders }: Fact): number {
  const lower = orders.filter(({ operator }) => operator.startsWith('>')).map(({ value }) => value + 1)
  const upper = orders.filter(({ operator }) => operator.startsWith('<')).map(({ value }) => value - 1)
  return lower.length > 0 ? Math.max(...lower) : Math.min(...upper)
}

/** `model` is the stranger's own value, whose parts fill the gaps. */
function textOf(model: string, { prefix, suffix, contained }: Fact, carry?: (text: string) => string): string {
  if (prefix + suffix + contained.join('') === '') return model
  const missing = contained.filter((text) => !prefix.includes(text) && !suffix.includes(text))
  if (prefix === '' && suffix === '' && carry !== undefined) return carry(missing.join('-'))
  const start = prefix === '' ? beginning(model, suffix === '' ? (missing[0] ?? '') : suffix) : prefix
  if (suffix !== '') return start + missing.join('') + suffix
  return missing.length > 0 ? `${start}${missing.join('')}` : start + continuation(model, prefix)
}

/** The model up to where a text can follow: before its last delimiter of the same kind, or after its last one. */
function beginning(model: string, text: string): string {
  const first = text.charAt(0)
  if (/[:/@]/.test(first) && model.includes(first)) return model.slice(0, model.lastIndexOf(first))
  return /^.*[:/@]/s.exec(model)?.[0] ?? `${model}-`
}

/** What follows a prefix in the form of the model: the rest of a name, and the parts after it. */
function continuation(model: string, prefix: string): string {
  const parts = model.split(/(?<=[:/@])/)
  const known = prefix.split(/(?<=[:/@])/)
  const isWhole = /[:/@]$/.test(prefix)
  const rest = parts.slice(known.length).join('')
  if (isWhole) return rest === '' ? 'mallory' : rest
  const delimiter = /[:/@]$/.exec(parts[known.length - 1] ?? '')?.[0] ?? ''
  return rest === '' ? '-evil' : `-evil${delimiter}${rest}`
}
