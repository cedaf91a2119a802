// Looks for a stranger's token where the paths do not say what to try: with names, ids and free values made from the
// constants of the policy. The policy itself judges each token. It knows neither clock nor chance, and is bounded.
import type { ASTNode } from '@marcbachmann/cel-js'
import { activationOf } from '../condition/activation.ts'
import type { Condition } from '../condition/compile.ts'
import { prepare } from '../condition/engine.ts'
import { childrenOf } from '../condition/explanation.ts'
import { macros } from '../condition/permitted.ts'
import { isRefusal } from '../subject-token/refusal.ts'
import type { ClaimName } from './atom.ts'
import { valueAt } from './candidate.ts'
import type { Facts } from './fact.ts'
import { claimsReadIn, constantsIn, type Guesses, guessesOf } from './guesses.ts'
import type { IssuerKind } from './issuer-kind.ts'
import {
  buildWitness,
  isAccepted,
  isRequired,
  type LintedPolicy,
  placeValue,
  tokenOf,
  type Witness,
} from './witness.ts'

/** Tokens that are tried for one policy, and nodes of its condition that are evaluated for all of them. */
const tokensMax = 400
const evaluationsMax = 40_000
/** Items of a list that comes from the token. */
const itemsMax = 8
/** Claims of one token that are changed, and how often each. */
const claimsMax = 12
const roundsMax = 2

type Judge = {
  /** How many conjuncts of the condition are true, or Infinity if the whole policy accepts the token. */
  rate: (claims: Witness) => number
  isSpent: () => boolean
}
type RatedWitness = { claims: Witness; rate: number }

/** Returns a search for a token that satisfies the facts as far as possible, and the whole policy. */
export function createSearch(
  policy: LintedPolicy,
  condition: Condition | undefined,
  kind: IssuerKind,
  stranger: Witness,
): (facts: Facts) => Witness | undefined {
  if (condition === undefined) return () => undefined
  const judge = createJudge(policy, condition)
  const guesses = guessesOf(constantsIn(condition), kind, stranger)
  const claims = claimsReadIn(condition).slice(0, claimsMax)
  return (facts) => {
    const fixed = new Set([...facts.keys()].filter((claim) => isRequired(facts, claim)))
    const found = climb(bestProfile(facts, kind, guesses, judge), claims, kind, guesses, judge, fixed)
    return found.rate === Infinity ? found.claims : undefined
  }
}

function createJudge(policy: LintedPolicy, { ast, source }: Condition): Judge {
  const conjuncts = conjunctsOf(ast).map(({ node, truth }) => ({ evaluate: prepare(node, source), truth }))
  let left = Math.min(tokensMax, Math.ceil(evaluationsMax / countEvaluations(ast)))
  const rate = (claims: Witness): number => {
    left -= 1
    const token = tokenOf(claims)
    const view = token === undefined ? undefined : activationOf(token, true)
    if (view === undefined || isRefusal(view)) return -1
    const rated = conjuncts.filter(({ evaluate, truth }) => resultOf(() => evaluate(view)) === truth).length
    return rated === conjuncts.length && isAccepted(policy, claims) ? Infinity : rated
  }
  return { rate, isSpent: () => left <= 0 }
}

function resultOf(evaluate: () => unknown): unknown {
  try {
    return evaluate()
  } catch {
    return undefined
  }
}

/** The same stranger under other names. Returns the one that satisfies the most. */
function bestProfile(facts: Facts, kind: IssuerKind, { profiles }: Guesses, judge: Judge): RatedWitness {
  let best: RatedWitness = { claims: {}, rate: -Infinity }
  for (const profile of profiles) {
    if (judge.isSpent() || best.rate === Infinity) break
    const claims = buildWitness(kind, profile, facts)
    const rate = judge.rate(claims)
    if (rate > best.rate) best = { claims, rate }
  }
  return best
}

/** Changes one claim at a time as long as more of the condition becomes true. */
function climb(
  start: RatedWitness,
  claims: readonly ClaimName[],
  kind: IssuerKind,
  { valuesFor }: Guesses,
  judge: Judge,
  fixed: Set<ClaimName>,
): RatedWitness {
  let best = start
  for (let round = 0; round < roundsMax; round++)
    for (const claim of claims)
      for (const value of valuesFor(claim, othersOf(best.claims, claim, claims))) {
        if (judge.isSpent() || best.rate === Infinity) return best
        const tried = changedClaim(best.claims, claim, value, kind, fixed)
        const rate = judge.rate(tried)
        if (rate <= best.rate) continue
        best = { claims: tried, rate }
        fixed.add(claim)
      }
  return best
}

function othersOf(token: Witness, claim: ClaimName, claims: readonly ClaimName[]): Map<ClaimName, unknown> {
  return new Map(claims.filter((each) => each !== claim).map((each) => [each, valueAt(token, each)]))
}

function changedClaim(
  claims: Witness,
  claim: ClaimName,
  value: unknown,
  kind: IssuerKind,
  fixed: ReadonlySet<ClaimName>,
): Witness {
  const copy = structuredClone(claims)
  placeValue(copy, claim, () => value)
  kind.cohere?.(copy, (name) => name === claim || fixed.has(name))
  return copy
}

/** What must be true or false together, in whatever way a condition negates it. */
function conjunctsOf(node: ASTNode, truth = true): { node: ASTNode; truth: boolean }[] {
  if (node.op === '!_') return conjunctsOf(node.args, !truth)
  if (node.op !== (truth ? '&&' : '||')) return [{ node, truth }]
  return (node.args as [ASTNode, ASTNode]).flatMap((each) => conjunctsOf(each, truth))
}

/** How many nodes one evaluation can reach: those within a macro once for each item. */
function countEvaluations(node: ASTNode): number {
  const count = (nodes: readonly ASTNode[]) => nodes.reduce((total, each) => total + countEvaluations(each), 0)
  if (node.op === '!_') return countEvaluations(node.args)
  if (node.op !== 'rcall' || !macros.includes(node.args[0])) return 1 + count(childrenOf(node))
  const [, receiver, given] = node.args
  return 1 + countEvaluations(receiver) + countItems(receiver) * count(given)
}

function countItems(node: ASTNode): number {
  if (node.op === 'list' || node.op === 'map') return node.args.length
  if (node.op === '+') return node.args.reduce((total, each) => total + countItems(each), 0)
  return node.op === 'rcall' && macros.includes(node.args[0]) ? countItems(node.args[1]) : itemsMax
}
