// Looks for a stranger's token where the paths do not say what to try: with names, ids and free values made from the
// constants of the policy. The policy itself judges each token. It knows neither clock nor chance, and is bounded.
import type { ASTNode } from '@marcbachmann/cel-js'
import { activationOf } from '../condition/activation.ts'
import type { Condition } from '../condition/compile.ts'
import { prepare } from '../condition/engine.ts'
import { childrenOf } from '../condition/explanation.ts'
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

/** Tokens that are tried for one policy. A long condition takes longer, so fewer are tried. */
const tokensMax = 400
const nodesMax = 20_000
/** Claims of one token that are changed, and how often each. */
const claimsMax = 12
const roundsMax = 2

type Judge = {
  /** How many conjuncts of the condition are true. */
  rate: (claims: Witness) => number
  accepts: (claims: Witness) => boolean
  isSpent: () => boolean
}

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
    const start = bestProfile(facts, kind, guesses, judge)
    if (start === undefined || judge.accepts(start)) return start
    const fixed = new Set([...facts.keys()].filter((claim) => isRequired(facts, claim)))
    return climb(start, claims, kind, guesses, judge, fixed)
  }
}

function createJudge(policy: LintedPolicy, { ast, source }: Condition): Judge {
  const conjuncts = conjunctsOf(ast).map((each) => prepare(each, source))
  let left = Math.min(tokensMax, Math.ceil(nodesMax / countNodes(ast)))
  const rate = (claims: Witness): number => {
    left -= 1
    const token = tokenOf(claims)
    const view = token === undefined ? undefined : activationOf(token, true)
    if (view === undefined || isRefusal(view)) return -1
    return conjuncts.filter((each) => isTrue(() => each(view))).length
  }
  return { rate, accepts: (claims) => isAccepted(policy, claims), isSpent: () => left <= 0 }
}

function isTrue(evaluate: () => unknown): boolean {
  try {
    return evaluate() === true
  } catch {
    return false
  }
}

/** The same stranger under other names. Returns the one that satisfies the most. */
function bestProfile(facts: Facts, kind: IssuerKind, { profiles }: Guesses, judge: Judge): Witness | undefined {
  let [best, bestRate] = [undefined as Witness | undefined, -1]
  for (const profile of profiles) {
    if (judge.isSpent()) break
    const claims = buildWitness(kind, profile, facts)
    const rate = judge.rate(claims)
    if (rate > bestRate) [best, bestRate] = [claims, rate]
    if (judge.accepts(claims)) return claims
  }
  return best
}

/** Changes one claim at a time as long as more of the condition becomes true. */
function climb(
  start: Witness,
  claims: readonly ClaimName[],
  kind: IssuerKind,
  { valuesFor }: Guesses,
  judge: Judge,
  fixed: Set<ClaimName>,
): Witness | undefined {
  let [best, bestRate] = [start, judge.rate(start)]
  for (let round = 0; round < roundsMax; round++)
    for (const claim of claims)
      for (const value of valuesFor(claim, othersOf(best, claim, claims))) {
        if (judge.isSpent()) return undefined
        const tried = changedClaim(best, claim, value, kind, fixed)
        const rate = judge.rate(tried)
        if (rate <= bestRate) continue
        ;[best, bestRate] = [tried, rate]
        fixed.add(claim)
        if (judge.accepts(tried)) return tried
      }
  return undefined
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

function conjunctsOf(node: ASTNode): ASTNode[] {
  return node.op === '&&' ? node.args.flatMap(conjunctsOf) : [node]
}

function countNodes(node: ASTNode): number {
  return childrenOf(node).reduce((total, each) => total + countNodes(each), 1)
}
