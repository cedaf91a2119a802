// Admin operations on the keys that sign access tokens (reference: Signing keys): list them, and rotate to a new one.

import type { SigningKey as SigningKeyRow } from '../../db/schema/schema.ts'
import { endSigningKeys, insertSigningKey, listSigningKeys } from '../../db/tables/signing-keys.ts'
import { Fault } from '../fault.ts'
import { openMasterKey } from '../tokens/keyring.ts'
import {
  createSigningKey,
  isDue,
  publicationMilliseconds,
  retirementMilliseconds,
  signingKeyState,
  signingKeyStates,
} from '../tokens/signing-keys.ts'
import { type } from '../values/shape.ts'
import { type ChangeContext, commit } from './operation/commit.ts'
import type { Needs } from './operation/context.ts'
import { operation } from './operation/operation.ts'
import { timeOf } from './operation/references.ts'

const listInput = type({ '+': 'reject' })
const rotateInput = type({ '+': 'reject', 'at_once?': 'boolean', 'revoke?': 'boolean' })

export const signingKeyResponse = type({
  id: 'string',
  algorithm: 'string',
  state: type.enumerated(...signingKeyStates),
  created_at: 'string',
  active_at: 'string',
  retired_at: 'string | null',
  revoked: 'boolean',
}).configure({ title: 'SigningKey' })

export const signingKeyOperations = {
  'signing_keys.list': operation(listInput, listKeys),
  'signing_keys.rotate': operation(rotateInput, rotate, { mutates: true }),
}

async function listKeys(context: Needs<'orm' | 'now'>) {
  const rows = await listSigningKeys(context.orm)
  return { data: rows.map((row) => show(row, context.now())) }
}

/**
 * Publishes a new key now. It signs as soon as every verifier can have fetched it, and the others stay published until the last token they
 * signed has expired. `at_once`: it signs now, and a waiting key never does. `revoke`: the others end now, which invalidates every token
 * they signed.
 * @throws Fault `conflict` while a key waits, `configuration` when the master key is not the one that belongs to the database
 */
async function rotate(
  context: ChangeContext & Needs<'config' | 'signingKeys' | 'log'>,
  { at_once = false, revoke = false }: typeof rotateInput.infer,
) {
  const { orm } = context
  const now = context.now()
  const rows = await listSigningKeys(orm)
  const waiting = rows.find((row) => signingKeyState(row, now) === 'next' && isDue(row, now))
  const isAtOnce = at_once || revoke
  if (waiting !== undefined && !isAtOnce)
    throw new Fault(
      'conflict',
      `The key ${waiting.id} is already due to start signing at ${timeOf(waiting.activeAt)}; wait for it, or use --at-once`,
    )
  // With keys under different master keys, no master key would open the database.
  const masterKey = await openMasterKey(context.config.masterKey, rows)
  const row = await createSigningKey(masterKey, now, isAtOnce ? now : now + publicationMilliseconds)
  const end = revoke ? now : row.activeAt + retirementMilliseconds
  const ending = rows
    .filter(({ retiredAt, revoked }) => !revoked && (retiredAt === null || retiredAt > end))
    .map(({ id }) => id)
  await commit(
    context,
    [insertSigningKey(orm, row), endSigningKeys(orm, ending, { retiredAt: end, revoked: revoke })],
    [row.id, ...ending].map((id) => ({ kind: 'signing_key', id })),
    async () => context.signingKeys?.load(await listSigningKeys(orm)),
  )
  if (context.signingKeys !== undefined) context.log('info', 'signing_key_rotated', { id: row.id })
  return show(row, context.now())
}

function show(row: SigningKeyRow, now: number): typeof signingKeyResponse.infer {
  return {
    id: row.id,
    algorithm: row.algorithm,
    state: signingKeyState(row, now),
    created_at: timeOf(row.createdAt),
    active_at: timeOf(row.activeAt),
    retired_at: timeOf(row.retiredAt),
    revoked: row.revoked,
  }
}
