// X.509 certificates in PEM: when a bundle of them is valid.
import { X509Certificate } from 'node:crypto'

/** In milliseconds since 1970. */
export type Validity = { startsAt: number; expiresAt: number }

/** The certificates of a bundle as text. Whatever lies between them is ignored. */
export function splitBundle(pem: string): string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
}

/** The certificate of a bundle that expires first. @throws when one cannot be read, or the bundle is empty */
export function firstToExpire(pem: string): Validity {
  const [first] = splitBundle(pem)
    .map((text) => validityOf(new X509Certificate(text)))
    .toSorted((one, other) => one.expiresAt - other.expiresAt)
  if (first === undefined) throw new Error('There is no certificate')
  return first
}

export function validityOf({ validFrom, validTo }: X509Certificate): Validity {
  return { startsAt: Date.parse(validFrom), expiresAt: Date.parse(validTo) }
}
