// Former files of presets, for one more release: they are imported and exported as before, with a note. Large ones are taken apart, and
// wrong ones refused before anything is saved.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { presetsAtOnceMax, presetsMax } from '../../src/limits.ts'
import type { Preset } from '../../src/presets/drafts.ts'
import type { Server } from '../../src/server/server.ts'
import { createCommandRunner, type JsonObject } from '../support/command-runner.ts'
import { serveInProcess } from '../support/in-process.ts'
import { temporaryFolder } from '../support/latchkey.ts'

const folder = temporaryFolder()
const { env, run, json, failure } = createCommandRunner(folder.path)
let server: Server
/** What a former command prints as JSON. It says on standard error what to use instead. */
async function former(...args: string[]): Promise<JsonObject> {
  const { code, stdout, stderr } = await run('presets', ...args, '--json')
  expect({ args, code, stderr }).toEqual({
    ...{ args, code: 0 },
    stderr: expect.stringMatching(
      /^Warning: the next release no longer has presets (import|export)[^\n]*: use [^\n]+\n$/,
    ),
  })
  return JSON.parse(stdout) as JsonObject
}
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
  const presets = Array.from({ length: presetsAtOnceMax + 2 }, (_, index) => ({
    slug: `p${String(index).padStart(4, '0')}`,
    name: `Preset ${index}`,
    description: null,
    status: index % 7 === 0 ? 'disabled' : 'active',
    system_prompt: 'Be brief',
    config: { model: 'm', stop: 'x'.repeat(index < 21 ? 200_000 : 10) },
  }))
  write('many.json', JSON.stringify({ presets }))
  const { data } = (await former('import', 'many.json')) as { data: { outcome: string }[] }
  expect(data.map(({ outcome }) => outcome)).toEqual(presets.map(() => 'created'))
  expect(await former('export')).toEqual({ presets })
})

test('of more presets than a workspace holds makes none of them, counting those of earlier parts', async () => {
  const { id } = (await server.runByName('workspaces.create', { name: 'full' })) as { id: string }
  const { presetsOf } = server.context.registry
  const there = { slug: 'there' } as Preset
  presetsOf.set(id, new Map(Array.from({ length: presetsMax - presetsAtOnceMax }, (_, index) => [`p${index}`, there])))
  const presets = Array.from({ length: presetsAtOnceMax + 1 }, (_, index) => ({ slug: `full${index}`, config: {} }))
  write('full.json', JSON.stringify({ presets }))
  expect(await failure('presets', 'import', 'full.json', '--workspace', 'full')).toMatchObject({
    code: 2,
    error: { message: 'A workspace holds at most 10000 presets' },
  })
  expect(presetsOf.get(id)?.size).toBe(presetsMax - presetsAtOnceMax)
  presetsOf.delete(id)
})

test('that was exported changes nothing when it is imported, and makes the same elsewhere', async () => {
  write('body.json', JSON.stringify({ model: 'm', messages: [{ role: 'system', content: 'Be brief' }] }))
  expect(await former('import', 'body.json', '--as', 'support')).toMatchObject({ slug: 'support' })
  const exported = await former('export', 'support')
  expect(exported).toEqual({
    presets: [
      {
        ...{ slug: 'support', name: 'support', description: null, status: 'active' },
        ...{ system_prompt: 'Be brief', config: { model: 'm' } },
      },
    ],
  })
  write('presets.json', JSON.stringify(exported))
  expect(await former('import', 'presets.json')).toEqual({
    data: [{ slug: 'support', version: 1, outcome: 'unchanged' }],
  })
  await json('workspaces', 'create', 'elsewhere')
  expect(await former('import', 'presets.json', '--workspace', 'elsewhere')).toEqual({
    data: [{ slug: 'support', version: 1, outcome: 'created' }],
  })
  expect(await former('export', '--workspace', 'elsewhere')).toEqual(exported)
})

test('updates what differs, and leaves what it does not say', async () => {
  await json('presets', 'update', 'support', '--name', 'Desk')
  write('one.json', '[{"slug":"support","description":"d","config":{"seed":1}}]')
  expect(await former('import', 'one.json')).toEqual({
    data: [{ slug: 'support', version: 2, outcome: 'changed' }],
  })
  expect(await json('presets', 'show', 'support')).toMatchObject({
    ...{ name: 'Desk', description: 'd' },
    designated_version: { version: 2, config: { seed: 1 }, system_prompt: null },
  })
})

test('becomes a document with one line more, which then changes nothing', async () => {
  const { presets } = await former('export', 'support')
  write('document.json', JSON.stringify({ latchkey: 1, presets }))
  expect(await json('config', 'plan', 'document.json')).toMatchObject({ changes: [] })
  write('document.json', JSON.stringify({ presets }))
  expect(await failure('config', 'plan', 'document.json')).toMatchObject({
    code: 2,
    error: { message: 'document.latchkey must be 1 (was missing)' },
  })
})

test('a file of another form is distinguished from the body of a request', async () => {
  expect(await failure('presets', 'import', 'body.json')).toMatchObject({
    code: 2,
    error: { message: expect.stringMatching(/has no list "presets"; to import a request body, add --as SLUG/) },
  })
  expect(await failure('presets', 'save', 'support', 'presets.json')).toMatchObject({
    code: 2,
    error: {
      message: '"presets.json" is a list of presets, not a request body: use latchkey config apply for documents',
    },
  })
})

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
