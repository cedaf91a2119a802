// Lints a policy: which findings it has, each with the claims of a stranger that the real policy accepts, and which of
// them block. It decides nothing about saving. All of it takes bounded time: paths, candidates and examples are limited.
import type { Condition } from '../condition/compile.ts'
import { conditionOf, type Policy } from '../policy.ts'
import { findAdvice } from './advice.ts'
import type { Paths } from './atom.ts'
import { type Candidate, candidatesOf, pathsOfPolicy, subjectsIn } from './candidate.ts'
import type { Facts } from './fact.ts'
import { claimsReadIn } from './guesses.ts'
import type { IssuerKind } from './issuer-kind.ts'
import { kindFor } from './issuer-kinds.ts'
import { type LintLevel, levelOf, type RuleName } from './rules.ts'
import { createSearch } from './search.ts'
import { isShared } from './shared-issuer.ts'
import { strangerRules } from './stranger-rules.ts'
import { detailRulesOf, isUndecidable, strangerRuleOf } from './suspicion.ts'
import {
  claimsToShow,
  findWitness,
  isAccepted,
  type LintedIssuer,
  type LintedPolicy,
  strangerOf,
  type Witness,
} from './witness.ts'

export type Finding = {
  rule: RuleName
  level: LintLevel
  /** What it is about, such as a claim. */
  detail?: string
  /** The claims of a token that would pass. */
  witness?: Witness
  /** Of these, the subject, what the policy compares, and the ids of anyone who sent it. */
  example?: Witness
}

/** Examples that are tried for one policy, and for one rule. Each is one evaluation of the condition. */
const examplesMax = 64
const examplesPerRuleMax = 4

type LintInput = LintedPolicy & Pick<Policy, 'conditionEnvironment'> & Partial<Pick<Policy, 'lintExceptions'>>

/**
 * Returns the findings of a policy, blocking ones first. Every example was accepted by all checks of the policy, with
 * the compiled condition. What cannot be decided is `not-decided` or `not-proven-narrow`. If nobody has answered whether
 * strangers get tokens of the issuer, and the policy would be too wide if they did, that is `shared-unknown`.
 */
export function lintPolicy(policy: LintInput, issuer: LintedIssuer): Finding[] {
  const condition = conditionOf(policy as Policy)
  if (typeof condition === 'string') return [findingOf('dead', false, condition)]
  const read = { policy, issuer, condition, paths: pathsOfPolicy(policy, condition) }
  const answer = isShared(issuer)
  const findings = lintAs(read, answer ?? false)
  if (answer !== undefined) return findings
  const isAllowed = (rule: RuleName) => policy.lintExceptions?.some((each) => each.rule === rule) === true
  const ifShared = lintAs(read, true)
  const open = ifShared.filter(({ rule, level }) => level === 'blocking' && !isAllowed(rule))
  return open.length === 0 ? findings : [unknownOf(open), ...findings]
}

/** Stands for what blocks if the issuer is shared. */
function unknownOf(open: readonly Finding[]): Finding {
  const { witness, example } = open.find((each) => each.witness !== undefined) ?? {}
  return {
    ...findingOf('shared-unknown', true, open.map(({ rule }) => rule).join(', ')),
    ...(witness === undefined ? {} : { witness }),
    ...(example === undefined ? {} : { example }),
  }
}

type Read = { policy: LintedPolicy; issuer: LintedIssuer; condition: Condition | undefined; paths: Paths }

function lintAs({ policy, issuer, condition, paths }: Read, shared: boolean): Finding[] {
  // Anyone who writes a policy can know that their own issuer is a cluster. Of a shared one, only its URL is a fact.
  const kind = kindFor(issuer.issuerUrl, shared ? [] : subjectsIn(paths), policy.audience)
  const stranger = strangerOf(kind, issuer.issuerUrl, policy.audience)
  const candidates = candidatesOf(paths, kind, stranger)
  const advice = findAdvice({ policy, issuer, kind, paths, stranger }).map(({ rule, detail }) =>
    findingOf(rule, shared, detail),
  )
  const passing =
    candidates.length === 0
      ? [findingOf('dead', shared)]
      : findPassing({ policy, condition, kind, stranger, shared }, candidates)
  return [...passing, ...advice].toSorted((one, other) => levels.indexOf(one.level) - levels.indexOf(other.level))
}

const levels: readonly LintLevel[] = ['blocking', 'warning', 'note']

