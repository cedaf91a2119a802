// What admins send about issuers: the shapes of the inputs, where the keys come from, and private certificates.
import { X509Certificate } from 'node:crypto'
import type { Issuer as IssuerRow } from '../../../db/schema/schema.ts'
import { Fault } from '../../fault.ts'
import { urlProblem } from '../../federation/issuer/issuer-url.ts'
import { writeKeySet } from '../../federation/issuer/key-set.ts'
import { readStoredSequence } from '../../federation/issuer/stored-keys.ts'
import { issuerCaCharactersMax } from '../../limits.ts'
import { splitBundle } from '../../values/certificates.ts'
import { type } from '../../values/shape.ts'
import { referenceShape, unusedInput } from '../../values/shapes.ts'
import { given } from '../kinds/fields.ts'
import { issuerFields } from '../kinds/issuer.ts'
import { caShape, issuerUrlShape, urlShape } from '../kinds/issuer-shapes.ts'
import type { Needs } from '../operation/context.ts'
import { listPage } from '../operation/list-page.ts'
import { organizationInput } from '../operation/references.ts'
import { readPastedKeySet } from './pasted-key-set.ts'

/** A request names at most one of two key sources. */
const twoSources = { required: ['jwks_url', 'jwks'] }

const withDiscovery = [{ required: ['discovery', 'jwks_url'] }, { required: ['discovery', 'jwks'] }]

export const addInput = type({ '+': 'reject', ...organizationInput, ...given(issuerFields, 'create') }).configure({
  not: twoSources,
})

export const updateInput = type({
  '+': 'reject',
  ...organizationInput,
  ...given(issuerFields, 'change'),
  issuer: referenceShape,
  'if_match?': 'string',
}).configure({ not: { anyOf: [twoSources, ...withDiscovery] }, minProperties: 1 })

export const verifyInput = type({
  '+': 'reject',
  ...organizationInput,
  'issuer?': referenceShape,
  'issuer_url?': issuerUrlShape,
  'jwks_url?': urlShape,
  'jwks?': 'unknown',
  'ca_pem?': caShape,
}).configure({ not: twoSources, anyOf: [{ required: ['issuer'] }, { required: ['issuer_url'] }] })

export const listInput = type({ '+': 'reject', ...organizationInput, ...unusedInput, ...listPage })

export const oneInput = type({ '+': 'reject', ...organizationInput, issuer: referenceShape })

export type KeySource = Pick<IssuerRow, 'keySource' | 'jwksUrl' | 'jwks'>

export const byDiscovery: KeySource = { keySource: 'discovery', jwksUrl: null, jwks: null }

export type KeySourceInput = { jwks_url?: string; jwks?: unknown; discovery?: true }

/** The key source that an input names, ready to be saved; empty if it names none. */
export function readKeySource(context: Needs<'config'>, input: KeySourceInput): Partial<KeySource> {
  const source = nameKeySource(context, input)
  if (typeof source.jwks !== 'string') return source
  return { ...source, jwks: writeKeySet(readPastedKeySet(source.jwks), readStoredSequence(source.jwks)) }
}

/** The same with a pasted key set unchanged, for a test that saves nothing. */
export function nameKeySource({ config }: Needs<'config'>, input: KeySourceInput): Partial<KeySource> {
  const named = [input.jwks_url, input.jwks, input.discovery].filter((source) => source !== undefined)
  if (named.length > 1)
    throw new Fault('invalid', 'An issuer has one key source; set only one of discovery, jwks_url and jwks')
  if (input.discovery) return byDiscovery
  if (input.jwks_url !== undefined) {
    const objection = urlProblem(input.jwks_url, config.insecureIssuers)
    if (objection !== undefined)
      throw new Fault('invalid', `The JWKS URL ${JSON.stringify(input.jwks_url)} ${objection}`)
    return { keySource: 'jwks_url', jwksUrl: input.jwks_url, jwks: null }
  }
  return input.jwks === undefined ? {} : { keySource: 'jwks', jwksUrl: null, jwks: JSON.stringify(input.jwks) }
}

/** @throws Fault `invalid` unless the text is certificates in PEM. Whether one signs for the issuer shows at the first fetch. */
export function checkCertificates(pem: string): void {
  if (pem.length > issuerCaCharactersMax)
    throw new Fault(
      'invalid',
      `The CA must have at most ${issuerCaCharactersMax} characters; give only the certificates that sign for this issuer, not a whole bundle`,
    )
  const blocks = splitBundle(pem)
  try {
    if (blocks.length === 0 || /PRIVATE KEY/.test(pem)) throw new Error('Not a bundle')
    for (const block of blocks) new X509Certificate(block)
  } catch (cause) {
    throw new Fault(
      'invalid',
      'The CA must be one or more certificates in PEM; remove everything else, private keys above all',
      { cause },
    )
  }
}
