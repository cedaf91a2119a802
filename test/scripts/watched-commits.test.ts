// What a command shows and says while a database server does not confirm its commit.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { EventEmitter } from 'node:events'
import { join } from 'node:path'
import { createWatch } from '../../scripts/shared/watched-commits.ts'
import { rowsInFile } from '../support/database-file.ts'
import { type HranaServer, startHranaServer } from '../support/hrana-server.ts'
import { temporaryFolder } from '../support/latchkey.ts'
import { testMasterKey } from '../support/server-kind.ts'
import { until } from '../support/until.ts'

const folder = temporaryFolder()
let database: HranaServer
beforeAll(async () => {
  database = await startHranaServer({ path: join(folder.path, 'server.db') })
})
afterAll(async () => {
  await database.close()
  folder.remove()
})

function start(...args: string[]) {
  const { HOME, PATH } = process.env
  const env = { HOME, PATH, LATCHKEY_DATABASE_URL: database.url, LATCHKEY_MASTER_KEY: testMasterKey }
  const main = join(import.meta.dirname, '../../src/main.ts')
  return Bun.spawn([process.execPath, main, ...args], { env, cwd: folder.path, stdout: 'pipe', stderr: 'pipe' })
}

test('a command that is interrupted during a commit reports that the change can have taken effect', async () => {
  const made = start('init', '--json')
  expect(await made.exited).toBe(0)
  database.trouble.awayAt = { text: 'interrupted', cut: 'after' }
  const child = start('keys', 'create', '--name', 'interrupted', '--json')
  await until('the commit', () => database.trouble.isPartitioned)
  child.kill('SIGINT')
  expect(await child.exited).toBe(1)
  const { error } = JSON.parse(await new Response(child.stderr).text()) as { error: { code: string; message: string } }
  expect(error).toEqual({ code: 'unavailable', message: expect.stringContaining('the change can have taken effect') })
  const rows = () => rowsInFile(database.file, "select id from api_keys where name = 'interrupted'")
  await until('the commit of the key', () => rows().length === 1)
  database.trouble.isPartitioned = false
})

function watchOn(isTTY: boolean) {
  const written: string[] = []
  const signals = new EventEmitter() as EventEmitter & Pick<NodeJS.Process, 'on' | 'off'>
  const stream = { isTTY, write: (text: string) => written.push(text) }
  const interrupted: string[] = []
  const interrupt = () => interrupted.push('interrupted')
  const watch = createWatch({ stream, signals, interrupt, silentMilliseconds: 1 })
  return { watch, written, signals, interrupted }
}

test('a terminal shows how long a commit takes, until it has ended', async () => {
  const { watch, written } = watchOn(true)
  const end = watch()
  await until('the line', () => written.length > 0)
  expect(written[0]).toContain('Waiting 0 s for the database server')
  end()
  expect(written.at(-1)).toBe('\r\x1b[K')
})

test('a file gets nothing, and signals are caught only during a commit', () => {
  const { watch, written, signals, interrupted } = watchOn(false)
  signals.emit('SIGINT')
  const end = watch()
  signals.emit('SIGINT')
  signals.emit('SIGTERM')
  end()
  signals.emit('SIGINT')
  expect([interrupted.length, written]).toEqual([2, []])
})
