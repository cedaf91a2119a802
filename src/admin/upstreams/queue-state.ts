// What runs, waits and rests at this moment in this process, for `upstreams list` and `top`.
import { Fault } from '../../fault.ts'
import type { Upstream } from '../../inference/upstream/targets.ts'
import { type } from '../../values/shape.ts'
import { probeShape, restShape } from '../kinds/upstream-shapes.ts'
import type { Needs } from '../operation/context.ts'
import { timeOf } from '../operation/references.ts'

export const queueResponse = type({
  at: 'string',
  upstreams: type({
    name: 'string',
    running: 'number.integer',
    max_running: 'number.integer | null',
    waiting: 'number.integer',
    rests: restShape.array(),
    probe: probeShape.or('null'),
    failing: type({ since: 'string', failures: 'number.integer', problem: 'string' }).or('null'),
    tokens_per_second: 'number',
  }).array(),
  keys: type({
    organization: 'string',
    name: 'string',
    running: 'number.integer',
    waiting: 'number.integer',
    tokens_per_second: 'number',
  }).array(),
}).configure({ title: 'Queue' })

type QueueContext = Needs<'dispatch' | 'circuits' | 'probes' | 'now' | 'monotonic'>

/** Null where nothing is served. */
export function queueStateOf(context: QueueContext, upstream: Upstream) {
  const { running = null, waiting = null } = context.dispatch?.at(upstream.id) ?? {}
  return { running, waiting, rests: restsOf(context, upstream), probe: probeOf(context, upstream) }
}

/** Null until the first one has ended. */
function probeOf({ probes }: QueueContext, upstream: Upstream): typeof probeShape.infer | null {
  const last = probes?.of(upstream)
  if (last === undefined) return null
  const { at, milliseconds, problem = null } = last
  return { ok: problem === null, at: timeOf(at), milliseconds: Math.round(milliseconds), problem }
}

/** Null unless the last request to it failed. */
function failingOf({ reachability }: Needs<'reachability'>, upstream: Upstream) {
  const failing = reachability?.failing(upstream)
  return failing === undefined ? null : { ...failing, since: timeOf(failing.since) }
}

function restsOf({ circuits, now, monotonic }: QueueContext, upstream: Upstream): (typeof restShape.infer)[] {
  const at = monotonic()
  const toTime = (milliseconds: number) => timeOf(now() + milliseconds - at)
  return (circuits?.list(upstream, at) ?? []).map(({ model, since, until }) => ({
    ...{ model: model ?? null, since: toTime(since), until: toTime(until) },
  }))
}

/** The keys that have the most requests come first; more would fill no screen. */
const keysMax = 50

/**
 * The upstreams in the order in which they are tried, and the keys whose requests run or wait at this node.
 * @throws Fault `conflict` in a process that does not serve
 */
export async function showQueue(
  context: QueueContext & Needs<'registry' | 'reachability'>,
): Promise<typeof queueResponse.infer> {
  const { dispatch, registry, now } = context
  if (dispatch === undefined) throw new Fault('conflict', 'No server runs on this database; start it: latchkey serve')
  const upstreams = registry.upstreamsInOrder.map((upstream) => {
    const { running, waiting, rests, probe } = queueStateOf(context, upstream)
    const rate = tenths(dispatch.tokensPerSecond(upstream.id))
    return {
      ...{ name: upstream.name, running: running ?? 0, max_running: upstream.maxRunning, waiting: waiting ?? 0 },
      ...{ rests, probe, failing: failingOf(context, upstream), tokens_per_second: rate },
    }
  })
  const busiest = dispatch
    .keys()
    .toSorted((one, other) => other.running + other.waiting - one.running - one.waiting)
    .slice(0, keysMax)
  const keys = busiest.flatMap(({ id, running, waiting }) => {
    const key = registry.keys.get(id)
    if (key === undefined) return []
    const organization = registry.organizations.get(key.organizationId)?.name ?? ''
    const rate = tenths(dispatch.tokensPerSecond(id))
    return [{ organization, name: key.name, running, waiting, tokens_per_second: rate }]
  })
  return { at: timeOf(now()), upstreams, keys }
}

function tenths(value: number): number {
  return Math.round(10 * value) / 10
}
