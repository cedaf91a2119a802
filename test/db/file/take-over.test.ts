// A database that is taken over for a restore stays locked, also after its log was moved into it, until the process ends.
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspectDatabase } from '../../../db/file/inspect.ts'
import { openDatabase } from '../../../db/file/open.ts'
import { takeOver } from '../../../db/file/take-over.ts'
import { temporaryFolder } from '../../support/latchkey.ts'

const holder = `
import { takeOver } from ${JSON.stringify(join(import.meta.dirname, '../../../db/file/take-over.ts'))}
const taken = await takeOver(process.argv[1])
console.log(taken.state)
for await (const _ of process.stdin) {
  await taken.settle()
  console.log('settled')
}
`

test('another process is refused until the one that took it ends, and a second one cannot take it', async () => {
  const folder = temporaryFolder()
  const path = join(folder.path, 'taken.db')
  const maker = Bun.spawnSync([
    process.execPath,
    '-e',
    `import { openDatabase } from ${JSON.stringify(join(import.meta.dirname, '../../../db/file/open.ts'))}
     const opened = await openDatabase({ path: process.argv[1], create: true, synchronous: 'normal' })
     process.kill(process.pid, 'SIGKILL')`,
    path,
  ])
  expect(maker.signalCode).toBe('SIGKILL')
  const child = Bun.spawn([process.execPath, '-e', holder, path], { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
  const lines = child.stdout.getReader()
  const line = async () => new TextDecoder().decode((await lines.read()).value).trim()
  const open = async () => {
    const opened = await openDatabase({ path, create: false, synchronous: 'normal' })
    return 'refused' in opened ? opened.refused : 'opened'
  }
  expect(await line()).toBe('locked')
  expect(await open()).toBe('held')
  expect(await takeOver(path)).toEqual({ state: 'held' })
  child.stdin.write('settle\n')
  await child.stdin.flush()
  expect(await line()).toBe('settled')
  expect(existsSync(`${path}-wal`)).toBe(false)
  expect(await open()).toBe('held')
  child.kill('SIGKILL')
  await child.exited
  expect(await open()).toBe('opened')
  folder.remove()
})

test('a file that was created and not written yet can be taken, one of something else cannot', async () => {
  const folder = temporaryFolder()
  const stateOf = (name: string, content: string) => {
    const path = join(folder.path, name)
    writeFileSync(path, content)
    const { stdout } = Bun.spawnSync([process.execPath, '-e', holder, path], { stdin: null })
    return stdout.toString().trim()
  }
  expect(stateOf('empty.db', '')).toBe('locked')
  expect(stateOf('text.db', 'not a database at all')).toBe('damaged')
  folder.remove()
})

test('the database of another program is not taken, and one that does not exist is not made', async () => {
  const folder = temporaryFolder()
  const path = join(folder.path, 'other.db')
  const other = new Database(path, { create: true })
  other.run('create table theirs (id integer)')
  other.close()
  expect(await takeOver(path)).toEqual({ state: 'foreign' })
  const missing = join(folder.path, 'missing.db')
  expect(await inspectDatabase(missing)).toMatchObject({
    refused: 'missing',
    message: expect.stringContaining(missing),
  })
  expect(existsSync(missing)).toBe(false)
  folder.remove()
})
