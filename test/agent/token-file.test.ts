// The file with the token: replaced in one step, for its user alone, wherever a link in its place leads.
import { afterAll, expect, test } from 'bun:test'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { replaceFile } from '../../src/agent/token-file.ts'
import { temporaryFolder } from '../support/latchkey.ts'

const folder = temporaryFolder()
const inFolder = (name: string) => join(folder.path, name)
afterAll(() => folder.remove())

test('a file that others can read becomes one that they cannot, and nothing else is left in the folder', async () => {
  mkdirSync(inFolder('own'))
  writeFileSync(inFolder('own/token'), 'old')
  chmodSync(inFolder('own/token'), 0o666)
  await replaceFile(inFolder('own/token'), 'new')
  expect([readFileSync(inFolder('own/token'), 'utf8'), statSync(inFolder('own/token')).mode & 0o777]).toEqual([
    'new',
    0o600,
  ])
  expect(readdirSync(inFolder('own'))).toEqual(['token'])
})

test('a link in the place of the file is replaced, and where it leads stays as it is', async () => {
  writeFileSync(inFolder('elsewhere'), 'kept')
  symlinkSync(inFolder('elsewhere'), inFolder('link'))
  await replaceFile(inFolder('link'), 'new')
  expect(readFileSync(inFolder('elsewhere'), 'utf8')).toBe('kept')
  expect(lstatSync(inFolder('link')).isSymbolicLink()).toBe(false)
})

test('a folder that is missing is named', async () => {
  await expect(replaceFile(inFolder('none/token'), 'new')).rejects.toMatchObject({
    message: `The token could not be written to ${inFolder('none/token')}`,
    hint: expect.stringContaining('ENOENT'),
  })
})
