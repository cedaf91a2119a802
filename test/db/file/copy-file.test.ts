// A copy in two passes: what the holder changes between them is in the copy, wherever it is in the file.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { completeCopy, draftCopy } from '../../../db/file/copy-file.ts'
import { temporaryFolder } from '../../support/latchkey.ts'

const megabyte = 1024 * 1024
let folder: ReturnType<typeof temporaryFolder>
let path: string
let to: string
beforeEach(() => {
  folder = temporaryFolder()
  path = join(folder.path, 'main.db')
  to = join(folder.path, 'copy.db')
  writeFileSync(path, Buffer.alloc(9 * megabyte, 'one'))
})
afterEach(() => folder.remove())

const changes: [name: string, change: () => Promise<void>][] = [
  ['nothing', async () => {}],
  [
    'the first byte, the last one and one between',
    async () => {
      const file = await open(path, 'r+')
      for (const at of [0, 5 * megabyte, 9 * megabyte - 1]) await file.write('X', at)
      await file.close()
    },
  ],
  ['more at the end', async () => writeFileSync(path, Buffer.alloc(megabyte, 'two'), { flag: 'a' })],
  ['less at the end', async () => writeFileSync(path, Buffer.alloc(2 * megabyte, 'two'))],
]
for (const [name, change] of changes)
  test(`with ${name} changed since the draft, the copy is the file`, async () => {
    await draftCopy(path, to, () => {})
    await change()
    await completeCopy(path, to)
    expect(readFileSync(to).equals(readFileSync(path))).toBe(true)
    expect(statSync(to).mode & 0o777).toBe(0o600)
    expect(existsSync(`${to}-wal`)).toBe(false)
  })

test('the log is copied as it is at the end, and the progress ends with the whole', async () => {
  const seen: [number, number][] = []
  await draftCopy(path, to, (done, total) => seen.push([done, total]))
  writeFileSync(`${path}-wal`, Buffer.alloc(megabyte, 'log'))
  await completeCopy(path, to)
  expect(readFileSync(`${to}-wal`).equals(readFileSync(`${path}-wal`))).toBe(true)
  // A file system that shares blocks copies nothing in the first pass.
  const whole: [number, number] = [9 * megabyte, 9 * megabyte]
  expect(seen.at(-1) ?? whole).toEqual(whole)
})

test('a file in the way is not overwritten', async () => {
  writeFileSync(to, 'kept')
  const failure = await draftCopy(path, to, () => {}).then(
    () => 'copied',
    (error: NodeJS.ErrnoException) => error.code,
  )
  expect(failure).toBe('EEXIST')
  expect(readFileSync(to, 'utf8')).toBe('kept')
  rmSync(to)
})
