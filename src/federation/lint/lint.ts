// Lints a policy: which findings it has, each with the claims of a stranger that the real policy accepts. It decides
// nothing about saving. All of it takes bounded time: paths, candidates and examples are limited.
import { conditionOf, type Policy } from '../policy.ts'
import { findAdvice } from './advice.ts'
import { type Candidate, candidatesOf, isName, pathsOfPolicy, subjectsIn } from './candidate.ts'
import { type Facts, factsOf } from './fact.ts'
import { certaintyOf, type IssuerKind, isPinnedForever } from './issuer-kind.ts'
import { kindOf } from './issuer-kinds.ts'
import { type LintLevel, lintRules, type RuleName } from './rules.ts'
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
  /** Of these, the subject, what the policy compares, and the ids of whoever sent it. */
  example?: Witness
}

/** Examples that are tried for one policy, and for one rule. Each is one evaluation of the condition. */
const examplesMax = 64
const examplesPerRuleMax = 4

/**
 * Returns the findings of a policy, blocking ones first. Every example was accepted by all checks of the policy, with
 * the compiled condition. What cannot be decided is `not-decided` or `not-proven-narrow`.
 */
export function lintPolicy(
  policy: LintedPolicy & Pick<Policy, 'conditionEnvironment'>,
  issuer: LintedIssuer,
): Finding[] {
  const condition = conditionOf(policy as Policy)
  if (typeof condition === 'string') return [findingOf('dead', condition)]
  const paths = pathsOfPolicy(policy, condition)
  const kind = kindOf(issuer.issuerUrl, subjectsIn(paths))
  const stranger = strangerOf(kind, issuer.issuerUrl, policy.audience)
  const candidates = candidatesOf(paths, kind, stranger)
  const advice = findAdvice({ policy, issuer, kind, paths, stranger }).map(({ rule, detail }) =>
    findingOf(rule, detail),
  )
  const passing = candidates.length === 0 ? [findingOf('dead')] : findPassing(policy, kind, stranger, candidates)
  return [...passing, ...advice].toSorted((one, other) => levels.indexOf(one.level) - levels.indexOf(other.level))
}

const levels: readonly LintLevel[] = ['blocking', 'warning', 'note']

function findingOf(rule: RuleName, detail?: string): Finding {
  return { rule, level: lintRules[rule].level, ...(detail === undefined ? {} : { detail }) }
}

/** A finding about who passes, with the claims to show first. */
function passingOf(rule: RuleName, { levels }: IssuerKind, witness: Witness, facts: Facts): Finding {
  const ids = levels.flatMap(({ pins }) => pins.filter(({ immutable }) => immutable).map(({ claim }) => claim))
  return { ...findingOf(rule), witness, example: claimsToShow(witness, [...facts.keys(), ...ids]) }
}

/** Who passes: by rule, the candidates to which it applies, and the first of them with an example that passes. */
function findPassing(policy: LintedPolicy, kind: IssuerKind, stranger: Witness, candidates: Candidate[]): Finding[] {
  const findings: Finding[] = []
  const isVacuous = isAccepted(policy, stranger)
  if (isVacuous) findings.push(passingOf('vacuous', kind, stranger, new Map()))
  const isShared = kind.isShared(String(stranger.iss))
  const suspects = new Map<RuleName, Candidate[]>()
  for (const candidate of candidates) {
    const unnamed = strangerRuleOf(kind, isShared, candidate.facts)
    if (unnamed !== undefined && isVacuous) continue
    const rules = unnamed === undefined ? detailRulesOf(kind, candidate.facts) : [unnamed]
    for (const rule of rules) suspects.set(rule, [...(suspects.get(rule) ?? []), candidate])
  }
  const tryExample = createExamples(policy, kind, stranger)
  const unproven: RuleName[] = []
  for (const [rule, suspected] of suspects) {
    const found = suspected
      .slice(0, examplesPerRuleMax)
      .map((candidate) => ({ candidate, witness: tryExample(candidate) }))
      .find(({ witness }) => witness !== undefined)
    if (found?.witness === undefined) unproven.push(rule)
    else findings.push(passingOf(rule, kind, found.witness, found.candidate.facts))
  }
  findings.push(...undecidedFindings(unproven, isShared))
  return findings.toSorted((one, other) => (one.rule < other.rule ? -1 : 1))
}

