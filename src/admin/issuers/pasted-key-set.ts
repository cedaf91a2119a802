// Reads a pasted key set, which must be small and contain only public keys. It does not know whether the set is saved or only tested.
import { Fault } from '../../fault.ts'
import { readKeySet, type VerificationKey } from '../../federation/issuer/key-set.ts'
import { issuerDocumentBytesMax } from '../../limits.ts'

/**
 * The usable keys of a set that is given as JSON.
 * @throws Fault `invalid` if the set is too large, contains anything private, or has no usable key
 */
export function readPastedKeySet(text: string): VerificationKey[] {
  if (Buffer.byteLength(text) > issuerDocumentBytesMax)
    throw new Fault('invalid', `The JWKS must be at most ${issuerDocumentBytesMax} bytes`)
  if (/"(d|p|q|dp|dq|qi|k)"\s*:/.test(text)) {
    throw new Fault(
      'invalid',
      'The JWKS contains a private or secret key: paste only public keys, and replace that key, since it is no longer secret',
    )
  }
  return readKeySet(JSON.parse(text))
}
