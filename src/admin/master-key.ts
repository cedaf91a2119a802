// The admin operation that replaces the master key. The database commits in one step and a key file is renamed in another, so the new key
// is written as `.next` before the commit. Whichever key opens the database after a crash is on disk, and `keyring` finds it.

import type { SigningKey as SigningKeyRow } from '../../db/schema/schema.ts'
import type { TouchedRow } from '../../db/tables/admin-changes.ts'
import { listAuditKeys, retireAuditKeys, updateAuditPrivateKey } from '../../db/tables/audit-checkpoints.ts'
import { listNodes } from '../../db/tables/nodes.ts'
import { dropPrivateKey, insertSigningKey, listSigningKeys, updatePrivateKey } from '../../db/tables/signing-keys.ts'
import type { Statement } from '../../db/write/rows.ts'
import { Fault } from '../fault.ts'
import { sealCredential } from '../inference/upstream/credentials.ts'
import { findMasterKey, hasPrivateKey, keyThatOpens } from '../tokens/keyring.ts'
import type { MasterKeySource } from '../tokens/master-key.ts'
import { decrypt, encrypt, importMasterKey } from '../tokens/master-key.ts'
import {
  installNextKeyFile,
  isMasterKey,
  newMasterKey,
  oldPathOf,
  readNextKeyFile,
  writeNextKeyFile,
} from '../tokens/master-key-file.ts'
import { createSigningKey } from '../tokens/signing-keys.ts'
import { type } from '../values/shape.ts'
import { type Holder, openOrRefuse, withCredential } from './credential-holders.ts'
import { type ChangeContext, commit } from './operation/commit.ts'
import type { Needs } from './operation/context.ts'
import { operation } from './operation/operation.ts'

/** The error does not quote the key. */
const keyShape = type('unknown')
  .narrow(
    (value, context) =>
      (typeof value === 'string' && isMasterKey(value)) || context.reject({ expected: '64 hex digits', actual: '' }),
  )
  .as<string>()
const replaceInput = type({ '+': 'reject', 'lost?': 'boolean', 'dry_run?': 'boolean', 'new_key?': keyShape })
type Input = typeof replaceInput.infer

/** The steps, in order. If the process ends between two steps or within one, the database still opens. */
export type Replacement = { steps: (() => unknown)[]; answer: ReplacementResponse }
export type ReplacementResponse = ReturnType<typeof responseOf>

export const masterKeyOperations = {
  'master_key.replace': operation(replaceInput, replaceMasterKey, { mutates: true }),
}

type ReplacementContext = ChangeContext & Needs<'config' | 'database'>

async function replaceMasterKey(context: ReplacementContext & Needs<'signingKeys'>, input: typeof replaceInput.infer) {
  const { steps, answer } = await planReplacement(context, input)
  if (input.dry_run === true) return { ...answer, replaced: false, dry_run: true }
  for (const step of steps) await step()
  return answer
}

/**
 * Without `lost`, everything encrypted is encrypted again under the new key. With it, everything that only the old key decrypts is removed:
 * signing keys end now, which invalidates every access token, upstreams lose their credentials, webhooks and issuers their secrets. An interrupted replacement is finished.
 * @throws Fault `conflict` in a server, or for `lost` when the key opens the database; `configuration` when no key does; `invalid` without a new key
 */
export async function planReplacement(
  context: ReplacementContext & Needs<'signingKeys'>,
  input: Input,
): Promise<Replacement> {
  if (context.signingKeys !== undefined)
    throw new Fault(
      'conflict',
      'The server uses the master key while it runs. Stop the server first, then run this again',
    )
  await refuseLiveNodes(context)
  const source = context.config.masterKey
  const rows = await listSigningKeys(context.orm)
  const found = await findMasterKey(source, rows)
  const given = input.new_key?.toLowerCase()
  if ('fault' in found) {
    if (given !== undefined && (await keyThatOpens(given, rows)) !== undefined && source.kind === 'value')
      return nothingToDo(context, {})
    if (input.lost !== true || !found.isLost) throw found.fault
    return replaceLost(context, rows, given)
  }
  if (found.isFinished && given === undefined) return nothingToDo(context, { finished: true })
  if (input.lost === true)
    throw new Fault('conflict', 'The master key is not lost, since it opens this database: run this without --lost')
  const hex = given ?? draftKey(source)
  if (hex === undefined)
    throw new Fault(
      'invalid',
      'The master key is the value of LATCHKEY_MASTER_KEY: give the new one with LATCHKEY_NEW_MASTER_KEY or --new-key-file',
    )
  if (hex === found.hex) return nothingToDo(context, { finished: found.isFinished })
  return replaceKnown(context, rows, { oldKey: found.key, hex })
}

async function refuseLiveNodes({ database, orm }: Needs<'database' | 'orm'>): Promise<void> {
  if (database.kind === 'file') return
  const live = (await listNodes(orm)).filter(({ isLive }) => isLive).map(({ name }) => name)
  if (live.length > 0)
    throw new Fault('conflict', `These nodes use the master key while they run: ${live.join(', ')}. Stop them first`)
}

