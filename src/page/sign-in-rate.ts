// Slows down sign-ins. It refuses no right key because of wrong ones: administrators can share an address with anybody,
// and 2^256 keys cannot be tried. What is bounded is the number of sessions that begin, and of refusals without a wait.
import { networkOf } from '../http/client-address.ts'
import { createRateLimiter } from '../http/rate-limit.ts'

/** Each returns 0, or the whole seconds to wait. `now` in milliseconds. */
export type SignInRate = {
  /** Counts a wrong key or link from the client's network. */
  takeRefused: (address: string | null, now: number) => number
  /** Counts a browser that an issuer sends back, from the client's network: each makes requests to the issuer. */
  takeReturn: (address: string | null, now: number) => number
  /** Counts a sign-in with this key from the client's network. */
  takeOf: (keyId: string, address: string | null, now: number) => number
}

/** A person mistypes a few times, and signs in with a few browsers. */
const inEffect = { perMinute: 10, burst: 10 }
/** The people of an office share an address. */
const ofReturns = { perMinute: 60, burst: 60 }

export function createSignInRate(): SignInRate {
  const refused = createRateLimiter(() => inEffect)
  const returns = createRateLimiter(() => ofReturns)
  const ofKeys = createRateLimiter(() => inEffect)
  return {
    takeRefused: refused.take,
    takeReturn: returns.take,
    takeOf: (keyId, address, now) => ofKeys.take(`${keyId} ${networkOf(address ?? '')}`, now),
  }
}
