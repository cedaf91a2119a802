// Hashes of claims (reference: Recorded claims), for organizations that do not want their values in the audit. The key
// comes from the master key and differs between organizations, so nobody who has only the audit can try values.
import { createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'

export type ClaimHash = {
  /** Names the key. Hashes of different keys cannot be compared. */
  key: string
  /** The hash of a text or number. Equal values have equal hashes, and a text and a number never have. */
  hashOf: (value: string | number) => string
  /** The value with a hash instead of each text and number in it. */
  hide: (value: unknown) => unknown
}

/** 132 bits are enough that no two values share a hash. */
const hashCharacters = 22
/** Claims such as a repository repeat, and a hash takes longer than everything else that records a claim. */
const hashesKept = 10_000

/** `masterKey` is in hexadecimal digits. */
export function createClaimHash(masterKey: string, organizationId: string): ClaimHash {
  const hmac = (key: Buffer, text: string) => createHmac('sha256', key).update(text)
  const key = hmac(Buffer.from(masterKey, 'hex'), `recorded claims of ${organizationId}`).digest()
  const kept = new LRUCache<string, string>({ max: hashesKept })
  const hashOf = (value: string | number): string => {
    const text = JSON.stringify(value)
    const known = kept.get(text)
    if (known !== undefined) return known
    // No claim of a platform begins so.
    const hashed = `~${hmac(key, text).digest('base64url').slice(0, hashCharacters)}`
    kept.set(text, hashed)
    return hashed
  }
  const hide = (value: unknown): unknown => {
    if (typeof value === 'string' || typeof value === 'number') return hashOf(value)
    if (Array.isArray(value)) return value.map(hide)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, hide(each)]))
  }
  return { key: hmac(key, 'name of the key').digest('hex').slice(0, 8), hashOf, hide }
}
