// Backups of a database on a cluster, which it copies while it serves; a server without copies is refused.
import { afterAll, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { openServerDatabase } from '../../db/remote/server-database.ts'
import { createBackups } from '../../src/backup/backups.ts'
import { verifyBackup } from '../../src/backup/verify.ts'
import { startHranaServer } from '../support/hrana-server.ts'
import { startTestServer, temporaryFolder } from '../support/latchkey.ts'
import { rejectionOf } from '../support/rejection.ts'
import { testMasterKey } from '../support/server-kind.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())
const masterKey = { kind: 'value', hex: testMasterKey } as const

async function serve(name: string, protocol: 'hrana' | 'rqlite') {
  const database = await startHranaServer({ path: join(folder.path, `${name}.db`), protocol })
  const node = await startTestServer({
    settings: { LATCHKEY_DATABASE_URL: database.url, LATCHKEY_MASTER_KEY: testMasterKey },
  })
  await node.admin('keys.create', { name: 'kept' })
  const { context } = node.server
  const signCheckpoint = async () => null
  const metrics = { countBackupFailure: () => {} }
  const backups = createBackups({ ...context, installation, masterKey, metrics, signCheckpoint, now: Date.now })
  const stop = async () => {
    await node.stop()
    await database.close()
  }
  return { database, context, backups, stop }
}

const installation = () => 'latchkey-test'

test('a backup of a cluster has what was acknowledged, and restores', async () => {
  const { backups, stop } = await serve('cluster', 'rqlite')
  const { file, manifest } = await backups.create(join(folder.path, 'cluster.backup'))
  expect(manifest.tables.api_keys?.rows).toBe(2)
  const scratch = join(folder.path, 'scratch.db')
  const verification = { file, masterKey, withoutMasterKey: false, now: Date.now, onProgress: () => {}, scratch }
  const { checks } = await verifyBackup(verification)
  expect(checks.filter(({ result }) => result === 'failed')).toEqual([])
  await stop()
})

test('a copy that lacks an acknowledged commit is no backup, and leaves no file', async () => {
  const { database, context, stop } = await serve('older', 'rqlite')
  const older = new Uint8Array(await (await fetch(`${database.url.replace('rqlite', 'http')}/db/backup`)).arrayBuffer())
  const send = async (request: Request) => (request.url.includes('/db/backup') ? new Response(older) : fetch(request))
  const opened = await openServerDatabase({ url: database.url, token: undefined, create: false, send })
  if ('refused' in opened) throw new Error(opened.message)
  await opened.commit([{ sql: 'delete from nodes', args: [] }])
  const parts = {
    ...context,
    database: opened,
    installation,
    masterKey,
    signCheckpoint: async () => null,
    now: Date.now,
  }
  const backups = createBackups({ ...parts, metrics: { countBackupFailure: () => {} } })
  const failure = await rejectionOf(backups.create(join(folder.path, 'older.backup')))
  expect(failure.message).toContain('has copied an older state')
  expect(readdirSync(folder.path).filter((name) => name.startsWith('older.backup'))).toEqual([])
  await opened.close()
  await stop()
})

test('a server that makes no copies is refused before anything is written', async () => {
  const { backups, stop } = await serve('plain', 'hrana')
  const failure = await rejectionOf(backups.create(join(folder.path, 'plain.backup')))
  expect([failure.code, failure.message]).toEqual(['conflict', expect.stringContaining('take snapshots of it')])
  expect(existsSync(join(folder.path, 'plain.backup'))).toBe(false)
  await stop()
})
