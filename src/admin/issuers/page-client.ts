// The client of an issuer as which the admin page signs people in: how it proves itself, and its secret.
import type { Issuer as IssuerRow } from '../../../db/schema/schema.ts'
import { listSigningKeys } from '../../../db/tables/signing-keys.ts'
import { Fault } from '../../fault.ts'
import { sealCredential } from '../../inference/upstream/credentials.ts'
import { openMasterKey } from '../../tokens/keyring.ts'
import type { Needs } from '../operation/context.ts'

/** @throws Fault `invalid` for a secret without use, or a use without a secret */
export function checkPageClient({ pageClientId, pageAuthentication, pageSecretEncrypted }: IssuerRow): void {
  if (pageAuthentication === 'secret' && pageSecretEncrypted === null)
    throw new Fault('invalid', 'page_authentication is secret, and there is no secret: set page_secret', {
      hint: ' (--page-secret-file)',
    })
  if (pageAuthentication !== 'secret' && pageSecretEncrypted !== null)
    throw new Fault('invalid', 'The page has a secret that it does not use: set page_authentication to secret', {
      hint: ' (--page-authentication secret), or remove it (--no-page-secret-file)',
    })
  if (pageAuthentication !== 'none' && pageClientId === null)
    throw new Fault('invalid', 'page_authentication is of no use without a client: set page_client_id', {
      hint: ' (--page-client-id)',
    })
}

/** The sealed secret, if the input names one; null removes it. */
export async function pageSecretColumn(
  { config, orm }: Needs<'config' | 'orm'>,
  id: string,
  secret: string | null | undefined,
): Promise<Pick<IssuerRow, 'pageSecretEncrypted'> | object> {
  if (secret === undefined) return {}
  if (secret === null) return { pageSecretEncrypted: null }
  const masterKey = await openMasterKey(config.masterKey, await listSigningKeys(orm))
  return { pageSecretEncrypted: await sealCredential(masterKey, id, secret.trim()) }
}
