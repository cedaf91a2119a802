// Whose lock is waited for. Whether a lock is looked at again shows only in another one that was taken later and is done.
import { afterAll, expect, test } from 'bun:test'
import { existsSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { withFileLock } from '../../src/agent/file-lock.ts'
import { temporaryFolder } from '../support/latchkey.ts'

const folder = temporaryFolder()
const inFolder = (name: string) => join(folder.path, name)
afterAll(() => folder.remove())

/** A process that has ended. */
const deadPid = Bun.spawnSync(['true']).pid
const lockOf = (name: string, pid: number, host: string) => {
  const path = inFolder(name)
  writeFileSync(path, `${pid} ${host}`)
  return path
}
const old = new Date(Date.now() - 91_000)

test.each([
  ['of another host', () => lockOf('elsewhere', deadPid, 'another-host')],
  ['of a process that runs', () => lockOf('running', process.pid, hostname())],
  [
    'that names nobody yet',
    () => {
      writeFileSync(inFolder('empty'), '')
      return inFolder('empty')
    },
  ],
])('a fresh lock %s is waited for', async (_whose, make) => {
  const path = make()
  const held = readFileSync(path, 'utf8')
  let isDone = false
  const waiting = withFileLock(path, async () => {
    isDone = true
  })
  for (const name of ['first', 'second', 'third']) await withFileLock(lockOf(name, deadPid, hostname()), async () => {})
  expect(isDone).toBe(false)
  expect(readFileSync(path, 'utf8')).toBe(held)
  rmSync(path)
  await waiting
  expect(isDone).toBe(true)
  expect(existsSync(path)).toBe(false)
})

test.each([
  ['of this host whose process has ended', () => lockOf('dead', deadPid, hostname())],
  [
    'of another host that is older than any holder',
    () => {
      const path = lockOf('old', deadPid, 'another-host')
      utimesSync(path, old, old)
      return path
    },
  ],
])('a lock %s is taken', async (_whose, make) => {
  const path = make()
  const holder = await withFileLock(path, async () => readFileSync(path, 'utf8'))
  expect(holder).toBe(`${process.pid} ${hostname()}`)
  expect(existsSync(path)).toBe(false)
})
