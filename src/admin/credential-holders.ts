// Upstreams, webhooks and issuers as what holds a text that the master key encrypts.
import { updateIssuer } from '../../db/tables/issuers.ts'
import { updateUpstream } from '../../db/tables/upstreams.ts'
import { updateWebhook } from '../../db/tables/webhooks.ts'
import type { Statement } from '../../db/write/rows.ts'
import { Fault } from '../fault.ts'
import { openCredential } from '../inference/upstream/credentials.ts'
import { shellWord } from '../runtime/file-access.ts'
import type { Needs } from './operation/context.ts'

/** `save` keeps another ciphertext, and `drop` none. `what`: what the text is. `again`: how it is set again. */
export type Holder = {
  kind: 'upstream' | 'webhook' | 'issuer'
  id: string
  name: string
  sealed: string | null
  what: 'credential' | 'secret' | 'page secret'
  again: string
  save: (sealed: string) => Statement
  drop: (at: number) => Statement
}

/** Those that have one. */
export function withCredential({ registry, orm }: Needs<'registry' | 'orm'>): Holder[] {
  const upstreams = [...registry.upstreams.values()].map(
    ({ id, name, credentialEncrypted: sealed }): Holder => ({
      ...{ kind: 'upstream', id, name, sealed, what: 'credential' },
      again: `latchkey upstreams update ${shellWord(name)} --credential-file FILE, or --no-credential-file`,
      save: (text) => updateUpstream(orm, id, { credentialEncrypted: text }),
      drop: (updatedAt) => updateUpstream(orm, id, { credentialEncrypted: null, updatedAt }),
    }),
  )
  const webhooks = [...registry.webhooks.values()].map(
    ({ id, name, credentialEncrypted: sealed }): Holder => ({
      ...{ kind: 'webhook', id, name, sealed, what: 'secret' },
      again: `latchkey webhooks update ${shellWord(name)} --secret-file FILE`,
      save: (text) => updateWebhook(orm, id, { credentialEncrypted: text }),
      drop: (updatedAt) => updateWebhook(orm, id, { credentialEncrypted: null, updatedAt }),
    }),
  )
  const issuers = [...registry.issuers.values()].map(
    ({ id, name, pageSecretEncrypted: sealed }): Holder => ({
      ...{ kind: 'issuer', id, name, sealed, what: 'page secret' },
      again: `latchkey issuers update ${shellWord(name)} --page-secret-file FILE`,
      save: (text) => updateIssuer(orm, id, { pageSecretEncrypted: text }),
      drop: (updatedAt) => updateIssuer(orm, id, { pageSecretEncrypted: null, pageAuthentication: 'none', updatedAt }),
    }),
  )
  return [...upstreams, ...webhooks, ...issuers].filter(({ sealed }) => sealed !== null)
}

/** @throws Fault `configuration` if the key does not fit */
export async function openOrRefuse(key: CryptoKey, { kind, id, name, sealed, what, again }: Holder): Promise<string> {
  try {
    return await openCredential(key, id, sealed ?? '')
  } catch (cause) {
    throw new Fault(
      'configuration',
      `The ${what} of the ${kind} ${JSON.stringify(name)} cannot be decrypted with the master key; set it again or remove it first`,
      { cause, hint: `: ${again}` },
    )
  }
}
