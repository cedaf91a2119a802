// The rate limits of keys, requests and tokens per minute: one bucket each, which refills over time.
import type { ApiKey } from '../../db/schema.ts'

export type KeyRates = {
  /** Takes one request; returns 0, or the number of seconds until the key may retry. `now` in milliseconds. */
  take: (key: Pick<ApiKey, 'id' | 'requestsPerMinute' | 'tokensPerMinute'>, now: number) => number
  /**
   * Takes the tokens that a response used. They are unknown until then, so a bucket may end below zero, but never so
   * far that the key waits for more than a minute.
   */
  use: (keyId: string, tokens: number, now: number) => void
  /** How many buckets there are. */
  size: () => number
}

type Bucket = { left: number; at: number; perMinute: number }

/**
 * Adds to `onDeleted` how to forget a deleted key. Where several nodes serve, each admits its part of a limit, but at
 * least one request at a time.
 */
export function createKeyRates(onDeleted: ((id: string) => void)[] = [], liveNodes: () => number = () => 1): KeyRates {
  const shareOf = (perMinute: number) => perMinute / liveNodes()
  const requests = new Map<string, Bucket>()
  const tokens = new Map<string, Bucket>()
  onDeleted.push((id) => {
    requests.delete(id)
    tokens.delete(id)
  })
  return {
    size: () => requests.size + tokens.size,
    take: ({ id, requestsPerMinute, tokensPerMinute }, now) => {
      const asked = requestsPerMinute === null ? undefined : refilled(requests, id, shareOf(requestsPerMinute), now)
      const used = tokensPerMinute === null ? undefined : refilled(tokens, id, shareOf(tokensPerMinute), now)
      const wait = Math.max(
        asked === undefined ? 0 : secondsUntilOne(asked),
        used === undefined ? 0 : secondsUntilOne(used),
      )
      if (wait === 0 && asked !== undefined) asked.left -= 1
      return wait
    },
    use: (keyId, count, now) => {
      const bucket = tokens.get(keyId)
      if (bucket === undefined) return
      const { left, perMinute } = refilled(tokens, keyId, bucket.perMinute, now)
      // A minute refills `perMinute`, and one token is needed to pass.
      bucket.left = Math.max(left - count, 1 - perMinute)
    },
  }
}

/** Raising a limit adds the difference to the bucket; lowering it caps the bucket. */
function refilled(buckets: Map<string, Bucket>, id: string, perMinute: number, now: number): Bucket {
  const full = Math.max(1, perMinute)
  const bucket = buckets.get(id) ?? { left: full, at: now, perMinute }
  const raisedBy = Math.max(0, perMinute - bucket.perMinute)
  const gained = (Math.max(0, now - bucket.at) * perMinute) / 60_000
  const left = Math.min(full, bucket.left + raisedBy + gained)
  Object.assign(bucket, { left: Math.max(left, 1 - perMinute), at: now, perMinute })
  buckets.set(id, bucket)
  return bucket
}

function secondsUntilOne({ left, perMinute }: Bucket): number {
  return left >= 1 ? 0 : Math.max(1, Math.ceil(((1 - left) * 60) / perMinute))
}
