// Conjunction and disjunction of paths, bounded: what exceeds the bound becomes one path that admits at least as much.
import { type Atom, always, among, type ClaimName, keyOf, type Path, type Paths, type Scalar } from './atom.ts'
import { factsOf } from './fact.ts'

/** Of all paths together. Bounds the time of a lint, since every path can need a witness. */
export const pathsMax = 64

/** Stands for what was cut off at the bound. */
export const excess: Atom = { kind: 'opaque', source: 'more alternatives than the linter follows', negated: false }

/** Returns the paths of alternatives. Values of one claim become one path. */
export function anyOf(operands: readonly Paths[]): Paths {
  const paths = operands.flat()
  if (paths.some((path) => path.size === 0)) return always
  const distinct = simplify(paths)
  return distinct.length <= pathsMax ? distinct : [joined(distinct)]
}

/**
 * Returns the paths of a conjunction. Operands with few paths are multiplied first, so that the order in the source
 * does not matter; an operand that would exceed the bound contributes what its paths have in common.
 */
export function allOf(operands: readonly Paths[]): Paths {
  if (operands.some((each) => each.length === 0)) return []
  const sorted = operands.toSorted(
    (one, other) => one.length - other.length || (pathsKeyOf(one) < pathsKeyOf(other) ? -1 : 1),
  )
  let product: readonly Path[] = always
  const common = new Map<string, Atom>()
  for (const operand of sorted) {
    const single = operand.length === 1 ? operand[0] : undefined
    if (single === undefined && product.length * operand.length <= pathsMax)
      product = simplify(product.flatMap((path) => operand.map((other) => new Map([...path, ...other]))))
    else for (const [key, atom] of single ?? joined(operand)) common.set(key, atom)
  }
  return common.size === 0 ? product : simplify(product.map((path) => new Map([...path, ...common])))
}

function pathsKeyOf(paths: Paths): string {
  return paths.map(pathKeyOf).toSorted().join('\n')
}

/** Equal paths have equal keys, in whatever order their atoms were found. */
export function pathKeyOf(path: Path): string {
  return [...path.keys()].toSorted().join('\t')
}

/** Drops paths that no token satisfies, and those that are covered by a path with fewer atoms. */
function simplify(paths: readonly Path[]): Path[] {
  const possible = mergeValues(paths.filter((path) => factsOf(path.values()) !== undefined))
  const bySize = possible.toSorted((one, other) => one.size - other.size)
  const kept: Path[] = []
  for (const path of bySize) if (!kept.some((other) => isWithin(path, other))) kept.push(path)
  return kept
}

function isWithin(path: Path, other: Path): boolean {
  for (const key of other.keys()) if (!path.has(key)) return false
  return true
}

/** Drops duplicates and joins paths that consist of values of one claim. */
function mergeValues(paths: readonly Path[]): Path[] {
  const values = new Map<ClaimName, Scalar[]>()
  const distinct = new Map<string, Path>()
  for (const path of paths) {
    const [atom] = path.values()
    if (path.size === 1 && isValues(atom)) values.set(atom.claim, [...(values.get(atom.claim) ?? []), ...atom.values])
    else distinct.set(pathKeyOf(path), path)
  }
  const merged = [...values].map(([claim, each]) => {
    const atom = among(claim, each, false)
    return new Map([[keyOf(atom), atom]])
  })
  return [...merged, ...distinct.values()]
}

/** Returns what all paths have in common: equal atoms, and for a claim that each limits to values, all these values. */
function joined(paths: Paths): Path {
  const [first = new Map<string, Atom>(), ...others] = paths
  const result = new Map<string, Atom>()
  for (const [key, atom] of first) {
    if (others.every((path) => path.has(key))) result.set(key, atom)
    else if (isValues(atom)) {
      const lists = paths.map((path) => valuesIn(path, atom.claim))
      if (lists.some((list) => list === undefined)) continue
      const union = among(atom.claim, lists.flat() as Scalar[], false)
      result.set(keyOf(union), union)
    }
  }
  return result.set(keyOf(excess), excess)
}

function valuesIn(path: Path, claim: ClaimName): readonly Scalar[] | undefined {
  for (const atom of path.values()) if (isValues(atom) && atom.claim === claim) return atom.values
  return undefined
}

function isValues(atom: Atom | undefined): atom is Atom & { kind: 'among' } {
  return atom?.kind === 'among' && !atom.negated && atom.piece !== true
}
