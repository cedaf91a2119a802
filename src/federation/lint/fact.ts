// What a path says about each claim, all its atoms together.
import { type Atom, type ClaimName, holdsText, type Scalar } from './atom.ts'

export type Fact = {
  /** The only values that the claim can have. */
  values?: readonly Scalar[]
  /** The values are only known as pieces of texts that the claim is joined to. */
  isPiece: boolean
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

/** A fact while it is gathered: copying it for each atom would take quadratic time. */
type Draft = { -readonly [Name in keyof Fact]: Fact[Name] extends readonly (infer Item)[] ? Item[] : Fact[Name] }

const empty = (): Draft => ({
  isPiece: true,
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
})

/** Returns the facts of a path, or undefined if no token satisfies it. */
export function factsOf(path: Iterable<Atom>): Facts | undefined {
  const drafts = new Map<ClaimName, Draft>()
  for (const atom of path) {
    if (atom.kind === 'opaque') continue
    const draft = drafts.get(atom.claim) ?? empty()
    drafts.set(atom.claim, draft)
    if (!isAdded(draft, atom)) return undefined
  }
  const facts = new Map<ClaimName, Fact>()
  for (const [claim, draft] of drafts) {
    const settled = settle(claim, draft)
    if (settled === undefined) return undefined
    facts.set(claim, settled)
  }
  return facts
}

/** Adds an atom to a draft. Returns false if both contradict each other. */
function isAdded(draft: Draft, atom: Exclude<Atom, { kind: 'opaque' }>): boolean {
  if (atom.kind === 'present' && atom.negated) draft.isAbsent = true
  else draft.isPresent = true
  switch (atom.kind) {
    case 'among':
      if (atom.negated) draft.excluded.push(...atom.values)
      else {
        draft.values = (draft.values ?? atom.values).filter((value) => atom.values.includes(value))
        draft.isPiece &&= atom.piece === true
      }
      return true
    case 'text':
      return isTextAdded(draft, atom)
    case 'present':
    case 'converted':
      return true
    case 'order':
      draft.orders.push(atom)
      return true
    case 'some':
      draft.items.push(atom.item)
      draft.isList = true
      return true
    case 'every':
      draft.isList = true
      return true
  }
}

function isTextAdded(draft: Draft, atom: Atom & { kind: 'text' }): boolean {
  const { text, operator, negated } = atom
  if (negated) draft.texts.push(atom)
  else if (operator === 'contains') draft.contained.push(text)
  else {
    const known = operator === 'startsWith' ? draft.prefix : draft.suffix
    const [short, long] = known.length < text.length ? [known, text] : [text, known]
    if (!holdsText(long, operator, short)) return false
    if (operator === 'startsWith') draft.prefix = long
    else draft.suffix = long
  }
  return true
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
