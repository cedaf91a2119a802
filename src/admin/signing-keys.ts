// Admin operations on the keys that sign access tokens (decisions §5): which there are, and a new one in place of the old.

import type { SigningKey as SigningKeyRow } from '../../db/schema.ts'
import {
  insertSigningKey,
  listSigningKeys,
  retireOtherSigningKeys,
  revokeOtherSigningKeys,
} from '../../db/signing-keys.ts'
import { Fault } from '../fault.ts'
import { readMasterKey } from '../federation/master-key.ts'
import {
  createSigningKey,
  publicationMilliseconds,
  retirementMilliseconds,
  signingKeyState,
} from '../federation/signing-keys.ts'
import { commit } from '../registry.ts'
import { type } from '../shape.ts'
import { type OperationContext, operation } from './operation.ts'
import { timeOf } from './references.ts'

const listInput = type({ '+': 'reject' })
const rotateInput = type({ '+': 'reject', 'at_once?': 'boolean', 'revoke?': 'boolean' })

export const signingKeyOperations = {
  'signing_keys.list': operation(listInput, async (context) => {
    const rows = await listSigningKeys(context.orm)
    return { data: rows.map((row) => show(row, context.now())) }
  }),
  'signing_keys.rotate': operation(rotateInput, rotate),
}

/**
 * A new key, published now. It signs once every verifier has had the time to see it, and the others stay published until the last
 * token they signed has expired. `at_once`: it signs from now on. `revoke`: the others end now, and with them every token they signed.
 */
async function rotate(context: OperationContext, { at_once = false, revoke = false }: typeof rotateInput.infer) {
  const { orm, now } = context
  const waiting = (await listSigningKeys(orm)).find((row) => signingKeyState(row, now()) === 'next')
  const isAtOnce = at_once || revoke
  if (waiting !== undefined && !isAtOnce)
    throw new Fault('conflict', `The key ${waiting.id} takes over at ${timeOf(waiting.activeAt)} already`)
  const masterKey = await readMasterKey(context.config.masterKey, { create: false })
  const row = await createSigningKey(masterKey, now(), isAtOnce ? now() : now() + publicationMilliseconds)
  const ending = revoke
    ? revokeOtherSigningKeys(orm, row.id, now())
    : retireOtherSigningKeys(orm, row.id, row.activeAt + retirementMilliseconds)
  await commit(context, [insertSigningKey(orm, row), ending], [{ kind: 'signing_key', id: row.id }])
  await context.signingKeys?.load(await listSigningKeys(orm))
  return show(row, now())
}

function show(row: SigningKeyRow, now: number) {
  return {
    id: row.id,
    algorithm: row.algorithm,
    state: signingKeyState(row, now),
    created_at: timeOf(row.createdAt),
    active_at: timeOf(row.activeAt),
    retired_at: timeOf(row.retiredAt),
  }
}
