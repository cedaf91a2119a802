// A model of what the token endpoint must accept, written from the specification without code of the service, and input
// generators for comparing the two. Generated forms, headers and claims are mostly valid, so that accepted ones occur
// too.
import fc from 'fast-check'
import { audience, subject } from './latchkey.ts'
import { issuerUrl } from './pasted-issuer.ts'
import { formType } from './token-request.ts'

export type Json = Record<string, unknown>
export type Field = [name: string, value: string]

export const bodyBytesLimit = 32_768
export const tokenBytesMax = 16_384
const required = ['grant_type', 'subject_token_type', 'federation_policy_id', 'subject_token']

/** An object as parsed from a token. */
function asSent(value: Json): Json {
  return JSON.parse(JSON.stringify(value)) as Json
}

/**
 * Reports whether these fields are equivalent to the valid ones: known fields once, required fields unchanged, optional
 * fields unchanged or empty.
 */
export function isGoodForm(fields: Field[], goodFields: Field[]): boolean {
  const good = new Map(goodFields)
  return [...good.keys(), 'actor_token', 'actor_token_type'].every((name) => {
    const [value = '', ...more] = fields.filter(([each]) => each === name).map(([, text]) => text)
    if (more.length > 0) return false
    return value === '' ? !required.includes(name) : value === good.get(name)
  })
}

/** The header next to the key that signs. RS256 may omit the kid if `isOnly`: the set has no other key for it. */
export function isGoodHeader(sent: Json, key: { alg: string; kid: string; isOnly: boolean }): boolean {
  const header = asSent(sent)
  if ('crit' in header || 'b64' in header || header.alg !== key.alg) return false
  return header.kid === key.kid || (header.kid === undefined && key.isOnly)
}

/** `now` in milliseconds. */
export function isGoodPayload(sent: Json, now: number): boolean {
  const { iss, sub, aud, exp, nbf, iat, scopes } = asSent(sent)
  const isShort = (text: unknown) => typeof text !== 'string' || [...text].length <= 512
  const isDate = (value: unknown) => typeof value === 'number' && value >= 0 && value <= 253_402_300_799
  const audiences = Array.isArray(aud) ? aud : [aud]
  return (
    iss === issuerUrl &&
    sub === subject &&
    audiences.every((each) => typeof each === 'string' && isShort(each)) &&
    audiences.includes(audience) &&
    isDate(exp) &&
    Number(exp) - now / 1_000 >= 1 &&
    [nbf, iat].every((time) => time === undefined || (isDate(time) && Number(time) <= now / 1_000 + 30)) &&
    (!Array.isArray(scopes) || (scopes.length <= 16 && scopes.every(isShort)))
  )
}

function nest(depth: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { a: value }
  return value
}

export const anyText = fc.string({ unit: 'binary', maxLength: 40 })
const nested = fc.integer({ min: 1, max: 3_500 }).map(nest)
const longText = fc.oneof(fc.integer({ min: 505, max: 520 }), fc.nat(6_000)).map((length) => 'é'.repeat(length))
const longList = fc
  .tuple(fc.constantFrom(1, 'a', null, {}), fc.nat(3_000))
  .map(([each, length]) => Array(length).fill(each))
const numbers = fc.oneof(fc.double(), fc.constantFrom(-1, 0, 1e15, 1e308, 253_402_300_799, 253_402_300_800))
const anyValue = fc.oneof(fc.jsonValue(), anyText, numbers, fc.oneof(nested, longText, longList))

/** Usually one of a few values, most of which are valid. */
function near(...good: unknown[]): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 10, arbitrary: fc.constantFrom(...good) }, anyValue)
}

/** Bytes with up to three pieces replaced. */
export function changedBytes(good: Uint8Array): fc.Arbitrary<Uint8Array> {
  const change = fc.record({ at: fc.nat(), removed: fc.nat(40), bytes: fc.uint8Array({ maxLength: 40 }) })
  return fc.array(change, { maxLength: 3 }).map((changes) => {
    let whole = good
    for (const { at, removed, bytes } of changes) {
      const start = at % (whole.length + 1)
      whole = Buffer.concat([whole.subarray(0, start), bytes, whole.subarray(start + removed)])
    }
    return whole
  })
}

/** Changes to valid fields: replaced, removed, repeated, added and renamed. */
export function changedFields(good: Field[]): fc.Arbitrary<Field[]> {
  const known = fc.constantFrom(...good.map(([name]) => name), 'actor_token', 'subject_token[]', 'SCOPE', 'audience')
  const odd = fc.constantFrom('', ' ', 'null', '0', '[object Object]', ...good.map(([, value]) => value))
  const long = fc.integer({ min: 1, max: 40_000 }).map((length) => 'x'.repeat(length))
  const kind = fc.constantFrom('replace', 'remove', 'repeat', 'add', 'rename')
  const change = { kind, at: fc.nat(), name: fc.oneof(known, anyText), value: fc.oneof(anyText, odd, long) }
  return fc.array(fc.record(change), { maxLength: 3 }).map((changes) => {
    let fields = good
    for (const { kind, at, name, value } of changes) {
      const index = at % Math.max(fields.length, 1)
      const [ownName, ownValue] = fields[index] ?? [name, value]
      if (kind === 'remove') fields = fields.toSpliced(index, 1)
      else if (kind === 'repeat') fields = [...fields, [ownName, ownValue]]
      else if (kind === 'add') fields = fields.toSpliced(index, 0, [name, value])
      else fields = fields.with(index, kind === 'rename' ? [name, ownValue] : [ownName, value])
    }
    return fields
  })
}

