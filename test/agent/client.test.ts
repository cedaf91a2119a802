// The module for programs in JavaScript, from its release file: real clients with it, and its types.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI from 'openai'
import { buildPortableFiles } from '../../scripts/build/release/portable-files.ts'
import type * as source from '../../src/agent/client.ts'
import { topics } from '../../src/manual/topics.ts'
import { type Federation, runCommand, startFederation, temporaryFolder } from '../support/latchkey.ts'
import { codeUnder } from '../support/manual.ts'
import { runtimes } from '../support/runtimes.ts'
import { workloadEnv } from '../support/workload-env.ts'

type Declared = typeof import('../../scripts/build/release/latchkey-client.mjs')
/** Compiles only while the types of the release are those of the source. */
const isDeclared: [Declared, typeof source] extends [typeof source, Declared] ? true : false = true

const folder = temporaryFolder()
const inFolder = (name: string) => join(folder.path, name)
let federation: Federation
let client: typeof source
let env: Record<string, string>

beforeAll(async () => {
  await buildPortableFiles(folder.path, 'test')
  federation = await startFederation()
  env = await workloadEnv(federation, inFolder('jwt'))
  client = (await import(inFolder('latchkey-client.mjs'))) as typeof source
})
afterAll(async () => {
  await federation.stop()
  folder.remove()
})

const options = () => ({
  url: federation.server.baseUrl,
  policy: federation.policy.id,
  identity: env.LATCHKEY_IDENTITY,
})

test("the client of OpenAI takes the function as its key, and two clients' calls share one token", async () => {
  expect(isDeclared).toBe(true)
  const token = client.accessToken(options())
  const openai = new OpenAI({ baseURL: federation.server.baseUrl, apiKey: token, maxRetries: 0 })
  const messages = [{ role: 'user' as const, content: 'Hello' }]
  const calls = Array.from({ length: 5 }, () => openai.chat.completions.create({ model: 'echo', messages }))
  for (const { choices } of await Promise.all(calls)) expect(choices[0]?.message.content).toBe('Hello')
  expect(new Set(await Promise.all([token(), token()])).size).toBe(1)
})

test('what is wrong is the message of an error: an option at once, a refusal when a token is wanted', async () => {
  expect(() => client.accessToken({ ...options(), url: 'http://llm.example.com/v1' })).toThrow(
    'must start with https://',
  )
  expect(() => client.accessToken({ ...options(), policy: '' })).toThrow('LATCHKEY_POLICY is not set')
  writeFileSync(inFolder('other'), await federation.mint({ aud: 'another' }))
  const refused = client.accessToken({ ...options(), identity: `file:${inFolder('other')}` })
  await expect(refused()).rejects.toThrow(/The subject token was not accepted.*\(request id [\s\S]*aud "another"/)
})

for (const [name, command] of runtimes) {
  test.skipIf(command === undefined)(`the manual's fetch function works on ${name} (needs it)`, async () => {
    const page = (topics.get('workloads') ?? '').split('```js\n')
    const recipe = page.find((code) => code.includes('authorizedFetch'))?.split('```')[0] ?? ''
    const call = `console.log((await authorizedFetch(process.env.LATCHKEY_URL + '/models', {})).status)`
    writeFileSync(inFolder('recipe.mjs'), `${recipe}\nimport process from 'node:process'\n${call}\n`)
    const run = { cwd: folder.path, env: { ...env, HOME: folder.path }, program: command }
    expect(await runCommand([inFolder('recipe.mjs')], run)).toEqual({ code: 0, stdout: '200\n', stderr: '' })
  })
}

test("the manual's program for OpenAI's client prints what the upstream answers", async () => {
  symlinkSync(join(import.meta.dirname, '../../node_modules'), inFolder('node_modules'))
  writeFileSync(inFolder('openai.mjs'), codeUnder('JavaScript', 'js', topics.get('workloads')))
  const run = { cwd: folder.path, env: { ...env, HOME: folder.path }, program: [process.execPath] }
  expect(await runCommand([inFolder('openai.mjs')], run)).toEqual({ code: 0, stdout: 'Hello\n', stderr: '' })
})
