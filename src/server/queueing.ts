// Builds what decides when and where requests run: the queue in front of the inference servers, and which of these rest.
import { createCircuits } from '../inference/queue/circuit.ts'
import { createDispatch } from '../inference/queue/dispatch.ts'
import type { PlaceContext } from '../inference/queue/places.ts'
import type { Upstream } from '../inference/upstream/targets.ts'
import type { Follow } from '../nodes/follow.ts'
import type { Metrics } from '../observe/metrics.ts'
import type { Registry } from '../registry/registry.ts'
import { every } from '../scheduling/every.ts'
import { hashToUnit } from '../values/hash-unit.ts'

/** `random` returns numbers from 0 to below 1. */
type Dependencies = {
  random: () => number
  registry: Registry
  follow: Follow
  monotonic: () => number
  metrics: Metrics
}
export type QueueContext = Pick<PlaceContext, 'circuits'> & { dispatch: ReturnType<typeof createDispatch> }

export function createQueueing({ random, registry, follow, monotonic, metrics }: Dependencies): QueueContext {
  return {
    circuits: createCircuits<Upstream>(random),
    dispatch: createDispatch({
      ...{ registry, liveNodes: follow.liveNodes, random, hash: hashToUnit, monotonic, every },
      onWaited: (upstream, queueClass, milliseconds) => metrics.countQueueWait(upstream.name, queueClass, milliseconds),
    }),
  }
}
