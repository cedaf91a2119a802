// The rate limits of keys, requests and tokens per minute: one bucket each, which refills over time.
import type { ApiKey } from '../../db/schema/schema.ts'
import { refill, secondsUntilOne, type TokenBucket } from '../values/token-bucket.ts'

type RatedKey = Pick<ApiKey, 'id' | 'requestsPerMinute' | 'tokensPerMinute' | 'createdAt'>

export type KeyRates = {
  /** Takes one request; returns 0, or the number of seconds until the key may retry. `now` in milliseconds. */
  take: (key: RatedKey, now: number) => number
  /**
   * Takes the tokens that a response used. They are unknown until then, so a bucket may end far below zero. The key
   * waits until all of it is earned, or until its limit is changed.
   */
  use: (keyId: string, tokens: number, now: number) => void
  /** How many buckets there are. */
  size: () => number
}

/**
 * The nodes that share the limits, since when this one is among them, and when the newest key of that moment was
 * created, in milliseconds. Clocks of nodes differ, so the two times are not compared.
 */
export type RateShare = { liveNodes: () => number; since: number; newestKeyAt: number }

/** `share` is the part of the limit that this node admits each minute. */
type Bucket = TokenBucket & { limit: number; share: number }
type Buckets = Map<string, Bucket>

/**
 * Adds to `onDeleted` how to forget a deleted key. Where several nodes serve, each admits its part of a limit, but at
 * least one request at a time.
 */
export function createKeyRates(
  onDeleted: ((id: string) => void)[] = [],
  { liveNodes, since, newestKeyAt }: RateShare = { liveNodes: () => 1, since: 0, newestKeyAt: 0 },
): KeyRates {
  const requests: Buckets = new Map()
  const tokens: Buckets = new Map()
  onDeleted.push((id) => {
    requests.delete(id)
    tokens.delete(id)
  })

  function bucketOf(buckets: Buckets, { id, createdAt }: RatedKey, limit: number, now: number): Bucket {
    const nodes = liveNodes()
    const share = limit / nodes
    // Other nodes have admitted the whole limit until they counted this one.
    const isNewcomer = nodes > 1 && createdAt <= newestKeyAt
    const start = isNewcomer ? { left: 1, at: since } : { left: fullOf(share), at: now }
    const bucket = buckets.get(id) ?? { ...start, limit, share }
    buckets.set(id, bucket)
    return applyLimit(bucket, limit, nodes, now)
  }

  return {
    size: () => requests.size + tokens.size,
    take: (key, now) => {
      const { requestsPerMinute, tokensPerMinute } = key
      const asked = requestsPerMinute === null ? undefined : bucketOf(requests, key, requestsPerMinute, now)
      const used = tokensPerMinute === null ? undefined : bucketOf(tokens, key, tokensPerMinute, now)
      const wait = Math.max(
        asked === undefined ? 0 : secondsUntilOne(asked, asked.share),
        used === undefined ? 0 : secondsUntilOne(used, used.share),
      )
      if (wait === 0 && asked !== undefined) asked.left -= 1
      return wait
    },
    use: (keyId, count, now) => {
      const bucket = tokens.get(keyId)
      if (bucket === undefined) return
      applyLimit(bucket, bucket.limit, liveNodes(), now).left -= count
    },
  }
}

/**
 * Changing a limit forgives what is owed, so that an administrator can end a wait. Raising it then adds the difference
 * to the bucket; lowering it caps the bucket. A node that joins or leaves adds nothing: only the speed changes, so that
 * all nodes together admit the limit.
 */
function applyLimit(bucket: Bucket, limit: number, nodes: number, now: number): Bucket {
  const share = limit / nodes
  const raisedBy = Math.max(0, limit - bucket.limit) / nodes
  const isChanged = limit !== bucket.limit
  refill(bucket, share, Number.POSITIVE_INFINITY, now)
  const kept = isChanged ? Math.max(0, bucket.left) : bucket.left
  return Object.assign(bucket, { left: Math.min(fullOf(share), kept + raisedBy), limit, share })
}

/** Whole requests, because three nodes with 6.7 each would admit 18 of 20 at once. */
function fullOf(share: number): number {
  return Math.max(1, Math.round(share))
}
