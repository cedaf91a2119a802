// Fetches the keys of an issuer as a server does, and signs them as a bundle for a server that cannot reach the issuer.
import { Fault } from '../../fault.ts'
import { discover } from './fetch-keys.ts'
import { fetchDocument, fetchTime, type Outbound } from './guarded-fetch.ts'
import { objectionToIssuerUrl } from './issuer-url.ts'
import { privateMembersIn, readKeySet, writeKeys } from './key-set.ts'
import { type PackerKey, signKeyBundle } from './packer-key.ts'

export type PackRequest = {
  issuerUrl: string
  /** The URL of the keys; null for discovery. */
  jwksUrl: string | null
  caPem: string | null
  /** Name of the packer. */
  packer: string
  validSeconds: number
  /** A server refuses a bundle whose sequence is not greater than the last. */
  sequence: number
}

export type PackDependencies = {
  outbound: Outbound
  /** Milliseconds since 1970. */
  now: () => number
  /** The SHA-256 of the certificate that the server of a URL shows; undefined if it cannot be found out. */
  readCertificateDigest: (url: string, caPem: string | null) => Promise<string | undefined>
}

export type PackedKeys = { bundle: string; keys: { kid: string | null; algorithm: string }[] }

/** Throws a fault if the keys cannot be fetched, or contain a private key. */
export async function packKeys(
  request: PackRequest,
  key: PackerKey,
  { outbound, now, readCertificateDigest }: PackDependencies,
): Promise<PackedKeys> {
  const { issuerUrl, caPem, packer, validSeconds, sequence } = request
  const objection = objectionToIssuerUrl(issuerUrl, outbound.insecureIssuers)
  if (objection !== undefined) throw new Fault('invalid', `The issuer URL ${JSON.stringify(issuerUrl)} ${objection}`)
  const time = fetchTime()
  const jwksUrl = request.jwksUrl ?? (await discover({ issuerUrl, caPem }, outbound, time))
  const { document } = await fetchDocument(outbound, jwksUrl, caPem, time)
  const keys = readKeySet(document)
  if ((document as { keys: unknown[] }).keys.some(privateMembersIn))
    throw new Fault(
      'invalid',
      `${JSON.stringify(jwksUrl)} publishes a private key: the owner of the issuer must replace that key`,
    )
  const certificate = await readCertificateDigest(jwksUrl, caPem)
  const at = now()
  const issuedAt = Math.floor(at / 1_000)
  const claims = {
    iss: packer,
    sub: issuerUrl,
    iat: issuedAt,
    exp: issuedAt + validSeconds,
    seq: sequence,
    keys: writeKeys(keys),
    refresh_hint: Math.floor(validSeconds / 3),
    evidence: {
      fetched_at: new Date(at).toISOString(),
      ...(request.jwksUrl === null
        ? { discovery_url: `${issuerUrl.replace(/\/$/, '')}/.well-known/openid-configuration` }
        : {}),
      jwks_url: jwksUrl,
      ...(certificate === undefined ? {} : { tls_certificate_sha256: certificate }),
    },
  }
  const shown = keys.map(({ kid = null, algorithm }) => ({ kid, algorithm }))
  return { bundle: await signKeyBundle(claims, key), keys: shown }
}
