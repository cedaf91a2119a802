// The ways in which a token can pass a policy: its paths with their facts, without those that no token of the issuer
// can take.
import type { Condition } from '../condition/compile.ts'
import {
  type Atom,
  always,
  among,
  type ClaimName,
  membersOf,
  only,
  type Path,
  type Paths,
  type Scalar,
} from './atom.ts'
import { asksText, type Fact, type Facts, factsOf } from './fact.ts'
import type { IssuerKind } from './issuer-kind.ts'
import { allOf, pathKeyOf, pathsMax } from './paths.ts'
import { pathsOfCondition } from './translation.ts'
import type { LintedPolicy, Witness } from './witness.ts'

export type Candidate = { facts: Facts }

/** Returns the paths of a whole policy: its subject, its claim checks and its condition, in a fixed order. */
export function pathsOfPolicy(policy: LintedPolicy, condition: Condition | undefined): Paths {
  const { subject, requiredScope, requiredTokenType } = policy
  const paths = allOf([
    subject === null ? always : only(among('sub', [subject], false)),
    requiredScope === null
      ? always
      : only({ kind: 'some', claim: 'scopes', item: [among('@', [requiredScope], false)] }),
    requiredTokenType === null ? always : only(among('token_type', [requiredTokenType], false)),
    condition === undefined ? always : pathsOfCondition(condition),
  ])
  return paths.toSorted((one, other) => (pathKeyOf(one) < pathKeyOf(other) ? -1 : 1))
}

/** Returns the candidates of paths. A path of several subjects becomes one candidate for each. */
export function candidatesOf(paths: Paths, kind: IssuerKind, stranger: Witness): Candidate[] {
  const candidates = paths.flatMap((path) => {
    const facts = factsOf([...path.values()].map((atom) => convert(atom, kind, stranger)))
    const fitting = facts === undefined ? undefined : fitToKind(facts, kind, stranger)
    return fitting === undefined ? [] : [{ facts: fitting }]
  })
  const split = candidates.flatMap(splitSubjects)
  return split.length <= pathsMax ? split : candidates
}

/** A text is its own string(). An id that nobody else can get is written in one way, so int() of it is the id. */
function convert(atom: Atom, { levels }: IssuerKind, stranger: Witness): Atom {
  if (atom.kind !== 'converted') return atom
  const { claim, to, test } = atom
  if (to === 'text') return typeof valueAt(stranger, claim) === 'string' ? test : atom
  const isId = levels.some(({ pins }) => pins.some((pin) => pin.claim === claim && pin.immutable === true))
  return isId ? test : atom
}

function splitSubjects(candidate: Candidate): Candidate[] {
  const fact = candidate.facts.get('sub')
  if (fact?.values === undefined || fact.values.length === 1 || fact.isPiece) return [candidate]
  return fact.values.map((value) => ({
    facts: new Map([...candidate.facts, ['sub', { ...fact, values: [value] }]]),
  }))
}

/** The texts with which paths compare the subject. */
export function subjectsIn(paths: Paths): string[] {
  const facts = paths.map((path: Path) => factsOf(path.values())?.get('sub'))
  return facts.flatMap((fact) => [...(fact?.values ?? []), fact?.prefix ?? '', ...(fact?.contained ?? [])].map(String))
}

/** Drops values that tokens of the issuer cannot have. Returns undefined if none is left. */
function fitToKind(facts: Facts, { subjects }: IssuerKind, stranger: Witness): Facts | undefined {
  const fitting = new Map<ClaimName, Fact>()
  for (const [claim, fact] of facts) {
    const example = valueAt(stranger, claim)
    const known = claim === 'aud' || example === null || typeof example === 'object' ? undefined : typeof example
    if (known !== undefined && known !== 'undefined' && ((known !== 'string' && asksText(fact)) || fact.isList))
      return undefined
    const values = fact.values?.filter(
      (value) =>
        (known === undefined || known === 'undefined' || typeof value === known) &&
        (claim !== 'sub' || subjects?.test(String(value)) !== false),
    )
    if (values?.length === 0) return undefined
    fitting.set(claim, values === undefined ? fact : { ...fact, values })
  }
  return fitting
}

/** Returns the value of a claim, undefined if the token lacks it. */
export function valueAt(claims: Witness, claim: ClaimName): unknown {
  let value: unknown = claims
  for (const member of membersOf(claim)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, member)) return undefined
    value = (value as Witness)[member]
  }
  return value
}

/** Reports whether a value says who the token is about. Flags do not. */
export function isName(value: Scalar): boolean {
  return typeof value === 'number' || (typeof value === 'string' && !['true', 'false'].includes(value))
}
