// What a scrape says of the upstreams at this moment: what runs, waits and rests there, and their probes.
import type { Circuits } from '../inference/queue/circuit.ts'
import type { Dispatch } from '../inference/queue/dispatch.ts'
import type { Probes } from '../inference/queue/probe.ts'
import type { Upstream, UpstreamRegistry } from '../inference/upstream/targets.ts'
import { labelValuesMax } from '../limits.ts'
import type { FamilyName } from '../observe/metric-families.ts'
import type { Sample } from '../observe/series.ts'

export type QueueSamplesContext = {
  registry: UpstreamRegistry
  dispatch: Pick<Dispatch, 'at' | 'ofKey'>
  circuits: Pick<Circuits<Upstream>, 'rests'>
  probes: Pick<Probes, 'of'>
  monotonic: () => number
}

export function queueSamples({
  registry,
  dispatch,
  circuits,
  probes,
  monotonic,
}: QueueSamplesContext): Partial<Record<FamilyName, Sample[]>> {
  const upstreams = registry.upstreamsInOrder.slice(0, labelValuesMax)
  const samplesOf = (read: (upstream: Upstream) => number) =>
    upstreams.map((upstream) => ({ labels: [upstream.name], value: read(upstream) }))
  return {
    upstreamResting: samplesOf((upstream) => Number(circuits.rests(upstream, undefined, monotonic()))),
    upstreamProbe: upstreams.flatMap((upstream) => {
      const last = probes.of(upstream)
      return last === undefined ? [] : [{ labels: [upstream.name], value: Number(last.problem === undefined) }]
    }),
    upstreamRunning: samplesOf(({ id }) => dispatch.at(id).running),
    queueLength: samplesOf(({ id }) => dispatch.at(id).waiting),
  }
}
