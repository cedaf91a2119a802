// Whose usage a request is (reference: Attribution): what the exchange made of a verified token, or what a trusted front
// end sends with a key that says so.
import { Fault } from '../fault.ts'
import { attributionProblem } from '../values/attribution-text.ts'
import { recordedText } from '../values/recorded-text.ts'
import type { Principal } from './bearer.ts'

/** JSON Schema has no flags. */
export const headerName = /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/
/** Headers that mean something else: credentials, addresses, and what belongs to the connection or the body. */
const otherMeaning =
  /auth|cookie|token|secret|credential|api-?key|^(?:host|connection|te|trailer|upgrade|expect|range|via|date|accept.*|content-.*|transfer-encoding|forwarded|x-forwarded-.*|x-request-id|x-session-id|traceparent|tracestate)$/i

/** Why a header cannot say whose usage a call is; undefined if it can. */
export function attributionHeaderProblem(name: string): string | undefined {
  if (!headerName.test(name)) return 'a name has 1 to 64 letters, digits and hyphens'
  return otherMeaning.test(name) ? `${JSON.stringify(name)} has another meaning; use one such as x-user` : undefined
}

/**
 * Whose usage a request is; null for a call with a key that says nothing. A federated request has what the exchange
 * verified, or else its subject. It is in the form in which it is recorded.
 * @throws Fault `invalid` for a header that cannot be one
 */
export function attributionOfRequest({ key, accessToken }: Principal, { headers }: Request): string | null {
  if (accessToken !== undefined) return recordedText(accessToken.attribution ?? accessToken.subject)
  if (key.attributeFromHeader === null) return null
  const value = headers.get(key.attributeFromHeader)?.trim() ?? ''
  if (value === '') return null
  const problem = attributionProblem(value)
  if (problem !== undefined)
    throw new Fault('invalid', `The header ${key.attributeFromHeader} ${problem}`, { reason: 'attribution_header' })
  return recordedText(value)
}
