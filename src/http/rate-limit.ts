// Limits the requests of each client network with a token bucket (a count that refills over time). It does not know the requests.
import { rateBucketsMax } from '../limits.ts'
import { networkOf } from './client-address.ts'

export type RateLimiter = {
  /** Takes one request from the bucket. Returns 0, or the whole seconds until one is available. `now` in milliseconds. */
  take: (address: string | null, now: number) => number
}

export const noRateLimit: RateLimiter = { take: () => 0 }

/**
 * The buckets of the networks heard last are kept, `rateBucketsMax` of them; one that is forgotten starts full. Whoever sends from more
 * networks than that is held by nothing that counts addresses.
 */
export function createRateLimiter({ perMinute, burst }: { perMinute: number; burst: number }): RateLimiter {
  const perMillisecond = perMinute / 60_000
  const buckets = new Map<string, { left: number; at: number }>()
  return {
    take: (address, now) => {
      const network = networkOf(address ?? '')
      const known = buckets.get(network)
      const bucket = known ?? { left: burst, at: now }
      bucket.left = Math.min(burst, bucket.left + Math.max(0, now - bucket.at) * perMillisecond)
      bucket.at = now
      // Last in the order of the map, so that the first is the one heard longest ago.
      if (known !== undefined) buckets.delete(network)
      buckets.set(network, bucket)
      if (buckets.size > rateBucketsMax) for (const oldest of buckets.keys()) if (buckets.delete(oldest)) break
      if (bucket.left < 1) return Math.max(1, Math.ceil((1 - bucket.left) / perMillisecond / 1_000))
      bucket.left -= 1
      return 0
    },
  }
}
