// What an upstream gets to know of the order of requests, where an administrator has switched it on: the priority of vLLM, and the fairness
// id of the Gateway API inference extension. Callers cannot set either there.
import { createHash } from 'node:crypto'
import type { Key } from '../../keys/api-key.ts'
import type { Upstream } from './targets.ts'

/** vLLM handles lower values earlier. Requests that say nothing have 0. */
const priorities: Record<Key['queueClass'], number> = { interactive: -1, normal: 0, batch: 1 }

/** The second is what llm-d calls the first since its version 0.8. */
const fairnessHeaders = ['x-gateway-inference-fairness-id', 'x-llm-d-inference-fairness-id']

/** The `priority` of the body; undefined where it is left as it is. */
export function priorityFor({ sendPriority }: Upstream, queueClass: Key['queueClass']): number | undefined {
  return sendPriority ? priorities[queueClass] : undefined
}

/** Headers with one id for each counter, which shows neither the name of a key nor who somebody is. */
export function fairnessHeadersFor(counter: string): Record<string, string> {
  const id = createHash('sha256').update(counter).digest('hex').slice(0, 32)
  return Object.fromEntries(fairnessHeaders.map((name) => [name, id]))
}
