// Whom the record of a change names: the operating-system user of the command, with a server and without, and nobody whom no command named.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { request } from 'node:http'
import type { Server } from '../../../src/server/server.ts'
import { socketPathFor } from '../../../src/settings/config.ts'
import { onFile } from '../../support/file-only.ts'
import { serveInProcess } from '../../support/in-process.ts'
import { type Installation, install } from '../../support/installation.ts'
import { type Finished, runCommand } from '../../support/latchkey.ts'

type Change = Record<string, unknown> & { after: { name?: string; slug?: string } }
const user = Bun.spawnSync(['id', '-un']).stdout.toString().trim()

let installation: Installation
beforeEach(async () => {
  installation = await install()
})
afterEach(() => installation.remove())

/** A command with more in its environment. */
const runWith = (env: Record<string, string>, ...args: string[]): Promise<Finished> =>
  runCommand(args, { cwd: installation.folder, env: { ...installation.env, ...env } })

async function lastChange(): Promise<Change | undefined> {
  const { stdout } = await installation.run('audit', 'changes', '--limit', '1', '--json')
  return (JSON.parse(stdout) as { data: Change[] }).data[0]
}

/** Sends an operation to the socket as any program may. */
function post(socketPath: string, name: string, input: object, headers: Record<string, string>) {
  return new Promise<{ status: number; text: string }>((resolve, reject) => {
    const call = request({ socketPath, method: 'POST', path: `/operations/${name}`, headers }, (response) => {
      let text = ''
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString()
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    call.on('error', reject)
    call.end(JSON.stringify(input))
  })
}

for (const isServed of [false, true]) {
  describe(`a change by a command ${isServed ? 'that a server makes' : 'without a server'}`, () => {
    let stop = async () => {}
    beforeEach(async () => {
      if (!isServed) return
      stop = (await serveInProcess(installation.env)).stop
    })
    afterEach(() => stop())

    test('names its user, whatever the environment says of them', async () => {
      await runWith({ USER: 'mallory', LOGNAME: 'mallory' }, 'keys', 'create', '--name', 'one')
      expect(await lastChange()).toMatchObject({
        actor: 'local',
        os_user: user,
        sudo_user: null,
        after: { name: 'one' },
      })
    })

    test('names who used sudo beside it, in the table too', async () => {
      await runWith({ SUDO_USER: 'ada' }, 'keys', 'create', '--name', 'one')
      expect(await lastChange()).toMatchObject({ os_user: user, sudo_user: 'ada' })
      const { stdout } = await installation.run('audit', 'changes', '--limit', '1')
      expect(stdout.split('\n')[1]?.split(/ {2,}/)[2]).toBe(`local (${user}, sudo by ada)`)
    })

    test('names it for presets as well', async () => {
      const body = `${installation.folder}/body.json`
      await Bun.write(body, '{"model":"echo","messages":[{"role":"user","content":"x"}]}')
      await installation.run('presets', 'save', 'brief', body)
      expect(await lastChange()).toMatchObject({ os_user: user, after: { slug: 'brief' } })
    })
  })
}

onFile('local socket').describe('on the socket of a server', () => {
  let server: Server
  let socketPath: string
  beforeEach(async () => {
    server = await serveInProcess(installation.env)
    socketPath = socketPathFor(server.context.config) ?? ''
  })
  afterEach(() => server.stop())

  test('a request that names nobody is recorded without a name', async () => {
    expect(await post(socketPath, 'keys.create', { name: 'one' }, {})).toMatchObject({ status: 200 })
    expect(await lastChange()).toMatchObject({ actor: 'local', os_user: null, sudo_user: null })
  })

  for (const [name, value] of [
    ['a control character', encodeURIComponent('a\u001b[2J')],
    ['more than 256 characters', 'x'.repeat(257)],
    ['a broken escape', '%zz'],
  ] as const) {
    test(`a name with ${name} is refused`, async () => {
      const headers = { 'x-latchkey-os-user': value }
      expect(await post(socketPath, 'keys.create', { name: 'one' }, headers)).toMatchObject({ status: 400 })
    })
  }
})

test('over HTTP nobody can name a user, and none is shown', async () => {
  const server = await serveInProcess(installation.env)
  const baseUrl = `http://127.0.0.1:${server.address.port}/v1`
  const { key } = await server.runOperation('keys.create', { name: 'admin', kind: 'management' })
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'x-latchkey-os-user': 'mallory',
  }
  const made = await fetch(`${baseUrl}/keys`, { method: 'POST', headers, body: JSON.stringify({ name: 'one' }) })
  expect(made.status).toBe(201)
  expect(await lastChange()).toMatchObject({ actor: 'key', os_user: null })
  const listed = await fetch(`${baseUrl}/workload-identity/audit/changes`, { headers })
  for (const change of ((await listed.json()) as { data: Change[] }).data)
    expect(Object.keys(change)).not.toContainAnyValues(['os_user', 'sudo_user'])
  await server.stop()
})
