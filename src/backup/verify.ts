// Proves that a backup restores, on a scratch copy: every line is a fact that a restored server depends on.
import { createHash } from 'node:crypto'
import { createReadStream, existsSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { connect, letGo } from '../../db/file/connection.ts'
import { type Database, openDatabase } from '../../db/file/open.ts'
import { readSchemaTexts, readSchemaVersion, readTableFacts } from '../../db/read/facts.ts'
import type { OnProgress } from '../../db/read/slices.ts'
import { findDrift } from '../../db/read/usage-totals.ts'
import { latestSchema, migrations } from '../../db/schema/migrate.ts'
import { listSigningKeys } from '../../db/tables/signing-keys.ts'
import { describeError, Fault } from '../fault.ts'
import { refuseClosedDatabase } from '../runtime/file-access.ts'
import { mintAccessToken, verifyAccessToken } from '../tokens/access-token.ts'
import { findFittingKey } from '../tokens/keyring.ts'
import { importMasterKey, keyFileFault, type MasterKeySource } from '../tokens/master-key.ts'
import { masterKeyFingerprint, readKeyFile } from '../tokens/master-key-file.ts'
import { openSigningKeys, type SigningKeys } from '../tokens/signing-keys.ts'
import { type Manifest, readManifest } from './backup-file.ts'
import { checkSpace, megabytes } from './space.ts'

/** `detail` says what was found, and for a failed check what is wrong. After a failed check the others are skipped. */
export type BackupCheck = { check: string; result: 'ok' | 'failed' | 'skipped'; detail: string }

export type Verification = {
  file: string
  /** Where the copy is written. It stays there; it is complete when every check is ok. */
  scratch: string
  masterKey: MasterKeySource
  /** Accepts a backup whose master key is lost. */
  withoutMasterKey: boolean
  now: () => number
  onProgress?: OnProgress
}

/** What the earlier checks have found. */
type VerifiedParts = { manifest?: Manifest; database?: Database; signingKeys?: SigningKeys }
/** Gives what was found. @throws Fault or Error that says what is wrong */
type Examine = (verification: Verification, known: VerifiedParts) => Promise<string>

const examinations: [check: string, examine: Examine][] = [
  ['file', examineFile],
  ['digest', examineDigest],
  ['integrity', examineIntegrity],
  ['contents', examineContents],
  ['schema', examineSchema],
  ['budgets', examineBudgets],
]
const keyExaminations: [check: string, examine: Examine][] = [
  ['signing_keys', examineSigningKeys],
  ['probe_token', examineProbeToken],
  ['key_set', examineKeySet],
]

/** Every check with its result, in order. The scratch copy is closed afterward, and the process may keep a lock on it. */
export async function verifyBackup(
  verification: Verification,
): Promise<{ checks: BackupCheck[]; manifest?: Manifest }> {
  const known: VerifiedParts = {}
  const checks: BackupCheck[] = []
  let hasFailed = false
  for (const [check, examine] of [...examinations, ...keyExaminations]) {
    if (hasFailed) checks.push({ check, result: 'skipped', detail: 'an earlier check failed' })
    else if (verification.withoutMasterKey && keyExaminations.some(([name]) => name === check))
      checks.push({ check, result: 'skipped', detail: 'restored without the master key' })
    else {
      const made = await run(check, () => examine(verification, known))
      hasFailed = made.result === 'failed'
      checks.push(made)
    }
  }
  if (!hasFailed) {
    // Sessions that ended after the backup would live again.
    await known.database?.client.execute('delete from sessions')
    // What was signed after the backup is not here: the audit log begins a new epoch.
    await known.database?.client.execute('delete from log_epochs')
  }
  await known.database?.close()
  letGo()
  if (known.database !== undefined) rmSync(`${verification.scratch}-wal`, { force: true })
  return { checks, ...(known.manifest === undefined ? {} : { manifest: known.manifest }) }
}

async function run(check: string, examine: () => Promise<string>): Promise<BackupCheck> {
  try {
    return { check, result: 'ok', detail: await examine() }
  } catch (error) {
    return { check, result: 'failed', detail: error instanceof Fault ? error.message : describeError(error) }
  }
}

async function examineFile({ file }: Verification, known: VerifiedParts): Promise<string> {
  known.manifest = await readManifest(file)
  const { created_at, version, installation, master_key_fingerprint: key } = known.manifest
  return `${installation}, made at ${created_at} by version ${version}, master key ${key ?? 'unknown'}`
}

/** Copies and hashes in one pass. */
async function examineDigest(
  { file, scratch, onProgress }: Verification,
  { manifest }: VerifiedParts,
): Promise<string> {
  const { database_bytes: size, database_sha256: expected } = manifestOf(manifest)
  await checkSpace(dirname(scratch), size)
  const hash = createHash('sha256')
  const into = await open(scratch, 'wx', 0o600)
  try {
    let done = 0
    for await (const piece of createReadStream(file, { end: size - 1, highWaterMark: 4 * 1024 * 1024 })) {
      hash.update(piece as Buffer)
      await into.writeFile(piece as Buffer)
      done += (piece as Buffer).length
      onProgress?.(done, size)
    }
    await into.sync()
  } finally {
    await into.close()
  }
  const digest = hash.digest('hex')
  if (digest !== expected)
    throw new Error(`the SHA-256 is ${digest}, the manifest has ${expected}; the file was changed`)
  return `SHA-256 ${digest} of ${megabytes(size)}`
}

async function withCopy<Result>(path: string, read: (client: ReturnType<typeof connect>) => Promise<Result>) {
  const client = connect(path)
  try {
    await client.execute('pragma query_only = on')
    return await read(client)
  } finally {
    client.close()
    letGo()
  }
}

function examineIntegrity({ scratch }: Verification): Promise<string> {
  return withCopy(scratch, async (client) => {
    const { rows } = await client.execute('pragma integrity_check(1)')
    if (rows[0]?.[0] !== 'ok') throw new Error(String(rows[0]?.[0]))
    const { rows: dangling } = await client.execute('pragma foreign_key_check')
    if (dangling[0] !== undefined)
      throw new Error(`a row of ${String(dangling[0].table)} refers to a row that is missing`)
    return 'every page, index and reference is sound'
  })
}

function examineContents({ scratch }: Verification, { manifest }: VerifiedParts): Promise<string> {
  const { schema, tables } = manifestOf(manifest)
  return withCopy(scratch, async (client) => {
    const version = await readSchemaVersion(client)
    if (version > latestSchema)
      throw new Error(`schema version ${version} is newer than this program, which supports up to ${latestSchema}`)
    const { rows } = await client.execute('select version, name from schema_migrations order by version')
    const unknown = rows.find((row) => migrations.find((each) => each.version === row.version)?.name !== row.name)
    const known = migrations.filter((each) => each.version <= version)
    if (version !== schema || rows.length !== known.length || unknown !== undefined)
      throw new Error('its migrations are not those of this program')
    const found = await readTableFacts(client)
    const names = new Set([...Object.keys(found), ...Object.keys(tables)])
    const other = [...names].find((name) => JSON.stringify(found[name]) !== JSON.stringify(tables[name]))
    if (other !== undefined) throw new Error(`the table ${other} does not have the rows that the manifest has`)
    const count = Object.values(found).reduce((sum, table) => sum + table.rows, 0)
    return `schema version ${version}, ${count.toLocaleString('en-US')} rows in ${names.size} tables`
  })
}

/** Migrates the copy. The result must be what the migrations of this program make of an empty file: no trigger more. */
async function examineSchema({ scratch }: Verification, known: VerifiedParts): Promise<string> {
  const database = await openOrThrow(scratch, false)
  known.database = database
  const empty = `${scratch}.empty`
  const model = await openOrThrow(empty, true)
  try {
    const [mine, expected] = [await readSchemaTexts(database.client), await readSchemaTexts(model.client)]
    const other = mine.find((text) => !expected.includes(text)) ?? expected.find((text) => !mine.includes(text))
    if (other !== undefined) throw new Error(`it differs from that of this program: ${other.slice(0, 200)}`)
    return `migrated to version ${latestSchema}`
  } finally {
    await model.close()
    for (const end of ['', '-wal', '-shm']) rmSync(empty + end, { force: true })
  }
}

async function openOrThrow(path: string, create: boolean): Promise<Database> {
  if (create && existsSync(path)) rmSync(path)
  const opened = refuseClosedDatabase(path) ?? (await openDatabase({ path, create, synchronous: 'normal' }))
  if ('refused' in opened) throw new Error(opened.message, { cause: opened.cause })
  return opened
}

async function examineBudgets({ onProgress }: Verification, { database }: VerifiedParts): Promise<string> {
  const [drift] = await findDrift(databaseOf(database).orm, onProgress)
  if (drift === undefined) return "each key's totals match its requests"
  throw new Error(`the totals of key ${drift.keyId} do not match its requests`)
}

async function examineSigningKeys({ masterKey }: Verification, known: VerifiedParts): Promise<string> {
  const rows = await listSigningKeys(databaseOf(known.database).orm)
  const hex = await findFittingKey(masterKey, rows)
  if (hex === undefined) {
    const expected = known.manifest?.master_key_fingerprint ?? null
    const which = expected === null ? '' : `; the backup needs the key with the fingerprint ${expected}`
    const read = masterKey.kind === 'file' ? readKeyFile(masterKey.path) : undefined
    if (masterKey.kind === 'file' && read !== undefined && !('hex' in read))
      throw new Error(`${keyFileFault(masterKey.path, read).message}${which}`)
    const place =
      masterKey.kind === 'value' ? 'LATCHKEY_MASTER_KEY' : `the master key file ${JSON.stringify(masterKey.path)}`
    throw new Error(`${place} does not decrypt them${which}. If that key is lost, use --without-master-key`)
  }
  known.signingKeys = await openSigningKeys(rows, await importMasterKey(hex))
  return `${rows.length} decrypted with the master key ${masterKeyFingerprint(hex)}`
}

/** The same way as a server issues and accepts one. */
async function examineProbeToken({ now }: Verification, { signingKeys }: VerifiedParts): Promise<string> {
  const signing = { signingKeys: keysOf(signingKeys), baseUrl: 'https://restore.invalid/v1' }
  const who = { subject: 'probe', keyId: 'probe', policyId: 'probe', issuerId: 'probe' }
  const token = await mintAccessToken(signing, { ...who, allowedModels: null, allowedPresets: null }, 60, now())
  const verified = await verifyAccessToken(signing, token.text, now())
  if (typeof verified === 'string') throw new Error(`a token that was just signed is not valid: ${verified}`)
  return `signed and verified with ${verified.kid}`
}

/** Tokens that were issued before the backup verify with the same keys. */
async function examineKeySet(_: Verification, { manifest, signingKeys }: VerifiedParts): Promise<string> {
  const { created_at, signing_keys: expected } = manifestOf(manifest)
  const { keys } = JSON.parse(keysOf(signingKeys).jwks(Date.parse(created_at))) as { keys: { kid: string }[] }
  const kids = keys.map(({ kid }) => kid).toSorted()
  if (JSON.stringify(kids) !== JSON.stringify(expected.toSorted()))
    throw new Error(`it had ${kids.join(', ')}, the manifest has ${expected.join(', ')}`)
  return `published ${kids.join(', ')}`
}

function manifestOf(manifest: Manifest | undefined): Manifest {
  if (manifest === undefined) throw new Error('the manifest was not read')
  return manifest
}

function databaseOf(database: Database | undefined): Database {
  if (database === undefined) throw new Error('the copy was not opened')
  return database
}

function keysOf(signingKeys: SigningKeys | undefined): SigningKeys {
  if (signingKeys === undefined) throw new Error('the signing keys were not decrypted')
  return signingKeys
}
