// Whether a document changes a saved secret, which is compared and never shown.
import { listSigningKeys } from '../../../db/tables/signing-keys.ts'
import type { Issuer } from '../../federation/issuer/issuer.ts'
import { openCredential } from '../../inference/upstream/credentials.ts'
import { openMasterKey } from '../../tokens/keyring.ts'
import { pageSecretColumn } from '../issuers/page-client.ts'
import type { Needs } from '../operation/context.ts'

/** A secret that the document does not name stays. `sealed`: the saved one, of the row with this id. */
export async function isOtherSecret(
  { config, orm }: Needs<'config' | 'orm'>,
  { id, sealed }: { id: string; sealed: string | null },
  secret: string | null | undefined,
): Promise<boolean> {
  if (secret === undefined) return false
  if (secret === null || sealed === null) return secret !== sealed
  const masterKey = await openMasterKey(config.masterKey, await listSigningKeys(orm))
  return (await openCredential(masterKey, id, sealed)) !== secret
}

/** The secret of the client of the page, in the columns of an issuer, and as a plan shows that it changes. */
export async function pageSecretOf(
  context: Needs<'config' | 'orm'>,
  id: string,
  before: Pick<Issuer, 'pageSecretEncrypted'> | undefined,
  wanted: string | null | undefined,
): Promise<{ columns: object; entry: object }> {
  const { pageSecretEncrypted = null } = before ?? {}
  const isChanged = await isOtherSecret(context, { id, sealed: pageSecretEncrypted }, wanted)
  if (!isChanged) return { columns: { pageSecretEncrypted }, entry: {} }
  return { columns: await pageSecretColumn(context, id, wanted), entry: { page_secret: 'changed' } }
}
