// Which upstreams a body prefers, by the names that OpenRouter gives to such preferences. Names that are not of an upstream are for what is
// behind it, and pass on. Pure.
import { Fault } from '../../fault.ts'
import type { Fields } from '../../presets/schema/fields.ts'
import type { AttemptGroup, Upstream, UpstreamRegistry } from './targets.ts'

/** Names of upstreams. `order` are tried first. */
export type Preferences = {
  readonly only: ReadonlySet<string> | undefined
  readonly order: ReadonlySet<string>
  readonly ignore: ReadonlySet<string>
  /** Whether upstreams that `order` does not name may serve the request. */
  readonly allowsOthers: boolean
  /** What is left of the preferences for the upstream; undefined if nothing is. */
  readonly rest: Fields | undefined
}

const lists = ['only', 'order', 'ignore'] as const

/** Undefined if no list names an upstream: then the preferences pass on as they are. */
export function readPreferences(provider: unknown, registry: UpstreamRegistry): Preferences | undefined {
  if (typeof provider !== 'object' || provider === null || Array.isArray(provider)) return undefined
  const { only, order, ignore, allow_fallbacks: allowsFallbacks, ...others } = provider as Fields
  if (![only, order, ignore].some(Array.isArray)) return undefined
  const names = new Set(registry.upstreamsInOrder.map(({ name }) => name))
  const given = { only, order, ignore }
  const [own, foreign] = [{} as Record<(typeof lists)[number], Set<string>>, others]
  for (const list of lists) {
    const value = given[list]
    const entries: unknown[] = Array.isArray(value) ? value : []
    own[list] = new Set(entries.filter((entry): entry is string => typeof entry === 'string' && names.has(entry)))
    const passedOn = own[list].size === 0 ? value : entries.filter((entry) => !own[list].has(entry as string))
    if (passedOn !== undefined && !(Array.isArray(passedOn) && own[list].size > 0 && passedOn.length === 0))
      foreign[list] = passedOn
  }
  if (lists.every((list) => own[list].size === 0)) return undefined
  const isForOthers = Object.keys(foreign).length > 0
  if (isForOthers && allowsFallbacks !== undefined) foreign.allow_fallbacks = allowsFallbacks
  return {
    only: own.only.size === 0 ? undefined : own.only,
    order: own.order,
    ignore: own.ignore,
    allowsOthers: own.order.size === 0 || allowsFallbacks !== false,
    rest: isForOthers ? foreign : undefined,
  }
}

/** @throws Fault `not_found` if no upstream is left */
export function preferUpstreams(groups: readonly AttemptGroup[], preferences: Preferences): AttemptGroup[] {
  const { only, order, ignore, allowsOthers } = preferences
  const isAllowed = ({ name }: Upstream) =>
    (only === undefined || only.has(name)) && !ignore.has(name) && (allowsOthers || order.has(name))
  const models = [...new Set(groups.map(({ model }) => model))]
  const preferred = models.flatMap((model) => {
    const ofModel = groups.filter((group) => group.model === model)
    const allowed = ofModel.map(({ upstreams }) => upstreams.filter(isAllowed))
    const byName = new Map(allowed.flat().map((upstream) => [upstream.name, upstream]))
    const first = [...order].flatMap((name) => byName.get(name) ?? []).map((upstream) => [upstream])
    const others = allowed.map((upstreams) => upstreams.filter(({ name }) => !order.has(name)))
    return [...first, ...others].flatMap((upstreams) => (upstreams.length > 0 ? [{ model, upstreams }] : []))
  })
  if (preferred.length > 0) return preferred
  throw new Fault(
    'not_found',
    'No inference server that provider allows serves the model; change only, order or ignore',
    { reason: 'provider_unserved' },
  )
}
