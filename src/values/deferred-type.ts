// arktype's `type`, whose definitions are parsed at their first use. Parsing all of them takes a third of the time that
// the server needs to start, and most commands use one or two. It does not know what the definitions say.
import './shape-config.ts'
import { type as arktype } from 'arktype'

/** Methods that make a new type, so that calling one does not parse the type before it. */
const derivations = new Set(['array', 'atLeast', 'atMost', 'configure', 'narrow', 'or', 'pipe'])

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

/** Use it as arktype's `type`; what it returns has the same interface. A wrong definition throws at its first use. */
export const type: typeof arktype = new Proxy(arktype, {
  apply: (_target, _this, args: unknown[]) => defer(() => Reflect.apply(arktype as unknown as Method, undefined, args)),
})

export declare namespace type {
  type errors = arktype.errors
  type Any = arktype.Any
}
