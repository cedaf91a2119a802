// Reads a key set that an admin pastes: bounded, and public. It does not know whether the set is to be saved or only looked at.
import { Fault } from '../fault.ts'
import { readKeySet, type VerificationKey } from '../federation/issuer/key-set.ts'
import { issuerDocumentBytesMax } from '../limits.ts'

/**
 * The usable keys of a set that is given as JSON.
 * @throws Fault `invalid` when it is too large, holds anything private, or no usable key
 */
export function readPastedKeySet(text: string): VerificationKey[] {
  if (Buffer.byteLength(text) > issuerDocumentBytesMax)
    throw new Fault('invalid', `The JWKS must be at most ${issuerDocumentBytesMax} bytes`)
  if (/"(d|p|q|dp|dq|qi|k)"\s*:/.test(text)) {
    throw new Fault(
      'invalid',
      'The JWKS holds a private or secret key; paste public keys only, and replace that key, since it is no longer secret',
    )
  }
  return readKeySet(JSON.parse(text))
}
