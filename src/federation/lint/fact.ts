// What a path says about each claim, all its atoms together.
import { type Atom, type ClaimName, holdsText, type Scalar } from './atom.ts'

export type Fact = {
  /** The only values that the claim can have. */
  values?: readonly Scalar[]
  excluded: readonly Scalar[]
  /** The longest required prefix and suffix; empty if any. */
  prefix: string
  suffix: string
  contained: readonly string[]
  /** Tests of text that must not hold. */
  texts: readonly (Atom & { kind: 'text' })[]
  orders: readonly (Atom & { kind: 'order' })[]
  items: readonly (readonly Atom[])[]
  isList: boolean
  isPresent: boolean
  isAbsent: boolean
}

export type Facts = ReadonlyMap<ClaimName, Fact>

const nothing: Fact = {
  excluded: [],
  prefix: '',
  suffix: '',
  contained: [],
  texts: [],
  orders: [],
  items: [],
  isList: false,
  isPresent: false,
  isAbsent: false,
}

/** Returns the facts of a path, or undefined if no token satisfies it. */
export function factsOf(path: Iterable<Atom>): Facts | undefined {
  const facts = new Map<ClaimName, Fact>()
  for (const atom of path) {
    if (atom.kind === 'opaque') continue
    const added = add(facts.get(atom.claim) ?? nothing, atom)
    if (added === undefined) return undefined
    facts.set(atom.claim, added)
  }
  for (const [claim, fact] of facts) {
    const settled = settle(claim, fact)
    if (settled === undefined) return undefined
    facts.set(claim, settled)
  }
  return facts
}

function add(fact: Fact, atom: Exclude<Atom, { kind: 'opaque' }>): Fact | undefined {
  switch (atom.kind) {
    case 'among': {
      if (atom.negated) return { ...fact, excluded: [...fact.excluded, ...atom.values], isPresent: true }
      const { values = atom.values } = fact
      return { ...fact, values: values.filter((value) => atom.values.includes(value)), isPresent: true }
    }
    case 'text':
      return addText(fact, atom)
    case 'present':
      return atom.negated ? { ...fact, isAbsent: true } : { ...fact, isPresent: true }
    case 'order':
      return { ...fact, orders: [...fact.orders, atom], isPresent: true }
    case 'some':
      return { ...fact, items: [...fact.items, atom.item], isList: true, isPresent: true }
    case 'every':
      return { ...fact, isList: true, isPresent: true }
  }
}

function addText(fact: Fact, atom: Atom & { kind: 'text' }): Fact | undefined {
  const { text, operator, negated } = atom
  const present = { ...fact, isPresent: true }
  if (negated) return { ...present, texts: [...fact.texts, atom] }
  if (operator === 'contains') return { ...present, contained: [...fact.contained, text] }
  const known = operator === 'startsWith' ? fact.prefix : fact.suffix
  const [short, long] = known.length < text.length ? [known, text] : [text, known]
  if (!holdsText(long, operator, short)) return undefined
  return operator === 'startsWith' ? { ...present, prefix: long } : { ...present, suffix: long }
}

function settle(claim: ClaimName, fact: Fact): Fact | undefined {
  // A token can have one audience as a text.
  if (fact.isList && claim !== 'aud' && (fact.values !== undefined || asksText(fact) || fact.orders.length > 0))
    return undefined
  if (fact.isAbsent) return fact.isPresent ? undefined : fact
  if (fact.values === undefined) return fact
  const values = fact.values.filter((value) => admits({ ...fact, isList: false }, value))
  return values.length === 0 ? undefined : { ...fact, values }
}

/** Reports whether the claim must be a text. */
export function asksText({ prefix, suffix, contained, texts }: Fact): boolean {
  return prefix + suffix + contained.join('') !== '' || texts.length > 0
}

/** Reports whether a value satisfies a fact, except for what it says about items of lists. */
export function admits(fact: Fact, value: unknown): boolean {
  if (fact.isAbsent || value === undefined) return fact.isAbsent === (value === undefined)
  if (fact.values !== undefined && !fact.values.includes(value as Scalar)) return false
  if (fact.excluded.includes(value as Scalar)) return false
  const isText = typeof value === 'string'
  if (asksText(fact) && !isText) return false
  if (isText && !holdsAll(fact, value)) return false
  if (fact.orders.length > 0 && !fact.orders.every((order) => isWithin(order, value))) return false
  return !fact.isList || Array.isArray(value)
}

function holdsAll(fact: Fact, value: string): boolean {
  return (
    value.startsWith(fact.prefix) &&
    value.endsWith(fact.suffix) &&
    fact.contained.every((text) => value.includes(text)) &&
    fact.texts.every(({ operator, text }) => !holdsText(value, operator, text))
  )
}

function isWithin({ operator, value: limit }: Atom & { kind: 'order' }, value: unknown): boolean {
  if (typeof value !== 'number') return false
  if (operator === '<') return value < limit
  if (operator === '<=') return value <= limit
  return operator === '>' ? value > limit : value >= limit
}
