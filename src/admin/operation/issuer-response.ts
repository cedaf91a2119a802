// An issuer as operations show it, as a shape for the OpenAPI document.
import { type } from '../../values/shape.ts'
import { responseOf } from '../kinds/fields.ts'
import { issuerFields } from '../kinds/issuer.ts'
import { keyBundleResponse } from './bundle-responses.ts'
import { lastUseFields } from './last-use-response.ts'

export const issuerResponse = type({
  ...responseOf(issuerFields),
  key_bundle: keyBundleResponse.or('null'),
  ...lastUseFields,
  'warnings?': 'string[]',
}).configure({ title: 'Issuer' })
