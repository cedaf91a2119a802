// Settings changed in a running server, by signal and by command: what can change does, at the next request, and a wrong value changes nothing.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ReloadResult } from '../../src/settings/effective-settings.ts'
import { type Installation, install, type Served } from '../support/installation.ts'
import { postExchange } from '../support/latchkey.ts'
import { isServerKind } from '../support/server-kind.ts'
import { until } from '../support/until.ts'

let installation: Installation
let served: Served
/** What the upstream was sent. */
let authorizations: (string | null)[]
beforeEach(async () => {
  authorizations = []
  installation = await install(async (request) => {
    authorizations.push(request.headers.get('authorization'))
    return Response.json({ object: 'list', data: [] })
  })
})
afterEach(async () => {
  await served.serving.stop('SIGKILL')
  await installation.remove()
})

const file = () => join(installation.folder, 'latchkey.conf')
const write = (settings: Record<string, string>) =>
  writeFileSync(
    file(),
    Object.entries(settings)
      .map((pair) => `${pair.join('=')}\n`)
      .join(''),
  )

async function serveWith(settings: Record<string, string>): Promise<void> {
  write(settings)
  // The environment precedes the file.
  served = await installation.serve(undefined, {
    LATCHKEY_CONFIG: file(),
    LATCHKEY_RATE_LIMIT: '',
    LATCHKEY_UPSTREAM_API_KEY: '',
  })
}

/** By command, or by signal where there is no local socket; what the log then says is what the command prints. */
async function runReload(): Promise<{ code: number; stdout: string }> {
  if (!isServerKind) return installation.run('reload', '--json')
  const before = linesOf('reloaded').length
  served.serving.process.kill('SIGHUP')
  await until('the reload', () => linesOf('reloaded').length > before)
  const { changed, needs_restart, tls } = linesOf('reloaded').at(-1) ?? {}
  return { code: 0, stdout: JSON.stringify({ changed, needs_restart, tls }) }
}
const linesOf = (event: string) => {
  const lines = served.serving.stderr().split('\n')
  return lines.filter((line) => line.includes(`"${event}"`)).map((line) => JSON.parse(line) as Record<string, unknown>)
}
const exchange = async () => (await postExchange(served.baseUrl, { subject_token: 'x' })).status

describe('a reload changes', () => {
  test('the rate limit, and removes it', async () => {
    await serveWith({ LATCHKEY_RATE_LIMIT: '1', LATCHKEY_RATE_BURST: '1' })
    expect([await exchange(), await exchange()]).toEqual([400, 429])
    write({ LATCHKEY_RATE_LIMIT: '0' })
    const { code, stdout } = await runReload()
    expect(code).toBe(0)
    expect(JSON.parse(stdout) as ReloadResult).toEqual({
      changed: ['LATCHKEY_RATE_LIMIT', 'LATCHKEY_RATE_BURST'],
      needs_restart: [],
      tls: null,
    })
    expect([await exchange(), await exchange()]).toEqual([400, 400])
  })

  test('the trusted proxies', async () => {
    await serveWith({ LATCHKEY_RATE_LIMIT: '0' })
    const ask = async () => {
      const headers = { 'x-forwarded-for': '192.0.2.7' }
      const response = await fetch(`${served.baseUrl}/key`, { headers })
      const id = response.headers.get('x-request-id')
      await until('the log line', () => linesOf('request_refused').some(({ request_id }) => request_id === id))
      return linesOf('request_refused').find(({ request_id }) => request_id === id)?.client_address
    }
    expect(await ask()).toBe('127.0.0.1')
    write({ LATCHKEY_RATE_LIMIT: '0', LATCHKEY_TRUSTED_PROXIES: '127.0.0.1' })
    expect((await runReload()).code).toBe(0)
    expect(await ask()).toBe('192.0.2.7')
  })

  test('the credential of the upstream, which no output shows', async () => {
    await serveWith({ LATCHKEY_UPSTREAM_API_KEY: 'secret-one' })
    await served.ask('upstreams.check')
    write({ LATCHKEY_UPSTREAM_API_KEY: 'secret-two' })
    const { stdout } = await runReload()
    expect(JSON.parse(stdout) as ReloadResult).toMatchObject({ changed: ['LATCHKEY_UPSTREAM_API_KEY'] })
    await served.ask('upstreams.check')
    expect(authorizations).toEqual(['Bearer secret-one', 'Bearer secret-two'])
    await until('the log line', () => linesOf('reloaded').length === 1)
    expect(linesOf('started')[0]?.settings).toMatchObject({ LATCHKEY_UPSTREAM_API_KEY: 'set' })
    expect(stdout + served.serving.stderr()).not.toContain('secret-')
    const show = () => served.ask('upstreams.show', { upstream: 'configured' })
    expect(await show()).toMatchObject({ has_credential: true })
    write({})
    await runReload()
    expect(await show()).toMatchObject({ has_credential: false })
  })

  test('the log level, by signal', async () => {
    await serveWith({ LATCHKEY_RATE_LIMIT: '0' })
    write({ LATCHKEY_RATE_LIMIT: '0', LATCHKEY_LOG_LEVEL: 'debug' })
    served.serving.process.kill('SIGHUP')
    await until('the reload', () => linesOf('reloaded').length === 1)
    await fetch(`${served.baseUrl}/oauth/jwks`)
    await until('the request', () => linesOf('request').length === 1)
    expect(linesOf('request')[0]).toMatchObject({ level: 'debug', path: '/v1/oauth/jwks', status: 200 })
  })

  test('the access log: a file that was moved away is opened again, and another one is used from then on', async () => {
    const [one, two] = [join(installation.folder, 'one.log'), join(installation.folder, 'two.log')]
    const count = (path: string) => readFileSync(path, 'utf8').split('\n').length - 1
    const counts = (expected: Record<string, number>) =>
      until('the lines', () => Object.entries(expected).every(([path, lines]) => count(path) === lines))
    await serveWith({ LATCHKEY_ACCESS_LOG: one })
    await fetch(`${served.baseUrl}/oauth/jwks`)
    renameSync(one, `${one}.1`)
    await fetch(`${served.baseUrl}/oauth/jwks`)
    expect(existsSync(one)).toBe(false)
    expect((await runReload()).code).toBe(0)
    await fetch(`${served.baseUrl}/oauth/jwks`)
    await counts({ [`${one}.1`]: 2, [one]: 1 })

    write({ LATCHKEY_ACCESS_LOG: two })
    expect((await runReload()).code).toBe(0)
    await fetch(`${served.baseUrl}/oauth/jwks`)
    await counts({ [one]: 1, [two]: 1 })
  })
})