/**
 * Changes to the text of a token: flipped bits, additions, cuts, and parts that are dropped, doubled or swapped for
 * `others`.
 */
export function changedToken(good: string, others: string[]): fc.Arbitrary<string> {
  const kind = fc.constantFrom('flip', 'insert', 'cut', 'drop', 'double', 'swap')
  const text = fc.string({ unit: fc.constantFrom(...'AZaz09-_=+/. \n\0éſ😀'), minLength: 1, maxLength: 3 })
  const change = fc.record({ kind, at: fc.nat(), text, other: fc.constantFrom(...others) })
  return fc.array(change, { maxLength: 3 }).map((changes) => {
    let token = good
    for (const { kind, at, text, other } of changes) {
      const start = at % (token.length + 1)
      const parts = token.split('.')
      const index = at % parts.length
      const own = parts[index] ?? ''
      if (kind === 'flip') token = token.slice(0, start) + text + token.slice(start + text.length)
      else if (kind === 'insert') token = token.slice(0, start) + text + token.slice(start)
      else if (kind === 'cut') token = token.slice(0, start)
      else if (kind === 'drop') token = parts.toSpliced(index, 1).join('.')
      else token = parts.toSpliced(index, 1, ...(kind === 'swap' ? [other] : [own, own])).join('.')
    }
    return token
  })
}

const soon = Math.floor(Date.now() / 1_000) + 600
export const anyClaims: fc.Arbitrary<Json> = fc.record(
  {
    iss: near(issuerUrl),
    sub: near(subject),
    aud: near(audience, [audience], ['é'.repeat(512), audience], ['😀'.repeat(513), audience]),
    exp: near(soon, soon, soon, soon - 1_200),
    nbf: near(undefined, 0, soon - 1_200, soon),
    iat: near(undefined, soon - 1_200.5, soon),
    scopes: near(undefined, ['a'], Array(16).fill('a'), Array(17).fill('a')),
    token_type: near('access'),
    jti: near('x'),
    extra: anyValue,
  },
  { requiredKeys: [] },
)
export const anyHeader: fc.Arbitrary<Json> = fc.oneof(
  { weight: 2, arbitrary: fc.constant({}) },
  fc.record({ typ: anyValue, jwk: anyValue, jku: anyValue, x5c: anyValue }, { requiredKeys: [] }),
  fc.record({ alg: near('ES256', 'RS256', 'none'), kid: near('es', 'rs', undefined) }, { requiredKeys: [] }),
  fc.record({ crit: anyValue, b64: anyValue }, { requiredKeys: [] }),
)

// Excludes headers that frame the message, because the runtime sets them.
const framing = /^(connection|content-length|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade)$/i
const headerName = fc.oneof(
  fc.constantFrom('content-type', 'content-encoding', 'accept', 'x-request-id', 'authorization', 'cookie', 'origin'),
  fc.constantFrom('range', 'x-forwarded-for', 'forwarded', 'x-http-method-override', 'constructor', '__proto__'),
  fc.stringMatching(/^[\w!#$%&'*+.^`|~-]{1,30}$/).filter((name) => !framing.test(name)),
)
const printable = fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code))
const headerValue = fc.oneof(
  fc.string({ unit: printable, maxLength: 200 }),
  fc.constantFrom(formType, formType.toUpperCase(), `${formType}; charset=UTF-8`, 'identity', 'gzip', '*'),
)
export const httpHeaders = fc.array(fc.tuple(headerName, headerValue), { maxLength: 8 })

const claimName = fc.constantFrom('environment', 'a', 'groups', 'scopes', 'token_type', 'constructor', '__proto__')
const fitting = fc.constantFrom('production', 'x', 1, { b: 1 }, ['team-a', 'x'], [1, 'x'], '__proto__')
const claimEntry = fc.tuple(fc.oneof(claimName, anyText), fc.oneof(anyValue, fitting))
/** Claims that conditions read, of the expected types and of any other. */
export const claimEntries = fc.array(claimEntry, { maxLength: 6 })

/** Values for the fields of a form. */
export const costlyPieces = ['&', '=', '+', '%', 'a&', '%41=%42&', 'a+=+b&', '%F0%9F%98%80', 'é', 'audience=&']

/** JSON that almost fills a token. */
export const costlyClaims: [name: string, json: string][] = [
  ['nested deeply', JSON.stringify(nest(2_900))],
  ['with many members', `{${list(1_000, (at) => `"m${at}":0`)}}`],
  ['with many members to be read twice', `{${list(700, (at) => `"\\u0061${at}":0`)}}`],
  ['with a long list', JSON.stringify(Array(5_500).fill(1))],
  ['with a long text', JSON.stringify('\\"'.repeat(2_800))],
  ['with long numbers', `[${list(35, () => '9'.repeat(300))}]`],
]

function list(count: number, entry: (at: number) => string): string {
  return Array.from({ length: count }, (_, at) => entry(at)).join()
}
