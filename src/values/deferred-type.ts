// arktype's `type`. The library is loaded, and a definition parsed, at the first use of a type: loading it takes 120 ms and 40 MB, which a
// server that only exchanges and forwards, and most commands, never need. It does not know what the definitions say.
import { createRequire } from 'node:module'
import type { type as arktype } from 'arktype'

/** Methods that make a new type, so that calling one does not parse the type before it. */
const derivations = new Set([
  ...['array', 'as', 'atLeast', 'atMost', 'atMostLength', 'configure', 'describe', 'merge', 'moreThanLength'],
  ...['narrow', 'or', 'pipe'],
])
/** Functions of `type` that make one. */
const constructors = new Set(['enumerated', 'unit'])

type Method = (...args: unknown[]) => object
type Made = Method & Record<PropertyKey, unknown>

/** Stands for a type until something reads or calls it, and then behaves as the type itself. */
function defer(make: () => object): object {
  let made: Made | undefined
  const resolve = (): Made => {
    made ??= make() as Made
    return made
  }
  return new Proxy(() => {}, {
    apply: (_target, _this, args: unknown[]) => resolve()(...args),
    get: (_target, name) =>
      made === undefined && derivations.has(String(name))
        ? (...args: unknown[]) => defer(() => (resolve()[name] as Method)(...args))
        : Reflect.get(resolve(), name),
    has: (_target, name) => Reflect.has(resolve(), name),
    getPrototypeOf: () => Reflect.getPrototypeOf(resolve()),
  })
}

let library: typeof arktype | undefined

/**
 * Loads arktype synchronously, so that a type can be used anywhere. A bundler follows only a literal `require`, and Deno defines none.
 * Types are interpreted, not compiled, which has to be configured first.
 */
function loaded(): typeof arktype {
  if (library !== undefined) return library
  const isDefined = typeof require === 'function'
  const config = isDefined ? require('arktype/config') : createRequire(import.meta.url)('arktype/config')
  config.configure({ jitless: true })
  const { type: made } = isDefined ? require('arktype') : createRequire(import.meta.url)('arktype')
  library = made as typeof arktype
  return library
}

const callable = () => loaded() as unknown as Method & Record<PropertyKey, Method>

/** Use it as arktype's `type`; what it returns has the same interface. A wrong definition throws at its first use. */
export const type: typeof arktype = new Proxy((() => {}) as unknown as typeof arktype, {
  apply: (_target, _this, args: unknown[]) => defer(() => callable()(...args)),
  get: (_target, name) =>
    constructors.has(String(name))
      ? (...args: unknown[]) => defer(() => (callable()[name] as Method)(...args))
      : Reflect.get(loaded(), name),
})

export declare namespace type {
  type errors = arktype.errors
  type Any = arktype.Any
}