test('what needs a restart is named and stays as it was, however often the settings are reloaded', async () => {
  await serveWith({ LATCHKEY_RATE_LIMIT: '0' })
  write({ LATCHKEY_RATE_LIMIT: '0', LATCHKEY_MAX_BODY_MB: '1', LATCHKEY_SIGNING_KEY_DAYS: '7' })
  const expected = { changed: [], needs_restart: ['LATCHKEY_MAX_BODY_MB', 'LATCHKEY_SIGNING_KEY_DAYS'], tls: null }
  for (const { stdout } of [await runReload(), await runReload()]) expect(JSON.parse(stdout)).toEqual(expected)
  if (isServerKind) return
  const { stdout } = await installation.run('reload')
  expect(stdout).toContain('needs a restart: LATCHKEY_MAX_BODY_MB, LATCHKEY_SIGNING_KEY_DAYS')
})

describe('a wrong value changes nothing', () => {
  const wrong: [name: string, settings: Record<string, string>, why: string][] = [
    ['a value', { LATCHKEY_LOG_LEVEL: 'loud' }, '"loud" is not a valid value for LATCHKEY_LOG_LEVEL'],
    ['a name', { LATCHKEY_RATE: '1' }, '"LATCHKEY_RATE"'],
    ['an access log', { LATCHKEY_ACCESS_LOG: '/proc/none/access.log' }, 'LATCHKEY_ACCESS_LOG'],
  ]
  for (const [name, settings, why] of wrong) {
    test(`${name}: the command fails with the reason, the signal logs it, and the good values beside it are not used`, async () => {
      await serveWith({ LATCHKEY_RATE_LIMIT: '0' })
      write({ LATCHKEY_RATE_LIMIT: '1', LATCHKEY_RATE_BURST: '1', ...settings })
      const { code, stdout, stderr } = await installation.run('reload')
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toContain(isServerKind ? 'SIGHUP' : 'The server keeps its settings')
      expect(stderr).toContain(isServerKind ? '' : why)
      served.serving.process.kill('SIGHUP')
      await until('every line', () => linesOf('reload_failed').length === (isServerKind ? 1 : 2))
      expect(linesOf('reload_failed').at(-1)).toMatchObject({ level: 'error', reason: expect.stringContaining(why) })
      expect([await exchange(), await exchange()]).toEqual([400, 400])
    })
  }
})

test('without a server, the command fails and says so', async () => {
  await serveWith({})
  await served.serving.stop()
  const { code, stderr } = await installation.run('reload')
  expect(code).toBe(1)
  expect(stderr).toContain(isServerKind ? 'have no local socket: send SIGHUP' : 'No server runs on the database')
})
