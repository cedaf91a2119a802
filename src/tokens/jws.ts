// Signatures over the text of a JWT (RFC 7515 §5), by WebCrypto itself: on the hot path nothing is parsed twice. It does not know claims.

const parameters = {
  RS256: { name: 'RSASSA-PKCS1-v1_5' },
  ES256: { name: 'ECDSA', hash: 'SHA-256' },
} as const
/** The algorithms that subject tokens may be signed with. */
export type JwsAlgorithm = keyof typeof parameters
const encoder = new TextEncoder()

/**
 * Whether the last part of a JWT signs the ones before it. The text is one that `parseJwtText` accepts, the key fits the algorithm. With a
 * key that cannot be imported nothing is signed.
 */
export async function isSignedBy(
  text: string,
  algorithm: JwsAlgorithm,
  { cryptoKey }: { cryptoKey: () => Promise<CryptoKey> },
): Promise<boolean> {
  const end = text.lastIndexOf('.')
  const signature = Buffer.from(text.slice(end + 1), 'base64url')
  try {
    return await crypto.subtle.verify(
      parameters[algorithm],
      await cryptoKey(),
      signature,
      encoder.encode(text.slice(0, end)),
    )
  } catch {
    return false
  }
}

/** A JWT signed with ES256. */
export async function signJwt(header: object, payload: object, key: CryptoKey): Promise<string> {
  const input = `${encode(header)}.${encode(payload)}`
  const signature = await crypto.subtle.sign(parameters.ES256, key, encoder.encode(input))
  return `${input}.${Buffer.from(signature).toString('base64url')}`
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}