/** The key that an interrupted run has written, or a new key; undefined if the administrator keeps the key elsewhere. */
function draftKey(source: MasterKeySource): string | undefined {
  return source.kind === 'file' ? (readNextKeyFile(source.path) ?? newMasterKey()) : undefined
}

async function replaceKnown(
  context: ReplacementContext,
  rows: SigningKeyRow[],
  { oldKey, hex }: { oldKey: CryptoKey; hex: string },
): Promise<Replacement> {
  const { orm } = context
  const newKey = await importMasterKey(hex)
  const statements: Statement[] = []
  const held = rows.filter(hasPrivateKey)
  for (const { id, privateKeyEncrypted } of held) {
    const plain = await decrypt(oldKey, id, privateKeyEncrypted)
    statements.push(updatePrivateKey(orm, id, await encrypt(newKey, id, plain)))
  }
  const holders = withCredential(context)
  for (const holder of holders) {
    const text = await openOrRefuse(oldKey, holder)
    statements.push(holder.save(await sealCredential(newKey, holder.id, text)))
  }
  for (const { id, privateKeyEncrypted } of (await listAuditKeys(orm)).filter(hasPrivateKey)) {
    const plain = await decrypt(oldKey, id, privateKeyEncrypted)
    statements.push(updateAuditPrivateKey(orm, id, await encrypt(newKey, id, plain)))
  }
  const touched = touchedBy(
    held.map(({ id }) => id),
    holders,
  )
  const summary = { signing_keys_reencrypted: held.length, credentials_reencrypted: namesOf(holders) }
  return replacement(context, { hex, statements, touched }, summary)
}

async function replaceLost(
  context: ReplacementContext,
  rows: SigningKeyRow[],
  given: string | undefined,
): Promise<Replacement> {
  const { orm, now } = context
  const source = context.config.masterKey
  const hex = given ?? (source.kind === 'value' ? source.hex : (readNextKeyFile(source.path) ?? newMasterKey()))
  const at = now()
  const row = await createSigningKey(await importMasterKey(hex), at)
  const ended = rows.filter(hasPrivateKey)
  const holders = withCredential(context)
  const statements = [
    insertSigningKey(orm, row),
    // Times in the past stay.
    ...ended.map(({ id, retiredAt }) => dropPrivateKey(orm, id, Math.min(retiredAt ?? at, at))),
    ...holders.map(({ drop }) => drop(at)),
    // The audit log gets a new key with its next checkpoint.
    ...(await listAuditKeys(orm)).map(({ id }) => updateAuditPrivateKey(orm, id, '')),
    retireAuditKeys(orm, at),
  ]
  const touched = touchedBy([row.id, ...ended.map(({ id }) => id)], holders)
  const summary = {
    lost: true,
    signing_keys_ended: ended.length,
    credentials_dropped: namesOf(holders),
    signing_key: row.id,
  }
  return replacement(context, { hex, statements, touched }, summary)
}

type Change = { hex: string; statements: Statement[]; touched: TouchedRow[] }

/** A checkpoint moves the commit into the main file before the key file changes, so that it survives a power loss in between. */
function replacement(
  context: ReplacementContext,
  { hex, statements, touched }: Change,
  summary: Partial<ReplacementResponse>,
): Replacement {
  const { masterKey: source, databasePath, databaseServer } = context.config
  const database = [() => commit(context, statements, touched), () => context.database.checkpoint(false)]
  if (source.kind === 'value') return { steps: database, answer: responseOf(context, { ...summary, replaced: true }) }
  const { path } = source
  const owned = databaseServer === undefined ? databasePath : undefined
  return {
    steps: [() => writeNextKeyFile(path, hex, owned), ...database, () => installNextKeyFile(path)],
    answer: responseOf(context, { ...summary, replaced: true, previous_master_key_file: oldPathOf(path) ?? null }),
  }
}

function nothingToDo(context: Needs<'config'>, summary: Partial<ReplacementResponse>): Replacement {
  return { steps: [], answer: responseOf(context, summary) }
}

function responseOf({ config }: Needs<'config'>, summary: object) {
  return {
    replaced: false,
    /** Whether an interrupted replacement was completed. */
    finished: false,
    lost: false,
    dry_run: false,
    database: config.databasePath,
    master_key_file: config.masterKey.kind === 'file' ? config.masterKey.path : null,
    previous_master_key_file: null as string | null,
    signing_keys_reencrypted: 0,
    credentials_reencrypted: [] as string[],
    signing_keys_ended: 0,
    credentials_dropped: [] as string[],
    signing_key: null as string | null,
    ...summary,
  }
}

function touchedBy(signingKeyIds: string[], holders: Holder[]): TouchedRow[] {
  return [
    ...signingKeyIds.map((id) => ({ kind: 'signing_key' as const, id })),
    ...holders.map(({ kind, id }) => ({ kind, id })),
  ]
}

function namesOf(holders: Holder[]): string[] {
  return holders.map(({ name }) => name)
}
