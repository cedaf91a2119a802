// Upstreams and webhooks as what holds a text that the master key encrypts.
import { updateUpstream } from '../../db/tables/upstreams.ts'
import { updateWebhook } from '../../db/tables/webhooks.ts'
import type { Statement } from '../../db/write/rows.ts'
import { Fault } from '../fault.ts'
import { openCredential } from '../inference/upstream/credentials.ts'
import { shellWord } from '../runtime/file-access.ts'
import type { Needs } from './operation/context.ts'

/** An upstream or a webhook: what has a text that the master key encrypts. */
export type Holder = {
  kind: 'upstream' | 'webhook'
  id: string
  name: string
  credentialEncrypted: string | null
  update: (change: { credentialEncrypted: string | null; updatedAt?: number }) => Statement
}

/** Those that have one. */
export function withCredential({ registry, orm }: Needs<'registry' | 'orm'>): Holder[] {
  const upstreams = [...registry.upstreams.values()].map(
    (row): Holder => ({ ...row, kind: 'upstream', update: (change) => updateUpstream(orm, row.id, change) }),
  )
  const webhooks = [...registry.webhooks.values()].map(
    (row): Holder => ({ ...row, kind: 'webhook', update: (change) => updateWebhook(orm, row.id, change) }),
  )
  return [...upstreams, ...webhooks].filter(({ credentialEncrypted }) => credentialEncrypted !== null)
}

/** @throws Fault `configuration` if the key does not fit */
export async function openOrRefuse(key: CryptoKey, { kind, id, name, credentialEncrypted }: Holder): Promise<string> {
  try {
    return await openCredential(key, id, credentialEncrypted ?? '')
  } catch (cause) {
    throw new Fault(
      'configuration',
      `The ${kind === 'upstream' ? 'credential' : 'secret'} of the ${kind} ${JSON.stringify(name)} cannot be decrypted with the master key; set it again or remove it first`,
      {
        cause,
        hint:
          kind === 'upstream'
            ? `: latchkey upstreams update ${shellWord(name)} --credential-file FILE, or --no-credential-file`
            : `: latchkey webhooks update ${shellWord(name)} --secret-file FILE`,
      },
    )
  }
}
