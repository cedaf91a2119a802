// The file of an archive: on disk before it has its name, and never the database.
import { afterAll, afterEach, expect, spyOn, test } from 'bun:test'
import { existsSync, linkSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { readArchiveFile, writeArchiveFile, writeTextFile } from '../../src/archive/archive-file.ts'
import { temporaryFolder } from '../support/latchkey.ts'
import { rejectionOf } from '../support/rejection.ts'

const folder = temporaryFolder()
const inFolder = (name: string) => join(folder.path, name)
const database = inFolder('latchkey.db')
writeFileSync(database, Bun.gzipSync('{}\n'))
afterAll(() => folder.remove())

const handle = await open(database, 'r')
const prototype = Object.getPrototypeOf(handle) as FileHandle
await handle.close()
const { sync } = prototype
const spies: { mockRestore: () => void }[] = []
afterEach(() => {
  for (const spy of spies.splice(0)) spy.mockRestore()
})

async function* textOf(...texts: string[]) {
  yield* texts
}

/** Nothing but a power loss notices that these are missing. */
test.each([
  ['an archive', (file: string) => writeArchiveFile(folder.path, file, textOf('{}\n'))],
  ['its manifest', (file: string) => writeTextFile(folder.path, file, '{}\n')],
])('%s is flushed to the disk before it has its name, and so is its folder after that', async (name, write) => {
  const file = name.replace(' ', '-')
  const flushed: boolean[] = []
  const spy = spyOn(prototype, 'sync').mockImplementation(function (this: FileHandle) {
    flushed.push(existsSync(inFolder(file)))
    return sync.call(this)
  })
  spies.push(spy)
  await write(file)
  expect(flushed).toEqual([false, true])
  expect(readdirSync(folder.path).filter((each) => each.includes('partial'))).toEqual([])
})

test('the database under the name of an archive is not opened, whichever link leads to it', async () => {
  linkSync(database, inFolder('hard.ndjson.gz'))
  symlinkSync(database, inFolder('symbolic.ndjson.gz'))
  const messageOf = async (path: string) => (await rejectionOf(readArchiveFile(path, database))).message
  expect(await messageOf(inFolder('hard.ndjson.gz'))).toContain('it is the database')
  expect(await messageOf(database)).toContain('it is the database')
  expect(await messageOf(inFolder('symbolic.ndjson.gz'))).toContain('it is not a regular file')
  // Read as anything else, it is intact.
  expect(await readArchiveFile(inFolder('hard.ndjson.gz'), inFolder('other.db'))).toMatchObject({ lines: 1 })
})
