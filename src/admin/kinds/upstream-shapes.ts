// The rules of the values of an upstream that have more than a type.

import { upstreamHeadersMax, urlCharactersMax } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import { claimValueShape, textCheckedLater, textShape } from '../../values/shapes.ts'

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

export const headersShape = type('string').array().atMostLength(upstreamHeadersMax).or('null')

const pathCharactersMax = 1_024

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
/** `model` is null where the whole upstream rests. */
export const restShape = type({ model: 'string | null', since: time, until: time })
