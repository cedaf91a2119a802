// Random conditions in every form that conditions have, over claims and constants that a test chooses.
import fc from 'fast-check'

export type Vocabulary = {
  /** Expressions that are a text in most tokens, such as `claims.ref`. */
  texts: readonly string[]
  numbers: readonly string[]
  /** Expressions that are a list in most tokens. */
  lists: readonly string[]
  flags: readonly string[]
  /** Constants. */
  words: readonly string[]
  digits: readonly number[]
  /** Whether many texts are compared that are joined from others. */
  sums?: boolean
}

const operators = ['startsWith', 'endsWith', 'contains']
const orders = ['<', '<=', '>', '>=', '==', '!=']

/** Returns random conditions. Some do not compile, such as those with one macro within another. */
export function conditionsOf(vocabulary: Vocabulary, depth = 3): fc.Arbitrary<string> {
  return conditions({ ...vocabulary, isInside: false }, depth)
}

type Grammar = Vocabulary & { isInside: boolean }

function conditions(grammar: Grammar, depth: number): fc.Arbitrary<string> {
  const { flags, isInside } = grammar
  const [text, list, digit] = [texts(grammar, 2), lists(grammar, 1), fc.constantFrom(...grammar.digits).map(String)]
  const number = fc.oneof(
    fc.constantFrom(...grammar.numbers),
    text.map((each) => `size(${each})`),
    text.map((each) => `int(${each})`),
  )
  const tests: fc.Arbitrary<string>[] = [
    fc.tuple(text, fc.constantFrom('==', '=='), text).map((parts) => parts.join(' ')),
    fc.tuple(text, fc.constantFrom(...orders), text).map((parts) => parts.join(' ')),
    fc.tuple(text, fc.constantFrom(...operators), text).map(([one, name, other]) => `${one}.${name}(${other})`),
    fc.tuple(number, fc.constantFrom(...orders), digit).map((parts) => parts.join(' ')),
    fc.tuple(digit, fc.constantFrom(...orders), number).map((parts) => parts.join(' ')),
    fc.tuple(text, list).map(([one, all]) => `${one} in ${all}`),
    fc.tuple(text, text, text).map(([one, other, third]) => `[${one}, ${other}] == [${third}, ${one}]`),
    fc.tuple(text, text, text).map(([one, key, other]) => `{${key}: ${other}, "z": "y"}[${one}] == ${other}`),
    fc.constantFrom(...flags),
    fc.constantFrom(...grammar.texts, ...grammar.numbers).map((each) => (each.includes('.') ? `has(${each})` : 'true')),
  ]
  if (grammar.sums === true) tests.push(...sumTests(grammar))
  if (!isInside) {
    const inside = conditions(within(grammar), 1)
    const macro = fc.constantFrom('all', 'exists', 'exists_one')
    tests.push(
      fc.tuple(list, macro, inside).map(([all, name, body]) => `${all}.${name}(x, ${body})`),
      fc.tuple(list, macro, inside).map(([all, name, body]) => `${all}.${name}(x, ${body})`),
      fc
        .tuple(list, inside, fc.constantFrom(...orders), digit)
        .map(([all, body, order, count]) => `${all}.filter(x, ${body}).size() ${order} ${count}`),
    )
  }
  const test = fc.oneof(...tests)
  if (depth <= 0) return test
  const deeper = conditions(grammar, depth - 1)
  return fc.oneof(
    { arbitrary: test, weight: 3 },
    deeper.map((each) => `!(${each})`),
    fc.tuple(deeper, deeper).map(([one, other]) => `(${one} && ${other})`),
    fc.tuple(deeper, deeper).map(([one, other]) => `(${one} || ${other})`),
    fc.tuple(deeper, deeper, deeper).map(([one, yes, no]) => `(${one} ? ${yes} : ${no})`),
  )
}

/** A text that is joined from several, compared with constants. */
function sumTests({ texts: all, words }: Grammar): fc.Arbitrary<string>[] {
  const [text, word] = [fc.constantFrom(...all), fc.constantFrom(...words).map((each) => JSON.stringify(each))]
  const delimiter = fc.constantFrom('', '', ' + "/"', ' + "@"', ' + "-"')
  const sum = fc.tuple(text, delimiter, text).map(([one, between, other]) => `${one}${between} + ${other}`)
  return [
    fc.tuple(sum, word).map((parts) => parts.join(' == ')),
    fc.tuple(word, sum).map((parts) => parts.join(' == ')),
    fc.tuple(sum, word, word).map(([one, ...others]) => `${one} in [${others.join(', ')}]`),
    fc.tuple(sum, word).map(([one, other]) => `[${one}] == [${other}]`),
  ]
}

/** Within a macro, its variable is a text. */
function within(grammar: Grammar): Grammar {
  return { ...grammar, texts: ['x', 'x', 'x', ...grammar.texts], isInside: true }
}

function texts(grammar: Grammar, depth: number): fc.Arbitrary<string> {
  const word = fc.constantFrom(...grammar.words).map((each) => JSON.stringify(each))
  const plain = fc.oneof({ arbitrary: fc.constantFrom(...grammar.texts), weight: 2 }, word)
  if (depth <= 0) return plain
  const deeper = texts(grammar, depth - 1)
  return fc.oneof(
    { arbitrary: plain, weight: 8 },
    fc.tuple(deeper, deeper).map(([one, other]) => `(${one} + ${other})`),
    fc.constantFrom(...grammar.texts, ...grammar.numbers, ...grammar.flags).map((each) => `string(${each})`),
    fc
      .tuple(fc.constantFrom(...grammar.flags), deeper, deeper)
      .map(([test, one, other]) => `(${test} ? ${one} : ${other})`),
    deeper.map((each) => `[${each}][0]`),
  )
}

function lists(grammar: Grammar, depth: number): fc.Arbitrary<string> {
  const text = texts(grammar, 1)
  const plain = fc.oneof(
    fc.array(text, { minLength: 1, maxLength: 3 }).map((items) => `[${items.join(', ')}]`),
    fc.constantFrom(...grammar.lists),
  )
  if (depth <= 0 || grammar.isInside) return plain
  const deeper = lists(grammar, depth - 1)
  return fc.oneof(
    { arbitrary: plain, weight: 4 },
    fc.tuple(deeper, deeper).map(([one, other]) => `(${one} + ${other})`),
    fc.tuple(deeper, conditions(within(grammar), 0)).map(([all, body]) => `${all}.filter(x, ${body})`),
    fc.tuple(deeper, texts(within(grammar), 1)).map(([all, body]) => `${all}.map(x, ${body})`),
  )
}
