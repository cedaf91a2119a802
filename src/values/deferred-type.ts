// arktype's `type`. The library is loaded, and a definition parsed, at the first use of a type: loading it takes 120 ms and 20 MB, which a
// server that only exchanges and forwards, and most commands, never need. It does not know what the definitions say.
import type { type as arktype } from 'arktype'
import { deferLibrary } from './deferred-library.ts'

/** Methods that make a new type, so that calling one does not parse the type before it. */
const derivations = new Set([
  ...['and', 'array', 'as', 'atLeast', 'atMost', 'atMostLength', 'configure', 'describe', 'merge', 'moreThanLength'],
  ...['narrow', 'or', 'pipe'],
])
/** Functions of `type` that make one. */
const constructors = new Set(['enumerated', 'unit'])

type Method = (...args: unknown[]) => object
type RealType = Method & Record<PropertyKey, unknown>

/** The types that are deferred, with what they are made of: other types, definitions that name some, and functions. */
const deferred = new WeakMap<object, { parts: unknown; resolve: () => unknown }>()

/**
 * Stands for a type until something reads or calls it, and then behaves as the type itself. With `acceptsNothing`, the type returns an object
 * without members as it is, for which nothing need be loaded.
 */
function defer(make: () => object, parts: unknown, acceptsNothing = false): object {
  let made: RealType | undefined
  const resolve = (): RealType => {
    made ??= make() as RealType
    return made
  }
  const proxy: object = new Proxy(() => {}, {
    apply: (_target, _this, args: unknown[]) =>
      acceptsNothing && isEmptyObject(args[0]) ? args[0] : resolve()(...args),
    get: (_target, name) =>
      made === undefined && derivations.has(String(name))
        ? (...args: unknown[]) => defer(() => (resolve()[name] as Method)(...args), [proxy, args])
        : Reflect.get(resolve(), name),
    has: (_target, name) => Reflect.has(resolve(), name),
    getPrototypeOf: () => Reflect.getPrototypeOf(resolve()),
  })
  deferred.set(proxy, { parts, resolve })
  return proxy
}

/**
 * Parses what a type is made of, and at last the type itself, one after the other, and awaits `rest` in between: the first use of a large type
 * would hold the event loop for 165 ms. Returns at once if it has been done.
 */
export async function prepareType(shape: unknown, rest: () => Promise<unknown> | undefined): Promise<void> {
  if (!isCompound(shape)) return
  const found = deferred.get(shape)
  if (found === undefined) {
    // Any other function is a rule of a type.
    if (typeof shape === 'object')
      for (const part of Object.values(shape)) if (isCompound(part)) await prepareType(part, rest)
    return
  }
  deferred.delete(shape)
  await prepareType(found.parts, rest)
  found.resolve()
  await rest()
}

function isCompound(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

function isEmptyObject(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.getPrototypeOf(value) === Object.prototype &&
    Object.keys(value).length === 0
  )
}

/** Whether all members that a definition names are optional. A member with a default is not. */
function isOptionalThroughout(definition: unknown): boolean {
  if (typeof definition !== 'object' || definition === null || Array.isArray(definition)) return false
  return Object.keys(definition).every((name) => name === '+' || /[^\\]\?$/.test(name))
}

const configuration = deferLibrary('arktype/config', () => require('arktype/config') as typeof import('arktype/config'))
const library = deferLibrary('arktype', () => require('arktype') as typeof import('arktype'))

let loadedType: typeof arktype | undefined

/** Shapes are interpreted, not compiled, which is configured before arktype loads. */
function loaded(): typeof arktype {
  if (loadedType === undefined) {
    configuration().configure({ jitless: true })
    loadedType = library().type
  }
  return loadedType
}

/** What the library loads, in that order. The paths are its own, so a version without one of them fails the tests. */
const parts = [
  deferLibrary('arktype/internal/match.js', () => require('arktype/internal/match.js') as unknown),
  deferLibrary('arktype/internal/scope.js', () => require('arktype/internal/scope.js') as unknown),
  deferLibrary(
    'arktype/internal/keywords/builtins.js',
    () => require('arktype/internal/keywords/builtins.js') as unknown,
  ),
  deferLibrary('arktype/internal/keywords/Array.js', () => require('arktype/internal/keywords/Array.js') as unknown),
  deferLibrary(
    'arktype/internal/keywords/FormData.js',
    () => require('arktype/internal/keywords/FormData.js') as unknown,
  ),
  deferLibrary(
    'arktype/internal/keywords/constructors.js',
    () => require('arktype/internal/keywords/constructors.js') as unknown,
  ),
  deferLibrary('arktype/internal/keywords/number.js', () => require('arktype/internal/keywords/number.js') as unknown),
  deferLibrary('arktype/internal/keywords/string.js', () => require('arktype/internal/keywords/string.js') as unknown),
  deferLibrary('arktype/internal/keywords/ts.js', () => require('arktype/internal/keywords/ts.js') as unknown),
]

/**
 * Loads the library, which would otherwise happen at the first use of a type and hold the event loop for 120 ms. Awaits `rest` between its
 * parts. The longest two take a quarter of that each: the schemas, and the keywords of texts, both of which are one module that runs.
 */
export async function loadTypes(rest: () => Promise<unknown>): Promise<void> {
  if (loadedType !== undefined) return
  configuration().configure({ jitless: true })
  await rest()
  for (const load of parts) {
    load()
    await rest()
  }
  loaded()
}

/** Whether a type returned what is wrong with a value. Nothing is, as long as the library is not loaded. */
export function isErrors(result: unknown): result is arktype.errors {
  return loadedType !== undefined && result instanceof loadedType.errors
}

const callable = () => loaded() as unknown as Method & Record<PropertyKey, Method>

/** Use it as arktype's `type`; what it returns has the same interface. A wrong definition throws at its first use. */
export const type: typeof arktype = new Proxy((() => {}) as unknown as typeof arktype, {
  apply: (_target, _this, args: unknown[]) =>
    defer(() => callable()(...args), args, args.length === 1 && isOptionalThroughout(args[0])),
  get: (_target, name) =>
    constructors.has(String(name))
      ? (...args: unknown[]) => defer(() => (callable()[name] as Method)(...args), args)
      : Reflect.get(loaded(), name),
})

export declare namespace type {
  type errors = arktype.errors
  type Any = arktype.Any
}
