// How often a key may ask and how many tokens it may use a minute: a bucket each that refills with time.
import type { ApiKey } from '../../db/schema.ts'

export type KeyRates = {
  /** Takes one request; answers 0, or after how many whole seconds the key may ask again. `now` in milliseconds. */
  take: (key: Pick<ApiKey, 'id' | 'requestsPerMinute' | 'tokensPerMinute'>, now: number) => number
  /** Takes tokens that an answer has used. What an answer will use nobody knows before, so a bucket may end below zero. */
  use: (keyId: string, tokens: number, now: number) => void
}

type Bucket = { left: number; at: number; perMinute: number }

export function createKeyRates(): KeyRates {
  const requests = new Map<string, Bucket>()
  const tokens = new Map<string, Bucket>()
  return {
    take: ({ id, requestsPerMinute, tokensPerMinute }, now) => {
      const asked = requestsPerMinute === null ? undefined : refilled(requests, id, requestsPerMinute, now)
      const used = tokensPerMinute === null ? undefined : refilled(tokens, id, tokensPerMinute, now)
      const wait = Math.max(
        asked === undefined ? 0 : secondsUntilOne(asked),
        used === undefined ? 0 : secondsUntilOne(used),
      )
      if (wait === 0 && asked !== undefined) asked.left -= 1
      return wait
    },
    use: (keyId, count, now) => {
      const bucket = tokens.get(keyId)
      if (bucket !== undefined) refilled(tokens, keyId, bucket.perMinute, now).left -= count
    },
  }
}

/** A changed limit raises or lowers what is left by as much; what was used too much stays owed. */
function refilled(buckets: Map<string, Bucket>, id: string, perMinute: number, now: number): Bucket {
  const known = buckets.get(id)
  const bucket = known ?? { left: perMinute, at: now, perMinute }
  bucket.left += perMinute - bucket.perMinute
  bucket.perMinute = perMinute
  bucket.left = Math.min(perMinute, bucket.left + (Math.max(0, now - bucket.at) * perMinute) / 60_000)
  bucket.at = now
  buckets.set(id, bucket)
  return bucket
}

function secondsUntilOne({ left, perMinute }: Bucket): number {
  return left >= 1 ? 0 : Math.max(1, Math.ceil(((1 - left) * 60) / perMinute))
}
