// One process holds a database file. A second server is refused; commands use the running server or wait for each other,
// with the same results.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { onFile } from '../support/file-only.ts'
import { type Installation, install, type Served, trust } from '../support/installation.ts'
import { postExchange, type ServingProcess, startServing } from '../support/latchkey.ts'
import { isServerKind } from '../support/server-kind.ts'

let installation: Installation
let running: ServingProcess[] = []
beforeEach(async () => {
  installation = await install()
})
afterEach(async () => {
  await Promise.all(running.map((serving) => serving.stop('SIGKILL')))
  running = []
  await installation.remove()
})

async function serve(): Promise<Served> {
  const served = await installation.serve()
  running.push(served.serving)
  return served
}

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

onFile('holder of the file').test(
  'a second server on the same file ends with a sentence, while the first keeps serving',
  async () => {
    const { baseUrl } = await serve()
    const { code: refused, stdout, stderr } = await installation.run('serve')
    expect({ refused, stdout }).toEqual({ refused: 1, stdout: '' })
    expect(stderr).toStartWith(
      `latchkey: Another server serves the database ${JSON.stringify(installation.databasePath)}`,
    )
    expect((await fetch(`${baseUrl}/oauth/jwks`)).status).toBe(200)
    const { code } = await installation.run('keys', 'create', '--name', 'after the attempt')
    expect(code).toBe(0)
  },
)

onFile('holder of the file').test(
  'of servers that start at the same time one serves, and the others say why they do not',
  async () => {
    const { folder: cwd, env } = installation
    const outcomes = await Promise.allSettled(Array.from({ length: 4 }, () => startServing(['serve'], { cwd, env })))
    running.push(...outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : [])))
    for (const reason of outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : [])))
      expect(String(reason)).toContain('exit code 1, {"error":{"code":"conflict"')
    expect(running.length).toBe(1)
    expect((await installation.run('keys', 'list')).code).toBe(0)
  },
)

test('a server that starts beside commands waits for them', async () => {
  const commands = Array.from({ length: 3 }, () => installation.run('keys', 'list'))
  const { baseUrl } = await serve()
  expect((await fetch(`${baseUrl}/oauth/jwks`)).status).toBe(200)
  expect((await Promise.all(commands)).map(({ code }) => code)).toEqual([0, 0, 0])
}, 60_000)

test('the upstream of the settings is listed and checked with and without a server', async () => {
  const answers = async () => {
    const [list, check] = await Promise.all(
      ['list', 'check'].map((verb) => installation.run('upstreams', verb, '--json')),
    )
    return { list, checked: check?.code, problem: JSON.parse(check?.stdout ?? '').data[0].problem }
  }
  const listed = ({ list }: Awaited<ReturnType<typeof answers>>) =>
    JSON.parse(list?.stdout ?? '').data.map((row: object) => ({ ...row, running: null, waiting: null }))
  const without = await answers()
  expect(JSON.parse(without.list?.stdout ?? '')).toMatchObject({ data: [{ name: 'configured', priority: 0 }] })
  expect(without).toMatchObject({ checked: 0, problem: null })
  await serve()
  // Only a server knows what runs.
  const served = await answers()
  expect([listed(served), served.checked, served.problem]).toEqual([listed(without), 0, null])
}, 60_000)

test('a server that has ended in order leaves the file and no socket to the next one', async () => {
  const first = await serve()
  await first.ask('keys.create', { name: 'kept' })
  expect(await first.serving.stop()).toBe(0)
  expect(existsSync(first.socketPath)).toBe(false)
  const second = await serve()
  expect(await second.ask('keys.show', { key: 'kept' })).toMatchObject({ name: 'kept' })
})

onFile('the file on disk').test('what the holder makes is for its user alone', async () => {
  rmSync(installation.folder, { recursive: true })
  expect((await installation.run('init')).code).toBe(0)
  const { socketPath } = await serve()
  expect(statSync(socketPath).isSocket()).toBe(true)
  expect(modeOf(socketPath)).toBe('600')
  expect(modeOf(installation.folder)).toBe('700')
  for (const name of ['latchkey.db', 'latchkey.db-wal', 'master.key'])
    expect(modeOf(join(installation.folder, name))).toBe('600')
})

