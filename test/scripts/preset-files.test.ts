// Files of presets that are large or wrong: they are taken apart, and refused before anything is saved.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Server } from '../../src/server/server.ts'
import { createCommandRunner } from '../support/command-runner.ts'
import { serveInProcess } from '../support/in-process.ts'
import { temporaryFolder } from '../support/latchkey.ts'

const folder = temporaryFolder()
const { env, run, json, failure } = createCommandRunner(folder.path)
let server: Server
const write = (name: string, text: string | Uint8Array) => writeFileSync(join(folder.path, name), text)
beforeAll(async () => {
  await json('init')
  server = await serveInProcess(env)
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

test('of more presets than one operation takes, all are there, and come out again as they went in', async () => {
  const presets = Array.from({ length: 1_201 }, (_, index) => ({
    slug: `p${String(index).padStart(4, '0')}`,
    name: `Preset ${index}`,
    description: null,
    status: index % 7 === 0 ? 'disabled' : 'active',
    system_prompt: 'Be brief',
    config: { model: 'm', stop: 'x'.repeat(index < 40 ? 200_000 : 10) },
  }))
  write('many.json', JSON.stringify({ presets }))
  const { data } = (await json('presets', 'import', 'many.json')) as { data: { outcome: string }[] }
  expect(data.map(({ outcome }) => outcome)).toEqual(presets.map(() => 'created'))
  expect(await json('presets', 'export')).toEqual({ presets })
})

test('of more presets than a workspace holds makes none of them', async () => {
  const presets = Array.from({ length: 10_001 }, (_, index) => ({ slug: `full${index}`, config: { model: 'm' } }))
  write('full.json', JSON.stringify({ presets }))
  const before = await json('presets', 'list')
  expect(await failure('presets', 'import', 'full.json')).toMatchObject({
    code: 2,
    error: { message: 'A workspace holds at most 10000 presets' },
  })
  expect(await json('presets', 'list')).toEqual(before)
}, 60_000)

test.each([
  [
    'a wrong last one',
    `{"presets":[${'{"slug":"a","config":{}},'.slice(0, -1)},{"slug":"b","config":{"top_p":2}}]}`,
    /"b": top_p/,
  ],
  [
    'one twice',
    '{"presets":[{"slug":"a","config":{}},{"slug":"a","config":{}}]}',
    /The preset "a" is in the file twice/,
  ],
  [
    'a number that none is',
    '{"presets":[{"slug":"a","config":{"temperature":1e999}}]}',
    /"temperature" is a number that is too large/,
  ],
  [
    'other bytes than UTF-8',
    Buffer.from('{"presets":[{"slug":"a","name":"caf\xe9","config":{}}]}', 'latin1'),
    /must be text in UTF-8/,
  ],
])('with %s is refused', async (_, text, message) => {
  write('refused.json', text)
  const { code, error } = await failure('presets', 'import', 'refused.json')
  expect({ code, message: error.message }).toEqual({ code: 2, message: expect.stringMatching(message) })
  expect(await failure('presets', 'show', 'a')).toMatchObject({ code: 1 })
})

test('two versions that differ in every line are told apart in a sentence', async () => {
  const body = (word: string) =>
    JSON.stringify({
      messages: [{ role: 'system', content: Array.from({ length: 20_000 }, (_, line) => `${word}${line}`).join('\n') }],
    })
  write('a.json', body('a'))
  write('b.json', body('b'))
  await json('presets', 'import', 'a.json', '--as', 'long')
  await json('presets', 'import', 'b.json', '--as', 'long')
  expect((await run('presets', 'diff', 'long@1', 'long@2')).stdout).toMatch(
    /differ in too many lines to show. They differ in: system_prompt. See both with --json/,
  )
})
