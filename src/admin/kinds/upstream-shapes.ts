// The rules of the values of an upstream that have more than a type, and the forms in which they are stored and shown.

import type { CredentialExchange } from '../../../db/schema/credential-exchange.ts'
import { Fault } from '../../fault.ts'
import { type HeaderDirection, headerProblem } from '../../inference/upstream/headers.ts'
import { upstreamHeadersMax, urlCharactersMax } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import { claimValueShape, textCheckedLater, textShape } from '../../values/shapes.ts'
import type { StoredForm } from './fields.ts'

const pathCharactersMax = 1_024

/** Must be written as it is used, so that an admin sees where requests go. An error does not quote it, since it may contain a credential. */
export const upstreamUrlShape = type('string').narrow((text, context) => {
  const url = URL.canParse(text) && text.length <= urlCharactersMax ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || /[?#@]/.test(text)) {
    const expected = 'an http:// or https:// address without credentials, query or fragment'
    return context.reject({ expected, actual: '' })
  }
  return withoutSlash(text) === withoutSlash(url.href) || context.mustBe(`written as ${withoutSlash(url.href)}`)
})

/** It goes into a header of every request. An error does not quote it, unlike those of other shapes. */
export const credentialShape = type('unknown')
  .narrow(
    (value, context) =>
      value === null ||
      (typeof value === 'string' && /^[\x21-\x7e]{1,4096}$/.test(value)) ||
      context.reject({
        expected: 'at most 4096 characters of printable ASCII without spaces, on one line',
        actual: '',
      }),
  )
  .as<string | null>()

/** Printable ASCII without a query: it is the end of a URL. */
export const probePathShape = type('string').narrow(
  (text, context) =>
    (text.length <= pathCharactersMax && /^\/[\x21-\x7e]*$/.test(text) && !/[?#\\]|\/\.{1,2}(?:\/|$)/.test(text)) ||
    context.mustBe('a path such as /health, without query, fragment or dots'),
)

export const headersShape = type('string').array().atMostLength(upstreamHeadersMax).or('null')

export const exchangeShape = type({
  '+': 'reject',
  token_file: textShape(1, pathCharactersMax),
  'url?': textCheckedLater(
    urlCharactersMax,
    'The token endpoint (RFC 8693); by default that of a Latchkey at the base URL',
  ).or('null'),
  'policy?': claimValueShape.configure({ says: 'The `federation_policy_id` at the other Latchkey' }).or('null'),
  'audience?': claimValueShape.or('null'),
  'scope?': claimValueShape.or('null'),
})

export function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '')
}

const time = type('string').configure({ format: 'date-time' })
export const probeShape = type({
  ok: 'boolean',
  at: time,
  milliseconds: 'number.integer',
  problem: 'string | null',
})
/** `model` is null where the whole upstream rests. */
export const restShape = type({ model: 'string | null', since: time, until: time })

/** As it is sent. */
export function showExchange(exchange: unknown): object {
  const { tokenFile, url, policy, audience, scope } = exchange as CredentialExchange
  return { token_file: tokenFile, url, policy, audience, scope }
}

export function omitNulls(value: unknown): object {
  return Object.fromEntries(Object.entries(value as object).filter(([, member]) => member !== null))
}

/** In lower case, each once. Null is the same as none. */
export function storedHeaders(doing: HeaderDirection): StoredForm {
  const toColumn = (value: unknown) => {
    const names = (value ?? []) as string[]
    const problem = names.map((name) => headerProblem(name, doing)).find((found) => found !== undefined)
    if (problem !== undefined) throw new Fault('invalid', problem)
    return [...new Set(names.map((name) => name.toLowerCase()))]
  }
  return { toColumn, toShown: (names) => names }
}
