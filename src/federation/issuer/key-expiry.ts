// When the keys of an issuer that is not fetched expire: those of a signed bundle, and pasted sets with an expiry.
import { Fault } from '../../fault.ts'
import { type Refusal, refuse } from '../subject-token/refusal.ts'
import type { Issuer } from './issuer.ts'

type ExpirySource = Pick<Issuer, 'keysExpireAt' | 'keyBundle' | 'bundleSignerId' | 'jwks'>

/** Days before the keys of an issuer expire at which the log warns. */
export const keysExpireWarningDays = [14, 7, 1] as const

/** A key set without keys, of an issuer that accepts only bundles and has none yet. */
export const emptyKeySet = '{"keys":[]}'

/** Why the keys cannot be used at this time. `now` and `graceMilliseconds` are in milliseconds. */
export function refuseExpired(issuer: ExpirySource, now: number, graceMilliseconds: number): Refusal | undefined {
  const { keysExpireAt, keyBundle, jwks } = issuer
  if (jwks === emptyKeySet) return refuse('bundle_missing')
  if (keysExpireAt === null || now < keysExpireAt + graceMilliseconds) return undefined
  return refuse(keyBundle === null ? 'issuer_keys_expired' : 'bundle_expired', new Date(keysExpireAt).toISOString())
}

const dayMilliseconds = 24 * 60 * 60 * 1_000

/** The smallest number of days to warn at that the keys are within, 0 after their expiry; undefined before any. */
export function expiryWarningOf({ keysExpireAt }: Pick<Issuer, 'keysExpireAt'>, now: number): number | undefined {
  if (keysExpireAt === null) return undefined
  if (now >= keysExpireAt) return 0
  return keysExpireWarningDays.findLast((days) => keysExpireAt - now <= days * dayMilliseconds)
}

/** Why the keys of an issuer that has a bundle or a pasted set cannot be fetched. */
export function notFetched({ keyBundle, bundleSignerId }: ExpirySource): Fault {
  if (keyBundle !== null || bundleSignerId !== null)
    return new Fault(
      'invalid',
      'The keys of this issuer are from signed bundles, which are not fetched; import a newer one',
      {
        hint: ': latchkey issuers import FILE',
      },
    )
  return new Fault('invalid', 'This issuer has a pasted JWKS, which is not fetched; renew it by an update', {
    hint: ': latchkey issuers update ISSUER --jwks-file FILE',
  })
}
