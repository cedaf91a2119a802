// `presets import` and `export`, for one more release: views of configuration documents, with a note.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
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

test('that was exported changes nothing when it is imported, and makes the same elsewhere', async () => {
  write('body.json', JSON.stringify({ model: 'm', messages: [{ role: 'system', content: 'Be brief' }] }))
  expect(await former('import', 'body.json', '--as', 'support')).toMatchObject({ slug: 'support' })
  const exported = await former('export', 'support')
  expect(exported).toEqual({
    presets: [
      {
        ...{ slug: 'support', system_prompt: 'Be brief', config: { model: 'm' } },
      },
    ],
  })
  write('presets.json', JSON.stringify(exported))
  expect(await former('import', 'presets.json')).toMatchObject({ changes: [], group_id: null })
  await json('workspaces', 'create', 'elsewhere')
  expect(await former('import', 'presets.json', '--workspace', 'elsewhere')).toMatchObject({
    changes: [{ kind: 'presets', action: 'create' }],
  })
  expect(await former('export', '--workspace', 'elsewhere')).toEqual(exported)
})

test('takes the default for what a preset does not say, as every document does', async () => {
  await json('presets', 'update', 'support', '--name', 'Desk')
  write('one.json', '{"presets":[{"slug":"support","description":"d","config":{"seed":1}}]}')
  expect(await former('import', 'one.json')).toMatchObject({ counts: { update: 1 } })
  expect(await json('presets', 'show', 'support')).toMatchObject({
    ...{ name: 'support', description: 'd' },
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

test('a wrong preset is refused, and the one before it is not saved', async () => {
  write('refused.json', '{"presets":[{"slug":"a","config":{}},{"slug":"b","config":{"top_p":2}}]}')
  expect(await failure('presets', 'import', 'refused.json')).toMatchObject({
    code: 2,
    error: { message: expect.stringMatching(/"b": top_p/) },
  })
  expect(await failure('presets', 'show', 'a')).toMatchObject({ code: 1 })
})
