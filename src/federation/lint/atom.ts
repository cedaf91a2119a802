// The parts that paths consist of: what a condition asks of one claim. It knows no issuers and no rules.

export type Scalar = string | number | boolean | null

/** Members of a token, joined by NUL because names of claims contain dots and slashes. `@` is an item of a list. */
export type ClaimName = string

/** Returns the name of a nested claim. */
export function claimAt(...members: readonly string[]): ClaimName {
  return members.join('\0')
}

/** Returns the members of a claim, outermost first. */
export function membersOf(claim: ClaimName): string[] {
  return claim.split('\0')
}

export type TextOperator = 'startsWith' | 'endsWith' | 'contains'
export type OrderOperator = '<' | '<=' | '>' | '>='

/** `piece`: the values are parts of a text that other claims are joined to, so a condition compares none of them alone. */
type Comparison =
  | { kind: 'among'; claim: ClaimName; negated: boolean; values: readonly Scalar[]; piece?: true }
  | { kind: 'text'; claim: ClaimName; negated: boolean; operator: TextOperator; text: string }

/**
 * `some`: an item of the list satisfies all atoms, whose claims begin with `@`. `every`: an empty list satisfies it.
 * `converted`: the test is of what string() or int() makes of the claim, so the type of the claim decides what it asks.
 * `opaque`: a part that is not understood. It can only narrow a path.
 */
export type Atom =
  | Comparison
  | { kind: 'present'; claim: ClaimName; negated: boolean }
  | { kind: 'order'; claim: ClaimName; operator: OrderOperator; value: number }
  | { kind: 'some'; claim: ClaimName; item: readonly Atom[] }
  | { kind: 'every'; claim: ClaimName }
  | { kind: 'converted'; claim: ClaimName; to: 'text' | 'number'; test: Comparison }
  | { kind: 'opaque'; source: string; negated: boolean }

/** All atoms hold, by their keys. */
export type Path = ReadonlyMap<string, Atom>

/** One of the paths holds. No path: never true. */
export type Paths = readonly Path[]

export const always: Paths = [new Map()]
export const never: Paths = []

/** Returns a path of one atom. */
export function only(atom: Atom): Paths {
  return [new Map([[keyOf(atom), atom]])]
}

/** Equal atoms have equal keys. */
export function keyOf(atom: Atom): string {
  return JSON.stringify(atom)
}

/** Creates an atom of values in a fixed order, so that the order of writing them does not matter. */
export function among(claim: ClaimName, values: readonly Scalar[], negated: boolean): Comparison & { kind: 'among' } {
  const distinct = [...new Set(values)]
  const sorted = distinct.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1))
  return { kind: 'among', claim, negated, values: sorted }
}

/** Reports whether a test of text holds. */
export function holdsText(value: string, operator: TextOperator, text: string): boolean {
  if (operator === 'contains') return value.includes(text)
  return operator === 'startsWith' ? value.startsWith(text) : value.endsWith(text)
}
