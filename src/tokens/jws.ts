// Signs and verifies the text of a JWT (RFC 7515 §5) with WebCrypto, so that nothing is parsed twice. It does not know claims.

const parameters = {
  RS256: { name: 'RSASSA-PKCS1-v1_5' },
  ES256: { name: 'ECDSA', hash: 'SHA-256' },
} as const
/** The algorithms that subject tokens may be signed with. */
export type JwsAlgorithm = keyof typeof parameters
const encoder = new TextEncoder()

/**
 * Whether the signature of a JWT is valid. The text must be one that `parseJwtText` accepts, and the key must fit the algorithm. With a key
 * that cannot be imported, no signature is valid.
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
