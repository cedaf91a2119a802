// What a JWT says of its workload, without verifying it: for messages, and to distinguish workloads. Rules only.

/** The claims of a JWT, or an empty record if it is damaged. */
export function readClaims(jwt: string): Record<string, unknown> {
  const payload = jwt.trim().split('.')[1] ?? ''
  const bytes = Uint8Array.from(decodeBase64url(payload), (character) => character.charCodeAt(0))
  return parseObject(new TextDecoder().decode(bytes))
}

/** These differ between two tokens of one workload. */
const ofOneToken = ['exp', 'iat', 'nbf', 'jti']

/** The claims that the tokens of one workload share, as text. */
export function lastingClaims(jwt: string): string {
  const lasting = Object.entries(readClaims(jwt)).filter(([name]) => !ofOneToken.includes(name))
  return JSON.stringify(lasting.toSorted(([one], [other]) => (one < other ? -1 : 1)))
}

/** The members of a JSON object, or an empty record for any other text. */
export function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {
    // The caller sees no members.
  }
  return {}
}

function decodeBase64url(text: string): string {
  try {
    return atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  } catch {
    return ''
  }
}
