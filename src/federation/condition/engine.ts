// The CEL engine behind conditions: its options, replacements for functions in which it is more lenient than CEL, and
// the source that it evaluates instead of the admin's. It does not know what a condition may use or cost.
import type { ASTNode, Environment, ParseResult } from '@marcbachmann/cel-js'
import { celLibrary } from './library.ts'
import { conditionVariables, int64Max } from './permitted.ts'

/** `reading` parses the admin's source, `evaluating` the source that is evaluated. */
type Engine = { reading: Environment; evaluating: Environment }
let engine: Engine | undefined

function startEngine(): Engine {
  const reading = new (celLibrary().Environment)({
    unlistedVariablesAreDyn: false,
    homogeneousAggregateLiterals: false,
    enableOptionalTypes: false,
    limits: { maxDepth: 64 },
  })
  for (const [name, type] of Object.entries(conditionVariables)) reading.registerVariable(name, type)
  // The engine copies the source line into the message of every error, even an absorbed one, which takes longer the
  // further down the line is. Only summaries and ranges are read here, so the nodes return an empty source.
  Object.defineProperty(Object.getPrototypeOf(reading.parse('true').ast), 'input', { get: () => '' })
  const evaluating = reading.clone({ limits: { maxDepth: 256 } })
  for (const [name, evaluate] of Object.entries(own))
    evaluating.registerFunction(
      `${name}(dyn): ${name === 'own_int' || name === 'own_size' ? 'int' : name === 'own_double' ? 'double' : 'dyn'}`,
      evaluate,
      { async: false },
    )
  return { reading, evaluating }
}

/**
 * Parses the admin's source.
 * @throws ParseError
 */
export function parseSource(source: string): ParseResult {
  engine ??= startEngine()
  return engine.reading.parse(source)
}

/**
 * Replacements for engine functions that deviate from CEL, by their names in the evaluated source. All are strict: they
 * raise an error instead of guessing.
 */
const own: Record<string, (given: unknown) => unknown> = {
  own_int: intOf,
  own_double: doubleOf,
  own_size: sizeOf,
  own_negate: (given) =>
    typeof given === 'number' ? -given : typeof given === 'bigint' ? int64(-given) : lacks('-', given),
  /** The smallest int64 divided by -1 exceeds int64. */
  own_quotient: (given) => (typeof given === 'bigint' ? int64(given) : given),
  own_index: indexOf,
  own_map: mapOf,
}

/** Returns the source that the engine evaluates for a checked part of the admin's source. */
export function prepare(node: ASTNode, source: string): ParseResult {
  engine ??= startEngine()
  const prepared = engine.evaluating.parse(textOf(node, source))
  const { valid, error } = prepared.check()
  if (!valid) throw error
  return prepared
}

function fail(code: string, message: string): never {
  throw new (celLibrary().EvaluationError)({ code, message })
}

function lacks(name: string, given: unknown): never {
  const type =
    given === null ? 'null' : Array.isArray(given) ? 'list' : given instanceof Map ? 'map' : celTypes[typeof given]
  return fail('no_matching_overload', `found no matching overload for '${name}(${type ?? 'dyn'})'`)
}
const celTypes: Partial<Record<string, string>> = { string: 'string', boolean: 'bool', bigint: 'int', number: 'double' }

function int64(value: bigint): bigint {
  return -int64Max - 1n <= value && value <= int64Max ? value : fail('numeric_overflow', 'The number exceeds 64 bits')
}

/** CEL's `int()`: decimal digits with an optional sign, or a double strictly within the range of int64, truncated. */
function intOf(given: unknown): bigint {
  if (typeof given === 'bigint') return given
  if (typeof given === 'number')
    return Math.abs(given) < 2 ** 63
      ? BigInt(Math.trunc(given))
      : fail('numeric_overflow', 'int() cannot convert a number that exceeds 64 bits')
  if (typeof given !== 'string') return lacks('int', given)
  // Two steps, because one expression for both would try every split of a long row of zeros.
  const digits = /^[+-]?\d+$/.test(given) ? given.replace(/^[+-]?0*(?=\d)/, '') : undefined
  if (digits === undefined) return fail('int_conversion_error', 'int() cannot convert the text to a whole number')
  if (digits.length > 19) return fail('numeric_overflow', 'int() cannot convert a number that exceeds 64 bits')
  return int64(given.startsWith('-') ? -BigInt(digits) : BigInt(digits))
}

