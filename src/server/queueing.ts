// Builds what decides when and where requests run: the queue in front of the inference servers, which of these rest, and their probes.

import { createCircuits } from '../inference/queue/circuit.ts'
import { createDispatch, type Dispatch } from '../inference/queue/dispatch.ts'
import type { PlaceContext } from '../inference/queue/places.ts'
import { createProbes, type ProbeContext, type Probes } from '../inference/queue/probe.ts'
import { createRefusals, type Refusals } from '../inference/refusals.ts'
import type { Upstream } from '../inference/upstream/targets.ts'
import type { Follow } from '../nodes/follow.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Registry } from '../registry/registry.ts'
import { every } from '../scheduling/every.ts'
import type { Budgets } from '../spending/budgets.ts'
import { hashToUnit } from '../values/hash-unit.ts'

/** `random` returns numbers from 0 to below 1. */
type Dependencies = Omit<ProbeContext, 'registry' | 'circuits'> & {
  random: () => number
  registry: Registry
  budgets: Budgets
  follow: Follow
  metrics: Metrics
}
export type QueueContext = Pick<PlaceContext, 'circuits'> & { dispatch: Dispatch; probes: Probes; refusals: Refusals }

export function createQueueing(dependencies: Dependencies): QueueContext {
  const { random, registry, budgets, follow, monotonic, metrics } = dependencies
  const circuits = createCircuits<Upstream>(random)
  return {
    circuits,
    refusals: createRefusals(dependencies.now),
    probes: createProbes({ ...dependencies, circuits }),
    dispatch: createDispatch({
      ...{
        registry,
        budgets: budgets.running,
        liveNodes: follow.liveNodes,
        random,
        hash: hashToUnit,
        monotonic,
        every,
      },
      onWaited: (upstream, queueClass, milliseconds) => metrics.countQueueWait(upstream.name, queueClass, milliseconds),
    }),
  }
}
