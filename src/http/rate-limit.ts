// Limits the requests of each client network with a token bucket (a count that refills over time). It does not know the requests.
import { rateBucketsMax } from '../limits.ts'
import { networkOf } from './client-address.ts'

export type RateLimiter = {
  /** Takes one request from the bucket. Returns 0, or the whole seconds until one is available. `now` in milliseconds. */
  take: (address: string | null, now: number) => number
}

type Limit = { perMinute: number; burst: number }
type Bucket = { left: number; at: number }

/**
 * Keeps the buckets of the `rateBucketsMax` networks seen last; a network that returns after that starts with a full bucket. A client with
 * more networks than that cannot be limited by address. The limit is read for each request; undefined removes it.
 */
export function createRateLimiter(limitInEffect: () => Limit | undefined): RateLimiter {
  const buckets = new Map<string, Bucket>()
  return {
    take: (address, now) => {
      const limit = limitInEffect()
      if (limit === undefined) return 0
      const bucket = moveToEnd(buckets, networkOf(address ?? ''), { left: limit.burst, at: now })
      refill(bucket, limit, now)
      if (bucket.left < 1) return secondsUntilOne(bucket, limit)
      bucket.left -= 1
      return 0
    },
  }
}

/** The bucket of a network, or this new one. It becomes the last of the map, so that the first is the one seen longest ago. */
function moveToEnd(buckets: Map<string, Bucket>, network: string, full: Bucket): Bucket {
  const bucket = buckets.get(network) ?? full
  buckets.delete(network)
  buckets.set(network, bucket)
  if (buckets.size > rateBucketsMax) for (const oldest of buckets.keys()) if (buckets.delete(oldest)) break
  return bucket
}

function refill(bucket: Bucket, { perMinute, burst }: Limit, now: number): void {
  const gained = (Math.max(0, now - bucket.at) * perMinute) / 60_000
  bucket.left = Math.min(burst, bucket.left + gained)
  bucket.at = now
}

function secondsUntilOne({ left }: Bucket, { perMinute }: Limit): number {
  return Math.max(1, Math.ceil(((1 - left) * 60) / perMinute))
}
