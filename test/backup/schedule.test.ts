// Scheduled backups with an injected clock: when one is due, which are removed, and what a failure does.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Manifest } from '../../src/backup/backup-file.ts'
import { backupName } from '../../src/backup/backup-names.ts'
import type { Backups } from '../../src/backup/backups.ts'
import { createBackupSchedule } from '../../src/backup/schedule.ts'
import { createLog } from '../../src/observe/log.ts'
import { createRunningWork } from '../../src/scheduling/running-work.ts'
import { onFile } from '../support/file-only.ts'
import { startTestServer, temporaryFolder } from '../support/latchkey.ts'
import { until } from '../support/until.ts'

const hour = 3_600_000
const start = Date.UTC(2026, 10, 22, 12)
const installation = 'latchkey-0a1b2c3d'

let folder: ReturnType<typeof temporaryFolder>
let now: number
let problem: Error | undefined
let lines: string[]
beforeEach(() => {
  folder = temporaryFolder()
  now = start
  problem = undefined
  lines = []
})
afterEach(() => folder.remove())

const manifest: Manifest = {
  latchkey_backup: 1,
  created_at: new Date(start).toISOString(),
  version: '0.1.0',
  schema: 1,
  installation,
  database_bytes: 0,
  database_sha256: '0'.repeat(64),
  tables: {},
  signing_keys: [],
  master_key_fingerprint: null,
}

/** Writes empty files in place of backups. */
const backups: Backups = {
  create: async (to) => {
    if (problem !== undefined) throw problem
    const file = join(to, backupName(installation, now))
    writeFileSync(file, '', { flag: 'wx' })
    return { file, bytes: 0, milliseconds: 0, manifest }
  },
  state: () => ({ isRunning: false, lastSuccess: undefined, lastFailure: undefined }),
  installation: () => installation,
  stop: async () => {},
}

const schedule = (keep = 14, path = folder.path) =>
  createBackupSchedule({
    plan: { folder: path, everyMilliseconds: 24 * hour, keep },
    backups,
    work: createRunningWork(() => now),
    now: () => now,
    log: createLog((line) => lines.push(line)),
  })
const files = () => readdirSync(folder.path).toSorted()
const events = () => lines.map((line) => (JSON.parse(line) as { event: string }).event)
const at = (time: number) => backupName(installation, time)

test('the first is made at once and the next when its time has come, also across restarts', async () => {
  await schedule().check()
  expect(files()).toEqual([at(start)])
  now = start + 24 * hour - 1
  await schedule().check()
  expect(files()).toHaveLength(1)
  now = start + 24 * hour
  const restarted = schedule()
  await restarted.check()
  expect(restarted.newestAt()).toBe(start)
  await restarted.check()
  expect(files()).toEqual([at(start), at(now)])
  expect(restarted.newestAt()).toBe(now)
})

test('a command, which makes none, finds the newest one in the folder when it looks', async () => {
  await schedule().check()
  const other = schedule()
  expect(other.newestAt()).toBeUndefined()
  await other.look()
  expect(other.newestAt()).toBe(start)
  await schedule(14, join(folder.path, 'absent')).look()
  expect(events()).toEqual(['backup_created'])
})

test('after a clock that was ahead, backups from the future count for nothing', async () => {
  writeFileSync(join(folder.path, at(start + 1_000 * hour)), '')
  const first = schedule()
  await first.check()
  await first.check()
  expect(first.newestAt()).toBe(start)
  expect(files()).toEqual([at(start), at(start + 1_000 * hour)])
})

test('after a clock that was ahead, backups from the future do not take the place of the next one', async () => {
  for (const ahead of [1_000, 1_100]) writeFileSync(join(folder.path, at(start + ahead * hour)), '')
  await schedule(2).check()
  expect(files()).toEqual([at(start), at(start + 1_100 * hour)])
})

test('the oldest are removed beyond the number to keep, and no file of anyone else', async () => {
  const others = ['latchkey-ffffffff-20200101T000000Z.backup', `${installation}-notes.backup`, 'readme.txt']
  for (const name of others) writeFileSync(join(folder.path, name), '')
  for (let day = 0; day < 5; day++) {
    now = start + day * 24 * hour
    await schedule(3).check()
  }
  const kept = [2, 3, 4].map((day) => at(start + day * 24 * hour))
  expect(files()).toEqual([...kept, ...others].toSorted())
  expect(events().filter((event) => event === 'backup_removed')).toHaveLength(2)
})

test('a failure is logged, removes nothing, is tried again after ten minutes and ends with the next success', async () => {
  const failing = schedule(1)
  await failing.check()
  now += 24 * hour
  problem = new Error('the disk is gone')
  await failing.check()
  expect(failing.isFailing()).toBe(true)
  expect(lines.at(-1)).toContain('the disk is gone')
  expect(files()).toEqual([at(start)])
  problem = undefined
  now += 10 * 60_000 - 1
  await failing.check()
  expect(failing.isFailing()).toBe(true)
  now += 1
  await failing.check()
  expect(failing.isFailing()).toBe(false)
  expect(files()).toEqual([at(now)])
})

test('a folder that does not exist is a failure with a reason', async () => {
  const missing = schedule(1, join(folder.path, 'none'))
  await missing.check()
  expect(missing.isFailing()).toBe(true)
  expect(lines.at(-1)).toContain('does not exist; create it')
})

onFile('backup by copy').test(
  'a server makes its first backup when it starts, and is degraded while its backups fail',
  async () => {
    const settings = { LATCHKEY_BACKUP_DIR: folder.path }
    const { server, admin, stop } = await startTestServer({ settings })
    await until('the backup', () => files().some((name) => name.endsWith('.backup')))
    await until('its end', async () => (await admin<{ running: boolean }>('backup.show')).running === false)
    expect(await admin<object>('backup.show')).toMatchObject({ folder: folder.path, failing: false, keep: 14 })
    expect(await server.context.readiness.check()).toMatchObject({ status: 'ready' })
    await stop()

    const broken = await startTestServer({ settings: { LATCHKEY_BACKUP_DIR: join(folder.path, 'none') } })
    const readiness = () => broken.server.context.readiness.check()
    await until('the failure', async () => (await readiness()).status !== 'ready')
    expect(await readiness()).toEqual({ status: 'degraded', failing: [], degraded: ['backup'] })
    expect((await fetch(new URL('/readyz', broken.server.baseUrl))).status).toBe(200)
    await broken.stop()
  },
)
