// Logs that the bundled or pasted keys of an issuer expire soon: 14, 7 and 1 days before, and when they have expired.
import { expiryWarningOf } from '../federation/issuer/key-expiry.ts'
import type { Log } from '../observe/log.ts'
import type { Registry } from '../registry/registry.ts'
import { every } from '../scheduling/every.ts'

const everyMilliseconds = 60 * 60 * 1_000

type ExpiryContext = { registry: Pick<Registry, 'issuers'>; now: () => number; log: Log }

/**
 * Returns a function that logs each warning once for each expiry. A process that starts logs the one that applies then.
 */
export function createExpiryLog({ registry, now, log }: ExpiryContext): () => void {
  const logged = new Map<string, string>()
  return () => {
    for (const [id, issuer] of registry.issuers) {
      const days = issuer.deletedAt === null ? expiryWarningOf(issuer, now()) : undefined
      const warning = `${issuer.keysExpireAt} ${days}`
      if (days === undefined || issuer.keysExpireAt === null || logged.get(id) === warning) continue
      logged.set(id, warning)
      const expires_at = new Date(issuer.keysExpireAt).toISOString()
      const about = { issuer_id: id, issuer: issuer.name, issuer_url: issuer.issuerUrl, expires_at }
      if (days === 0) log('error', 'issuer_keys_expired', about)
      else log('warn', 'issuer_keys_expire', { ...about, within_days: days })
    }
  }
}

/** Logs now and on a timer. Returns a function that stops the timer. */
export function watchKeyExpiry(context: ExpiryContext): () => void {
  const check = createExpiryLog(context)
  check()
  return every(everyMilliseconds, check)
}
