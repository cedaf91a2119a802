// What admins send about upstreams: the shapes of the inputs, and the columns that an exchange sets.
import { isAbsolute } from 'node:path'
import type { CredentialExchange } from '../../../db/schema/credential-exchange.ts'
import type { Upstream as UpstreamRow } from '../../../db/schema/upstream-schema.ts'
import { Fault } from '../../fault.ts'
import { type } from '../../values/shape.ts'
import { referenceShape } from '../../values/shapes.ts'
import { given } from '../kinds/fields.ts'
import { upstreamFields } from '../kinds/upstream.ts'
import type { exchangeShape } from '../kinds/upstream-shapes.ts'

export const addInput = type({ '+': 'reject', ...given(upstreamFields, 'create') })

export const updateInput = type({ '+': 'reject', ...given(upstreamFields, 'change'), upstream: referenceShape })

/** What may be changed over HTTP: how much an upstream gets, and of which models. Where prompts and credentials go is not among it. */
const { models, priority, weight, max_running, affinity, probe_path, probe_seconds, ...others } = upstreamFields
const { send_priority, send_fairness_id, first_byte_seconds, idle_seconds } = others
const tuned = {
  ...{ models, priority, weight, max_running, affinity, probe_path, probe_seconds },
  ...{ send_priority, send_fairness_id, first_byte_seconds, idle_seconds },
} as const
export const tuneInput = type({
  '+': 'reject',
  ...given(tuned, 'change'),
  upstream: referenceShape,
  'if_match?': 'string',
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
