// A policy whose target is a management key lets people sign in to the admin page with the role of that key. It issues no access tokens, so
// what bounds them has no meaning.
import type { Policy as PolicyRow } from '../../../db/schema/schema.ts'
import { Fault } from '../../fault.ts'
import type { Issuer } from '../../federation/issuer/issuer.ts'
import type { Key } from '../../keys/api-key.ts'
import { accessTokenLifetimeSecondsMax } from '../../limits.ts'
import { shellWord } from '../../runtime/file-access.ts'

/** What only an access token has. */
const ofAccessTokens = {
  max_lifetime_seconds: (row) => row.maxLifetimeSeconds === accessTokenLifetimeSecondsMax,
  replay_protection: (row) => !row.replayProtection,
  attribute_to: (row) => row.attributeTo === null,
  allowed_models: (row) => row.allowedModels === null,
  allowed_presets: (row) => row.allowedPresets === null,
} as const satisfies Record<string, (row: PolicyRow) => boolean>

/** Checks nothing of a policy for an inference key. @throws Fault `invalid` for a setting of access tokens, or an audience that no ID token of the page has */
export function checkSignInPolicy(
  row: PolicyRow,
  key: Pick<Key, 'name' | 'kind'> | undefined,
  issuer: Pick<Issuer, 'name' | 'pageClientId'> | undefined,
): void {
  if (key === undefined || key.kind === 'inference' || issuer === undefined) return
  const target = `the management key ${JSON.stringify(key.name)}`
  for (const [name, isUnset] of Object.entries(ofAccessTokens))
    if (!isUnset(row))
      throw new Fault(
        'invalid',
        `A policy for ${target} signs people in and issues no access tokens: leave out ${name}`,
      )
  if (issuer.pageClientId === null)
    throw new Fault(
      'invalid',
      `The issuer ${JSON.stringify(issuer.name)} has no client with which people sign in, which a policy for ${target} needs: set page_client_id of the issuer`,
      {
        hint: ` (latchkey issuers update ${shellWord(issuer.name)} --page-client-id ID)`,
      },
    )
  if (row.audience !== issuer.pageClientId)
    throw new Fault(
      'invalid',
      `The audience of a policy for ${target} must be ${JSON.stringify(issuer.pageClientId)}, the client with which people sign in at the issuer: an ID token is for its client`,
    )
}