/**
 * What is suspected, and neither shown nor excluded. Where strangers have tokens, a suspicion that would block does so
 * until it is decided.
 */
function undecidedFindings(unproven: readonly RuleName[], isShared: boolean): Finding[] {
  const blocks = (rule: RuleName) => isShared && lintRules[rule].level === 'blocking'
  const [blocking, others] = [unproven.filter(blocks), unproven.filter((rule) => !blocks(rule))]
  return [
    ...(blocking.length === 0 ? [] : [findingOf('not-decided', blocking.toSorted().join(', '))]),
    ...(others.length === 0 ? [] : [findingOf('not-proven-narrow', others.toSorted().join(', '))]),
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

/** Returns the rule by which a stranger passes, if the facts do not name the tenant. */
function strangerRuleOf(kind: IssuerKind, isShared: boolean, facts: Facts): RuleName | undefined {
  const [tenant] = kind.levels
  if (tenant === undefined) return isIdentified(facts) ? undefined : 'exclusion-only'
  const found = kind.strangerChecks?.find(({ applies }) => applies(facts))
  if (found !== undefined) return found.rule
  const certainty = certaintyOf(tenant, facts)
  if (certainty === 'open') return 'prefix-open'
  if (certainty === 'contained') return 'contains-only'
  if (certainty === 'pinned') return undefined
  if (isShared) return 'shared-no-tenant'
  return kind.levels.length > 1 ? 'tenant-wide' : kind.wideRule
}

/** Claims that say for what a token is, not for whom. */
const impersonal = ['aud', 'iss', 'token_type', 'typ', 'iat', 'exp', 'nbf']

/** Reports whether some claim must have a name, or contain one, or be a list with such an item. */
function isIdentified(facts: Facts): boolean {
  return [...facts].some(
    ([claim, { values, prefix, suffix, contained, items }]) =>
      !impersonal.includes(claim) &&
      (values?.every(isName) === true ||
        prefix + suffix + contained.join('') !== '' ||
        items.some((item) => isIdentified(factsOf(item) ?? new Map()))),
  )
}

/** Returns the rules about what belongs to a known tenant. */
function detailRulesOf(kind: IssuerKind, facts: Facts): RuleName[] {
  const rules: RuleName[] = kind.checks.filter(({ applies }) => applies(facts)).map(({ rule }) => rule)
  const within = withinRuleOf(kind, facts)
  if (within !== undefined) rules.push(within)
  if (kind.namesRule !== undefined && !isPinnedForever(kind.levels, facts)) rules.push(kind.namesRule)
  return rules
}

function withinRuleOf({ levels, wideRule }: IssuerKind, facts: Facts): RuleName | undefined {
  const level = levels[1] ?? levels[0]
  if (level === undefined) return isOnlyPartial(facts) ? 'prefix-names' : undefined
  const certainty = certaintyOf(level, facts)
  if (certainty === 'pinned') return undefined
  if (certainty !== 'open') return wideRule
  const prefixes = level.pins.map(({ claim }) => facts.get(claim)?.prefix)
  return prefixes.some(isPartOfName) ? 'prefix-within' : 'prefix-names'
}

function isPartOfName(prefix: string | undefined): boolean {
  return prefix !== undefined && /[\p{L}\p{N}]$/u.test(prefix)
}

/** Reports whether parts of names are all that says who the token is about. */
function isOnlyPartial(facts: Facts): boolean {
  const named = [...facts].filter((entry) => isIdentified(new Map([entry])))
  return named.every(
    ([, { values, prefix, items }]) =>
      values === undefined && items.length === 0 && (prefix === '' || isPartOfName(prefix)),
  )
}
