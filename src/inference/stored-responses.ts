// Responses that an upstream keeps: which key made them, and where. Nobody else can name them.
import type { Orm } from '../../db/file/open.ts'
import type { StoredResponse } from '../../db/schema/record-schema.ts'
import { readStoredResponse } from '../../db/tables/stored-responses.ts'
import { Fault } from '../fault.ts'
import type { Principal } from '../keys/bearer.ts'
import type { Call } from './call.ts'
import type { AttemptGroup, Upstream, UpstreamRegistry } from './upstream/targets.ts'
import type { Inspection } from './usage.ts'

export type StoredResponseContext = { orm: Orm; registry: UpstreamRegistry }

/** Upstreams make them of letters and digits; LiteLLM encodes where it has the response, so they can be long. */
const idText = /^[\w.=:+/-]{1,512}$/

/**
 * The response that the caller's key made, and the upstream that has it.
 * @throws Fault `not_found`, with one message for a response of another key and one that does not exist
 */
export async function findStoredResponse(
  id: string,
  { key }: Principal,
  { orm, registry }: StoredResponseContext,
): Promise<{ id: string; upstream: Upstream }> {
  const row = idText.test(id) ? await readStoredResponse(orm, id) : undefined
  const upstream = registry.upstreamsInOrder.find((one) => one.id === row?.upstreamId)
  if (row === undefined || row.keyId !== key.id || upstream === undefined) {
    const rule = 'only the key that made a response can use it, for 30 days; create a new one'
    throw new Fault('not_found', `The response does not exist: ${rule}`, { reason: 'response_unknown' })
  }
  return { id, upstream }
}

/**
 * The same for the response that a body continues, as `previous_response_id`. Undefined when it continues none.
 * @throws Fault as above; `invalid` when it is not an id
 */
export function findPreviousResponse(
  { path, fields: { previous_response_id: id } }: Call,
  principal: Principal,
  context: StoredResponseContext,
): Promise<{ id: string; upstream: Upstream }> | undefined {
  if (!path.storesResponse || id === undefined || id === null) return undefined
  const rule = 'previous_response_id must be the id of a response, as text'
  if (typeof id !== 'string') throw new Fault('invalid', rule, { reason: 'body_refused', detail: rule })
  return findStoredResponse(id, principal, context)
}

/**
 * Those of the groups that go to the upstream that has the response.
 * @throws Fault `not_found` when it serves none of the models
 */
export function keepAt(upstream: Upstream | undefined, groups: AttemptGroup[]): AttemptGroup[] {
  if (upstream === undefined) return groups
  const kept = groups.flatMap(({ model, upstreams }) =>
    upstreams.includes(upstream) ? [{ model, upstreams: [upstream] }] : [],
  )
  if (kept.length > 0) return kept
  const rule = 'use the model that made it, or send the whole conversation'
  const message = `The inference server of the previous response does not serve this model: ${rule}`
  throw new Fault('not_found', message, { reason: 'response_elsewhere' })
}

/** What to record of a response, so that its key can name it later. Undefined when its upstream does not keep it. */
export function storedResponseOf(
  { path, fields }: Call,
  { responseId }: Inspection,
  made: { status: number; keyId: string; upstreamId: string | undefined; createdAt: number },
): StoredResponse | undefined {
  const { status, keyId, upstreamId, createdAt } = made
  const isStored = path.storesResponse && fields.store !== false && status < 300
  if (!isStored || upstreamId === undefined || responseId === undefined || !idText.test(responseId)) return undefined
  return { responseId, keyId, upstreamId, createdAt }
}
