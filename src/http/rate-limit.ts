// Limits the requests of each client network with a token bucket. It does not know the requests.
import { rateBucketsMax } from '../limits.ts'
import { deferCache } from '../values/deferred-cache.ts'
import { refill, secondsUntilOne, type TokenBucket } from '../values/token-bucket.ts'
import { networkOf } from './client-address.ts'

export type RateLimiter = {
  /** Takes one request from the bucket. Returns 0, or the whole seconds until one is available. `now` in milliseconds. */
  take: (address: string | null, now: number) => number
}

type Limit = { perMinute: number; burst: number }

/**
 * Keeps the buckets of the `rateBucketsMax` networks seen last; a network that returns after that starts with a full bucket. A client with
 * more networks than that cannot be limited by address. The limit is read for each request; undefined removes it.
 */
export function createRateLimiter(limitInEffect: () => Limit | undefined): RateLimiter {
  const buckets = deferCache<TokenBucket>(rateBucketsMax)
  return {
    take: (address, now) => {
      const limit = limitInEffect()
      if (limit === undefined) return 0
      const network = networkOf(address ?? '')
      const bucket = buckets().get(network) ?? { left: limit.burst, at: now }
      buckets().set(network, bucket)
      refill(bucket, limit.perMinute, limit.burst, now)
      const wait = secondsUntilOne(bucket, limit.perMinute)
      if (wait === 0) bucket.left -= 1
      return wait
    },
  }
}
