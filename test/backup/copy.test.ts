// What the holder of a database file does while a child process copies it. The test holds the checkpoints, so it says when.
import { expect } from 'bun:test'
import { existsSync, statSync, truncateSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Database } from '../../db/file/open.ts'
import { startCopy } from '../../src/backup/copy.ts'
import { backupLogBytesMax } from '../../src/limits.ts'
import { onFile } from '../support/file-only.ts'
import { rejectionOf } from '../support/rejection.ts'
import { createDatabase, type TestDatabase } from '../support/rows.ts'

const { afterEach, beforeEach, test } = onFile('backup by copy')

let own: TestDatabase
beforeEach(async () => {
  own = await createDatabase()
})
afterEach(() => own.close())

const held = { created_at: new Date(0).toISOString(), version: '1', installation: 'one', master_key_fingerprint: null }
const fileOf = () => join(dirname(own.path), 'one.backup')

type Watching = { describe?: () => typeof held; onProgress?: () => void; signal?: AbortSignal }

function copy(holdCheckpoints: Database['holdCheckpoints'], watching: Watching = {}) {
  const { describe = () => held, onProgress, signal = new AbortController().signal } = watching
  const job = { database: own.path, partial: `${fileOf()}.partial-1`, file: fileOf(), newestCommit: 0 }
  return startCopy({ holdCheckpoints }, job, describe, { signal, onProgress })
}

/** How many pages the log has before a commit moves them into the file: 0 while checkpoints are held. */
async function checkpointPages(): Promise<unknown> {
  const { rows } = await own.database.client.execute('pragma wal_autocheckpoint')
  return rows[0]?.[0]
}

test('a log that grows beyond its bound after the first check stops the copy', async () => {
  const log = `${own.path}-wal`
  const { size } = statSync(log)
  const { promise: checked, resolve } = Promise.withResolvers<void>()
  let checks: number | undefined
  // The child has copied. Until this resolves, checkpoints are still held.
  const release = async () => {
    if (checks !== undefined) return resolve()
    // A sparse file of that size stands for the log of a busy server.
    truncateSync(log, backupLogBytesMax + 1)
    checks = 0
    await checked
  }
  const onProgress = () => {
    if (checks === undefined) return
    checks += 1
    if (checks > 3) resolve()
  }
  const error = await rejectionOf(copy(async () => release, { onProgress })).finally(() => truncateSync(log, size))
  expect(error.message).toContain('grew beyond 268 MB')
  expect(existsSync(fileOf())).toBe(false)
})

test('a copy that fails while it holds checkpoints lets them go on', async () => {
  const seen: unknown[] = []
  const hold = async () => {
    const release = await own.database.holdCheckpoints()
    seen.push(await checkpointPages())
    return release
  }
  const describe = () => {
    throw new Error('not described')
  }
  expect((await rejectionOf(copy(hold, { describe }))).message).toBe('not described')
  expect([...seen, await checkpointPages()]).toEqual([0, 4_096])
})

test('a copy that ends before it holds checkpoints lets them go on when it does', async () => {
  const stopping = new AbortController()
  const [ended, described] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const hold = async () => {
    stopping.abort(new Error('stopped'))
    await ended.promise
    return own.database.holdCheckpoints()
  }
  const describe = () => {
    described.resolve()
    return held
  }
  expect((await rejectionOf(copy(hold, { describe, signal: stopping.signal }))).message).toBe('stopped')
  ended.resolve()
  await described.promise
  expect(await checkpointPages()).toBe(4_096)
})
