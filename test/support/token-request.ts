// Token endpoint requests for a server with a pasted issuer: valid requests to change in one respect, and requests of
// an exact size.
import { exchangeFields } from './latchkey.ts'
import type { PastedIssuer } from './pasted-issuer.ts'
import { encodePart, signInput } from './subject-token.ts'

export const formType = 'application/x-www-form-urlencoded'
export type FormFields = Record<string, string | undefined>

/** A valid form with its own token. `fields` replaces fields; undefined removes one. */
export async function goodForm(latchkey: PastedIssuer, fields: FormFields = {}): Promise<string> {
  const own = { federation_policy_id: latchkey.policy.id, subject_token: await latchkey.sign() }
  return String(exchangeFields({ ...own, ...fields }))
}

export function postForm(
  { server }: PastedIssuer,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${server.baseUrl}/oauth/token`, {
    method: 'POST',
    headers: { 'content-type': formType, ...headers },
    body,
  })
}

/** A valid form, padded to a length in bytes with an ignored field. */
export async function formOfLength(latchkey: PastedIssuer, bytes: number): Promise<string> {
  const form = `${await goodForm(latchkey)}&pad=`
  return form + 'x'.repeat(bytes - form.length)
}

/** A valid token of exactly this many bytes, padded in its header and payload. */
export async function tokenOfLength(latchkey: PastedIssuer, bytes: number): Promise<string> {
  const { es } = latchkey.pairs
  for (let headerPad = 0; headerPad < 4; headerPad++) {
    const header = encodePart({ alg: es.alg, kid: es.kid, x: 'x'.repeat(headerPad) })
    const room = bytes - header.length - '..'.length - 86
    const bare = JSON.stringify(latchkey.claims({ pad: '' })).length
    const payload = encodePart(latchkey.claims({ pad: 'p'.repeat(Math.floor((room * 3) / 4) - bare) }))
    if (payload.length === room) return signInput(es, `${header}.${payload}`)
  }
  throw new Error(`There is no token of ${bytes} bytes`)
}