function findingOf(rule: RuleName, shared: boolean, detail?: string): Finding {
  return { rule, level: levelOf(rule, shared), ...(detail === undefined ? {} : { detail }) }
}

type LintContext = {
  policy: LintedPolicy
  condition: Condition | undefined
  kind: IssuerKind
  stranger: Witness
  shared: boolean
}

/** A finding about who passes, with the claims to show first. */
function passingOf(rule: RuleName, { condition, kind, shared }: LintContext, witness: Witness, facts: Facts): Finding {
  const ids = kind.levels.flatMap(({ pins }) => pins.filter(({ immutable }) => immutable).map(({ claim }) => claim))
  const read = condition === undefined ? [] : claimsReadIn(condition)
  return { ...findingOf(rule, shared), witness, example: claimsToShow(witness, [...facts.keys(), ...read, ...ids]) }
}

/** Who passes: by rule, the candidates to which it applies, and the first of them with an example that passes. */
function findPassing(linting: LintContext, candidates: Candidate[]): Finding[] {
  const { policy, kind, stranger, shared } = linting
  const findings: Finding[] = []
  const isVacuous = isAccepted(policy, stranger)
  if (isVacuous) findings.push(passingOf('vacuous', linting, stranger, new Map()))
  const suspects = new Map<RuleName, Candidate[]>()
  const unproven = new Set<RuleName>()
  for (const candidate of candidates) {
    const unnamed = strangerRuleOf(kind, shared, candidate.facts)
    if (unnamed !== undefined && isVacuous) continue
    if (unnamed !== undefined && isUndecidable(kind, candidate.facts)) {
      unproven.add(unnamed)
      continue
    }
    const rules = unnamed === undefined ? detailRulesOf(kind, candidate.facts) : [unnamed]
    for (const rule of rules) suspects.set(rule, [...(suspects.get(rule) ?? []), candidate])
  }
  const [tryExample, search] = [createExamples(policy, kind, stranger), createStrangerSearch(linting)]
  for (const [rule, suspected] of suspects) {
    const tried = suspected.slice(0, examplesPerRuleMax)
    const found = firstWith(tried, tryExample) ?? (strangerRules.includes(rule) ? firstWith(tried, search) : undefined)
    if (found === undefined) unproven.add(rule)
    else {
      unproven.delete(rule)
      findings.push(passingOf(rule, linting, found.witness, found.candidate.facts))
    }
  }
  findings.push(...undecidedFindings([...unproven], shared))
  return findings.toSorted((one, other) => (one.rule < other.rule ? -1 : 1))
}

/** A search that begins when it is used. Without levels, the linter does not know what a stranger can choose. */
function createStrangerSearch({ policy, condition, kind, stranger }: LintContext) {
  let search: ReturnType<typeof createSearch> | undefined
  return ({ facts }: Candidate): Witness | undefined => {
    if (kind.levels.length === 0) return undefined
    search ??= createSearch(policy, condition, kind, stranger)
    return search(facts)
  }
}

/** The first candidate for which a token is found. */
function firstWith(candidates: readonly Candidate[], find: (candidate: Candidate) => Witness | undefined) {
  for (const candidate of candidates) {
    const witness = find(candidate)
    if (witness !== undefined) return { candidate, witness }
  }
  return undefined
}

/**
 * What is suspected, and neither shown nor excluded. Where strangers have tokens, a suspicion that would block does so
 * until it is decided.
 */
function undecidedFindings(unproven: readonly RuleName[], shared: boolean): Finding[] {
  const blocks = (rule: RuleName) => levelOf(rule, shared) === 'blocking'
  const [blocking, others] = [unproven.filter(blocks), unproven.filter((rule) => !blocks(rule))]
  return [
    ...(blocking.length === 0 ? [] : [findingOf('not-decided', shared, blocking.toSorted().join(', '))]),
    ...(others.length === 0 ? [] : [findingOf('not-proven-narrow', shared, others.toSorted().join(', '))]),
  ]
}

/** Returns a function that builds an example once for each candidate, and none after `examplesMax`. */
function createExamples(policy: LintedPolicy, kind: IssuerKind, stranger: Witness) {
  const known = new Map<Candidate, Witness | undefined>()
  return (candidate: Candidate): Witness | undefined => {
    if (known.has(candidate) || known.size >= examplesMax) return known.get(candidate)
    known.set(
      candidate,
      findWitness(kind, stranger, candidate.facts, (claims) => isAccepted(policy, claims)),
    )
    return known.get(candidate)
  }
}
