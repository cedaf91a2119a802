// Asks inference servers whether they can serve, each on its own schedule, so that requests avoid one that cannot and find it again
// without the request of a user. circuit.ts decides what follows from the answers.
import { describeError, Fault } from '../../fault.ts'
import type { Fetch } from '../../runtime/outbound.ts'
import type { Credentials } from '../upstream/credentials.ts'
import type { Reachability } from '../upstream/reachability.ts'
import type { Upstream, UpstreamRegistry } from '../upstream/targets.ts'
import type { Circuits } from './circuit.ts'

/** A health path computes nothing. */
const probeMillisecondsMax = 2_000

/** `at` in milliseconds since 1970 UTC. `problem`: why it failed, for admins. */
export type ProbeResult = { at: number; milliseconds: number; problem: string | undefined }

export type Probes = {
  /** The last result; undefined until the first, and of an upstream without a probe. */
  of: (upstream: Upstream) => ProbeResult | undefined
  /** Begins the probes that are due. Resolves when they have ended; never rejects. */
  run: () => Promise<void>
}

export type ProbeContext = {
  registry: UpstreamRegistry
  circuits: Pick<Circuits<Upstream>, 'noteProbe'>
  reachability: Reachability
  credentials: Credentials
  fetch: Fetch
  now: () => number
  monotonic: () => number
}

/** `dueAt` by the monotonic clock; infinite while a probe runs. */
type Schedule = { dueAt: number; last: ProbeResult | undefined }

/** Keyed by the immutable value of an upstream: an edit makes a new value, which is probed at once. */
export function createProbes(context: ProbeContext): Probes {
  const schedules = new WeakMap<Upstream, Schedule>()
  const run = async (upstream: Upstream) => {
    const schedule = schedules.get(upstream) ?? { dueAt: 0, last: undefined }
    schedules.set(upstream, schedule)
    const startedAt = context.monotonic()
    if (startedAt < schedule.dueAt) return
    schedule.dueAt = Number.POSITIVE_INFINITY
    const problem = await findProblem(upstream, context)
    const endedAt = context.monotonic()
    schedule.last = { at: context.now(), milliseconds: endedAt - startedAt, problem }
    schedule.dueAt = startedAt + upstream.probeSeconds * 1_000
    note(upstream, problem === undefined, endedAt, context)
  }
  return {
    of: (upstream) => schedules.get(upstream)?.last,
    run: async () => {
      const probed = context.registry.upstreamsInOrder.filter(({ probePath }) => probePath !== null)
      await Promise.all(probed.map(run))
    },
  }
}

function note(upstream: Upstream, isUp: boolean, now: number, { circuits, reachability }: ProbeContext): void {
  // Until the next result, even if that one is late.
  const validMilliseconds = 2 * upstream.probeSeconds * 1_000 + probeMillisecondsMax
  const hasRecovered = circuits.noteProbe(upstream, isUp, validMilliseconds, now)
  if (hasRecovered) reachability.note(upstream, true)
}

/** With the upstream's own credential, which a path may require. */
async function findProblem(upstream: Upstream, { credentials, fetch }: ProbeContext): Promise<string | undefined> {
  try {
    const credential = await credentials.of(upstream)
    const response = await fetch(probeUrl(upstream), {
      headers: {
        'accept-encoding': 'identity',
        ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
      },
      redirect: 'manual',
      decompress: false,
      signal: AbortSignal.timeout(probeMillisecondsMax),
      ...(upstream.caPem === null ? {} : { ca: upstream.caPem }),
    })
    await response.body?.cancel()
    return response.status >= 200 && response.status < 300 ? undefined : `it responds with ${response.status}`
  } catch (error) {
    if (error instanceof Fault) return describeError(error)
    if ((error as Error).name === 'TimeoutError') return `it did not respond within ${probeMillisecondsMax / 1_000} s`
    const { code } = error as { code?: unknown }
    return typeof code === 'string' ? `it cannot be reached (${code})` : 'it cannot be reached'
  }
}

/** Inference servers have their health beside their `/v1`. */
function probeUrl({ baseUrl, probePath }: Upstream): string {
  return baseUrl.replace(/\/v\d+$/, '') + (probePath ?? '')
}
