// What admins send about upstreams: the shapes of the inputs, and the columns that headers and exchanges set.
import { isAbsolute } from 'node:path'
import type { CredentialExchange } from '../../../db/schema/credential-exchange.ts'
import type { Upstream as UpstreamRow } from '../../../db/schema/schema.ts'
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
import {
  claimValueShape,
  modelPatternsShape,
  nameShape,
  referenceShape,
  textCheckedLater,
  textShape,
} from '../../values/shapes.ts'

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

const pathCharactersMax = 1_024

const exchangeShape = type({
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

export const upstreamFields = {
  'credential?': credentialShape,
  'credential_exchange?': exchangeShape
    .configure({ says: 'Exchanges the token in a file of the server for the credential' })
    .or('null'),
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

type ExchangeInput = { credential?: string | null; credential_exchange?: typeof exchangeShape.infer | null }

/**
 * The column of an exchange that an input sets. Another credential removes it. `baseUrl` is that of the upstream after the change.
 * @throws Fault `invalid` if the token would cross a network unencrypted, or two credentials are given
 */
export function exchangeColumn(
  { credential, credential_exchange: exchange }: ExchangeInput,
  baseUrl: string,
  before: CredentialExchange | null = null,
): Pick<Partial<UpstreamRow>, 'credentialExchange' | 'credentialEncrypted'> {
  if (exchange === undefined && credential === undefined && before?.url != null) checkExchangeUrl(before.url, baseUrl)
  if (exchange == null) return exchange === null || typeof credential === 'string' ? { credentialExchange: null } : {}
  if (typeof credential === 'string')
    throw new Fault('invalid', 'An upstream has one credential: set credential or credential_exchange')
  const { token_file: tokenFile, url = null, policy = null, audience = null, scope = null } = exchange
  if (!isAbsolute(tokenFile))
    throw new Fault('invalid', `The token file ${JSON.stringify(tokenFile)} must be an absolute path`)
  if (url !== null) checkExchangeUrl(url, baseUrl)
  return { credentialExchange: { tokenFile, url, policy, audience, scope }, credentialEncrypted: null }
}

/** Only the upstream itself may be asked without TLS: it gets the credential that way anyway. */
function checkExchangeUrl(text: string, baseUrl: string): void {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const rule = 'use an https:// URL without credentials and fragment, or a URL at the host of the upstream'
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && url.origin === new URL(baseUrl).origin)
  if (!isSafe || /[@#\s]/.test(text)) throw new Fault('invalid', `The URL of the token endpoint is not valid: ${rule}`)
}

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
