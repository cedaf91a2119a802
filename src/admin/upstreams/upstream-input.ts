// What admins send about upstreams: the shapes of the inputs, and the columns that headers set.
import type { Upstream as UpstreamRow } from '../../../db/schema.ts'
import { Fault } from '../../fault.ts'
import { type Doing, headerProblem } from '../../inference/upstream/headers.ts'
import {
  issuerCaCharactersMax,
  upstreamHeadersMax,
  upstreamPriorityMax,
  upstreamSecondsMax,
  urlCharactersMax,
} from '../../limits.ts'
import { type } from '../../values/shape.ts'
import { modelPatternsShape, nameShape, referenceShape } from '../../values/shapes.ts'

const seconds = `1 <= number.integer <= ${upstreamSecondsMax}` as const

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
const credentialShape = type('unknown')
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

const headersShape = type('string').array().atMostLength(upstreamHeadersMax).or('null')

export const upstreamFields = {
  'credential?': credentialShape,
  'models?': modelPatternsShape,
  'priority?': `0 <= number.integer <= ${upstreamPriorityMax}`,
  'ca_pem?': `string <= ${issuerCaCharactersMax} | null`,
  'first_byte_seconds?': seconds,
  'idle_seconds?': seconds,
  'forward_headers?': headersShape,
  'return_headers?': headersShape,
} as const

export const addInput = type({ '+': 'reject', ...upstreamFields, name: nameShape, base_url: upstreamUrlShape })

export const updateInput = type({
  '+': 'reject',
  ...upstreamFields,
  upstream: referenceShape,
  'name?': nameShape,
  'base_url?': upstreamUrlShape,
})

export const oneInput = type({ '+': 'reject', upstream: referenceShape })

export const checkInput = type({ '+': 'reject', 'upstream?': referenceShape })

type Headers = { forward_headers?: string[] | null; return_headers?: string[] | null }

export function headerColumns({ forward_headers, return_headers }: Headers): Partial<UpstreamRow> {
  return {
    ...(forward_headers === undefined ? {} : { forwardHeaders: readHeaders(forward_headers ?? [], 'forwarded') }),
    ...(return_headers === undefined ? {} : { returnHeaders: readHeaders(return_headers ?? [], 'returned') }),
  }
}

function readHeaders(names: string[], doing: Doing): string[] {
  const problem = names.map((name) => headerProblem(name, doing)).find((found) => found !== undefined)
  if (problem !== undefined) throw new Fault('invalid', problem)
  return [...new Set(names.map((name) => name.toLowerCase()))]
}

export function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '')
}