/** CEL's `double()`: accepts what Go's ParseFloat reads, except hexadecimal numbers. */
function doubleOf(given: unknown): number {
  if (typeof given === 'number') return given
  if (typeof given === 'bigint') return Number(given)
  if (typeof given !== 'string') return lacks('double', given)
  if (/^nan$/i.test(given)) return Number.NaN
  if (/^[+-]?inf(?:inity)?$/i.test(given)) return given.startsWith('-') ? -Infinity : Infinity
  const isDecimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i.test(given)
  const value = isDecimal ? Number(given) : Number.NaN
  return Number.isFinite(value)
    ? value
    : fail('double_conversion_error', 'double() cannot convert the text to a number')
}

/** The engine counts code points by iterating over the string, which takes ten times longer. */
function sizeOf(given: unknown): bigint {
  if (Array.isArray(given)) return BigInt(given.length)
  if (given instanceof Map) return BigInt(given.size)
  if (typeof given !== 'string') return lacks('size', given)
  let size = given.length
  for (let at = 1; at < given.length; at++)
    if (given.charCodeAt(at) >>> 10 === 0x37 && given.charCodeAt(at - 1) >>> 10 === 0x36) {
      size--
      at++
    }
  return BigInt(size)
}

/** The engine would serialize a whole list to report that it is not a key. */
function indexOf(given: unknown): unknown {
  if (typeof given === 'number' && Number.isSafeInteger(given)) return BigInt(given)
  return typeof given === 'object' ? fail('invalid_index_type', 'An index must be a string or a number') : given
}

/** The engine turns map literals into objects, which makes all keys strings and loses some. */
function mapOf(given: unknown): Map<unknown, unknown> {
  const map = new Map<unknown, unknown>()
  for (const [key, value] of given as [unknown, unknown][]) {
    if (typeof key === 'object' || typeof key === 'number')
      return fail('invalid_map_key', 'A key must be a string, an integer or a Boolean')
    if (map.has(key)) return fail('duplicate_map_key', 'A map has the same key twice')
    map.set(key, value)
  }
  return map
}

const precedences: Partial<Record<string, number>> = {
  ...{ '?:': 1, '||': 2, '&&': 3, '==': 4, '!=': 4, '<': 5, '<=': 5, '>': 5, '>=': 5, in: 5 },
  ...{ '+': 6, '-': 6, '*': 7, '/': 7, '%': 7, '!_': 8, '-_': 8 },
}
const precedenceOf = ({ op }: ASTNode): number => (op === '/' ? 9 : (precedences[op] ?? 9))

/** Writes a tree as source, with the replacements instead of the engine's functions. Literals keep their text. */
function textOf(node: ASTNode, source: string): string {
  const inner = (each: ASTNode): string => textOf(each, source)
  const atLeast = (precedence: number, each: ASTNode): string =>
    precedenceOf(each) >= precedence ? inner(each) : `(${inner(each)})`
  const { op } = node
  switch (op) {
    case 'value':
      return source.slice(node.start, node.end)
    case 'id':
      return node.args
    case '.':
      return `${atLeast(9, node.args[0])}.${node.args[1]}`
    case '[]': {
      const [object, index] = node.args
      return `${atLeast(9, object)}[${index.op === 'value' ? inner(index) : `own_index(${inner(index)})`}]`
    }
    case 'list':
      return `[${node.args.map(inner).join(',')}]`
    case 'map':
      return `own_map([${node.args.map(([key, value]) => `[${inner(key)},${inner(value)}]`).join(',')}])`
    case '?:':
      return `${atLeast(2, node.args[0])}?${inner(node.args[1])}:${inner(node.args[2])}`
    case '!_':
      return `!${atLeast(8, node.args)}`
    case '-_':
      return node.args.op === 'value' ? `-${inner(node.args)}` : `own_negate(${inner(node.args)})`
    case 'call': {
      const [name, given] = node.args
      return `${Object.hasOwn(own, `own_${name}`) ? 'own_' : ''}${name}(${given.map(inner).join(',')})`
    }
    case 'rcall': {
      const [name, receiver, given] = node.args
      if (name === 'size') return `own_size(${inner(receiver)})`
      return `${atLeast(9, receiver)}.${name}(${given.map(inner).join(',')})`
    }
    default: {
      const [left, right] = node.args as [ASTNode, ASTNode]
      const precedence = precedences[op] ?? 9
      const text = `${atLeast(precedence, left)} ${op} ${atLeast(precedence + 1, right)}`
      return op === '/' ? `own_quotient(${text})` : text
    }
  }
}
