// A token bucket: a count that is taken from and refills over time. It knows neither who takes nor what a limit is for.

/** What is left at a time, in milliseconds. It is below zero where more was taken than there was. */
export type TokenBucket = { left: number; at: number }

/** Adds what was earned since then, up to a full bucket. A clock that was set back earns nothing. */
export function refill(bucket: TokenBucket, perMinute: number, full: number, now: number): void {
  bucket.left = Math.min(full, bucket.left + (Math.max(0, now - bucket.at) * perMinute) / 60_000)
  bucket.at = now
}

/** What a wait earns is rounded, so one that is kept must not fall short by a rounding. */
const one = 1 - 1e-6

/** Returns 0, or the whole seconds until one is available. */
export function secondsUntilOne({ left }: TokenBucket, perMinute: number): number {
  return left >= one ? 0 : Math.max(1, Math.ceil(((1 - left) * 60) / perMinute))
}