test('commands answer alike, byte for byte, with a server and without', async () => {
  const served = await serve()
  const trusted = await trust(served, await installation.startIssuer())
  const exchanged = { federation_policy_id: trusted.policyId, subject_token: trusted.subjectToken }
  expect((await postExchange(served.baseUrl, exchanged)).status).toBe(200)
  expect((await postExchange(served.baseUrl, { ...exchanged, subject_token: 'bad' })).status).toBe(400)
  const called = await fetch(`${served.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${trusted.apiKey}` },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'one' }] }),
  })
  await called.text()
  await served.ask('keys.create', { name: 'read only', kind: 'management_read_only', owner: 'somebody' })
  await served.ask('policies.pause', { policy: 'steady' })
  await served.ask('keys.create', { name: 'gone' })
  await served.ask('keys.delete', { key: 'gone' })

  const commands = [
    ['organizations', 'list'],
    ['workspaces', 'list'],
    ['keys', 'list'],
    ['keys', 'show', 'read only'],
    ['issuers', 'list'],
    ['issuers', 'show', 'idp'],
    ['policies', 'list'],
    ['policies', 'show', 'steady'],
    ['usage'],
    ['audit', '--outcome', 'refused'],
    ['keys', 'show', 'gone'],
  ]
  // A node writes its last uses to a server database once a minute.
  const written = (text: string) => (isServerKind ? text.replaceAll(/"last_(used|refused)_\w+": .*/g, '') : text)
  // Nothing has fetched keys since its start without a server.
  const ofServer = (text: string) =>
    text.replace('"keys_fetched_since_start": true', '"keys_fetched_since_start": null')
  const json = async (args: string[]) => {
    const { stdout, ...more } = await installation.run(...args, '--json')
    return { ...more, stdout: written(ofServer(stdout)) }
  }
  const withServer = await Promise.all(commands.map(json))
  expect(await served.serving.stop()).toBe(0)
  const without: typeof withServer = []
  for (const args of commands) without.push(await json(args))

  for (const [index, args] of commands.entries()) {
    expect({ args, ...without[index] }).toEqual({ args, ...withServer[index] })
    expect(withServer[index]?.code).toBe(args.at(-1) === 'gone' ? 1 : 0)
  }
  for (const { stdout } of withServer.slice(0, -1)) expect(stdout).toMatch(/"(id|key_id)": /)
}, 60_000)

test('commands that start at once without a server wait for one another', async () => {
  const names = Array.from({ length: 10 }, (_, index) => `key ${index}`)
  const finished = await Promise.all(names.map((name) => installation.run('keys', 'create', '--name', name, '--json')))
  expect(finished.map(({ code, stderr }) => ({ code, stderr }))).toEqual(names.map(() => ({ code: 0, stderr: '' })))
  const listed = JSON.parse((await installation.run('keys', 'list', '--json')).stdout) as { data: { name: string }[] }
  expect(listed.data.map(({ name }) => name).toSorted()).toEqual(['first management key', ...names])
}, 60_000)

onFile('local socket').test(
  'a socket that a killed server has left behind stops neither commands nor a restart',
  async () => {
    const { serving, socketPath } = await serve()
    await serving.stop('SIGKILL')
    expect(statSync(socketPath).isSocket()).toBe(true)
    expect(await installation.run('keys', 'create', '--name', 'meanwhile')).toMatchObject({ code: 0, stderr: '' })
    const restarted = await serve()
    expect(await restarted.ask('keys.show', { key: 'meanwhile' })).toMatchObject({ name: 'meanwhile' })
    expect(modeOf(socketPath)).toBe('600')
  },
)

test('a change made by a command is in force in the server as soon as the command has ended', async () => {
  const { baseUrl, ask } = await serve()
  const { key } = await ask<{ id: string; key: string }>('keys.create', { name: 'app' })
  const listModels = () => fetch(`${baseUrl}/models`, { headers: { authorization: `Bearer ${key}` } })
  expect((await listModels()).status).toBe(200)
  expect((await installation.run('keys', 'disable', 'app')).code).toBe(0)
  expect((await listModels()).status).toBe(401)
  expect((await installation.run('keys', 'enable', 'app')).code).toBe(0)
  expect((await listModels()).status).toBe(200)
})
