// `dev`: what it prints works when pasted, again after a restart, and its test issuer is never let into a database that is not dev's.
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createEchoUpstream } from '../../scripts/dev/echo-upstream.ts'
import { compiledProgram } from '../support/compiled-program.ts'
import {
  listenLocally,
  mintAt,
  postExchange,
  runCommand,
  type ServingProcess,
  startServing,
  temporaryFolder,
} from '../support/latchkey.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())
let cwd = ''
let folders = 0
beforeEach(() => {
  cwd = join(folder.path, String(++folders))
  mkdirSync(cwd)
})

const anyPort = ['--listen', '127.0.0.1:0']
const databaseUrl = 'file:latchkey-dev/latchkey.db'

async function exchangeAt({ facts }: ServingProcess): Promise<string> {
  const subject_token = await mintAt(facts.issuer_url ?? '', { sub: 'my-workload', aud: 'latchkey' })
  const response = await postExchange(facts.base_url ?? '', { federation_policy_id: facts.policy_id, subject_token })
  expect(response.status).toBe(200)
  return ((await response.json()) as { access_token: string }).access_token
}

test.skipIf(!Bun.which('bash') || !Bun.which('curl'))('its lines work when pasted', async () => {
  const program = [...compiledProgram(), 'dev', ...anyPort]
  const dev = Bun.spawn(program, { cwd, env: {}, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  let banner = ''
  for await (const chunk of dev.stdout) {
    banner += Buffer.from(chunk).toString()
    if (banner.includes('Stop with')) break
  }
  // The package is not to be fetched here: the same Bun runs already.
  const lines = banner
    .slice(banner.indexOf('# 1.'), banner.indexOf('Stop with'))
    .replaceAll('npx --yes bun@1.4.5', 'bun')
  const env = { PATH: `${process.env.PATH}:${process.execPath.slice(0, process.execPath.lastIndexOf('/'))}` }
  const pasted = await runCommand(['-c', lines], { cwd, env, program: ['bash'] })
  expect(pasted).toMatchObject({ code: 0, stderr: '' })
  expect(pasted.stdout).toContain('"content":"Hello from a workload"')
  expect(pasted.stdout).toContain('"content":"Hello by name"')
  expect(pasted.stdout).toContain('brief is active, with version 1 in use; stored: model, temperature, system prompt')
  expect(pasted.stdout).toContain('"requests":2')
  expect(pasted.stdout).toMatch(/^TIME.*\n.* dev +echo +brief@1 +configured +200 +\d+ +- +dev +my-workload /m)
  expect(pasted.stdout).toMatch(/^TIME.*OUTCOME.*\n.* issued /m)
  expect(pasted.stdout).toContain('"token_type":"Bearer"')
  dev.kill('SIGTERM')
  expect(await dev.exited).toBe(0)
})

test('a second start finds everything in place', async () => {
  const policyIds: (string | undefined)[] = []
  for (const _ of [1, 2]) {
    const dev = await startServing(['dev', ...anyPort], { cwd })
    policyIds.push(dev.facts.policy_id)
    await exchangeAt(dev)
    expect(await dev.stop()).toBe(0)
  }
  expect(policyIds[1]).toBe(policyIds[0])
})

test('a terminal that closes (SIGHUP) stops it in order', async () => {
  const dev = await startServing(['dev', ...anyPort], { cwd })
  await exchangeAt(dev)
  expect(await dev.stop('SIGHUP')).toBe(0)
})

test('an upstream that is set takes the place of the echo', async () => {
  const { url, listener } = await listenLocally(createEchoUpstream('own-secret'))
  const env = { LATCHKEY_UPSTREAM_API_KEY: 'own-secret' }
  const dev = await startServing(['dev', ...anyPort, '--upstream-url', `${url}/v1`], { cwd, env })
  expect(dev.facts.upstream).toBe(`${url}/v1`)
  const headers = { authorization: `Bearer ${await exchangeAt(dev)}` }
  expect((await fetch(`${dev.facts.base_url}/models`, { headers })).status).toBe(200)
  await dev.stop()
  await listener.drain()
})

describe('it refuses', () => {
  const refuses = (args: string[] = []) => runCommand(['dev', ...anyPort, ...args], { cwd })

  test('a database that it did not make, and leaves it as it was', async () => {
    const here = ['--database-url', databaseUrl]
    expect((await runCommand(['init', ...here], { cwd })).code).toBe(0)
    const { code, stderr } = await refuses()
    expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('not created by dev') })
    const { stdout } = await runCommand(['issuers', 'list', '--json', ...here], { cwd })
    expect(JSON.parse(stdout)).toEqual({ data: [] })
  })

  test('to start twice', async () => {
    const dev = await startServing(['dev', ...anyPort], { cwd })
    const { code, stderr } = await refuses()
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('is already running') })
    await exchangeAt(dev)
    await dev.stop()
  })
})
