// `latchkey token` as programs run it: against a real server, many at once, and against servers and folders that mean harm.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import packageJson from '../../package.json' with { type: 'json' }
import {
  type Federation,
  listenLocally,
  runCommand,
  startFederation,
  subject,
  temporaryFolder,
} from '../support/latchkey.ts'
import { workloadEnv } from '../support/workload-env.ts'

const accessToken = /^ey[\w-]+\.[\w-]+\.[\w-]+\n$/
let federation: Federation
let folder: ReturnType<typeof temporaryFolder>
let env: Record<string, string>

beforeAll(async () => {
  federation = await startFederation()
})
afterAll(() => federation.stop())
beforeEach(async () => {
  folder = temporaryFolder()
  env = {
    PATH: process.env.PATH ?? '',
    XDG_RUNTIME_DIR: folder.path,
    ...(await workloadEnv(federation, inFolder('jwt'))),
  }
})
afterEach(() => folder.remove())

const inFolder = (name: string) => join(folder.path, name)
const run = (args: string[] = [], more: Record<string, string> = {}) =>
  runCommand(['token', ...args], { cwd: folder.path, env: { ...env, ...more } })
const cached = () => readdirSync(inFolder('latchkey'))

test('prints a token that the server accepts, and again the same one until it is forced', async () => {
  const first = await run()
  expect(first).toEqual({ code: 0, stdout: expect.stringMatching(accessToken), stderr: '' })
  const headers = { authorization: `Bearer ${first.stdout.trim()}` }
  expect((await fetch(`${federation.server.baseUrl}/models`, { headers })).status).toBe(200)
  expect((await run()).stdout).toBe(first.stdout)
  const forced = await run(['--fresh', '--json'])
  const { access_token: token, expires_at: expiry } = JSON.parse(forced.stdout) as Record<string, string>
  expect(`${token}\n`).toMatch(accessToken)
  expect(token).not.toBe(first.stdout.trim())
  const minutes = (Date.parse(expiry ?? '') - Date.now()) / 60_000
  expect(minutes).toBeGreaterThan(2)
  expect(minutes).toBeLessThanOrEqual(15)
})

test('keeps the token where only its user can read it, by a name that says nothing', async () => {
  await run()
  expect(statSync(inFolder('latchkey')).mode & 0o777).toBe(0o700)
  expect(cached()).toEqual([expect.stringMatching(/^[0-9a-f]{32}\.json$/)])
  expect(statSync(inFolder(join('latchkey', cached()[0] ?? ''))).mode & 0o777).toBe(0o600)
})

test('renews a token with less than two minutes left, and ignores a damaged one', async () => {
  const first = await run()
  const path = inFolder(join('latchkey', cached()[0] ?? ''))
  const put = (seconds: number) => {
    const token = { text: 'a.b.c', issuedAt: Date.now() - 60_000, expiresAt: Date.now() + seconds * 1000 }
    writeFileSync(path, JSON.stringify(token))
  }
  put(300)
  expect((await run()).stdout).toBe('a.b.c\n')
  put(119)
  const renewed = await run()
  expect(renewed.stdout).toMatch(accessToken)
  expect(renewed.stdout).not.toBe(first.stdout)
  writeFileSync(path, '{"text":')
  expect((await run()).stdout).toMatch(accessToken)
})

test('does not give the token of one job to another job of the same user', async () => {
  const job = async () => ({ LATCHKEY_IDENTITY: '', GITLAB_CI: 'true', LATCHKEY_JWT: await federation.mint() })
  const [one, other] = [await job(), await job()]
  const first = await run([], one)
  expect((await run([], one)).stdout).toBe(first.stdout)
  expect((await run([], other)).stdout).not.toBe(first.stdout)
})

test('makes one exchange for 20 processes at once', async () => {
  const held = Promise.withResolvers<void>()
  let exchanges = 0
  const server = await listenLocally(async (request) => {
    exchanges += 1
    await held.promise
    return passOn(request)
  })
  const running = Array.from({ length: 20 }, () => run([], { LATCHKEY_URL: `${server.url}/v1` }))
  // This one starts after the 20 and ends while they wait, so they have come as far as the exchange.
  expect((await run()).code).toBe(0)
  held.resolve()
  const printed = await Promise.all(running)
  expect(printed.map(({ code }) => code)).toEqual(Array(20).fill(0))
  expect(new Set(printed.map(({ stdout }) => stdout)).size).toBe(1)
  expect(exchanges).toBe(1)
  await server.listener.drain()
}, 60_000)

test('removes the token of a job that ended a day ago', async () => {
  await run()
  const path = inFolder(join('latchkey', cached()[0] ?? ''))
  const dayAgo = new Date(Date.now() - 25 * 3_600_000)
  utimesSync(path, dayAgo, dayAgo)
  await run(['--audience', 'other'])
  expect(existsSync(path)).toBe(false)
  expect(cached()).toHaveLength(1)
})

test('does not wait for a process that was killed while it exchanged', async () => {
  await run()
  const dead = Bun.spawn(['true'])
  await dead.exited
  const lock = inFolder(join('latchkey', (cached()[0] ?? '').replace('.json', '.lock')))
  writeFileSync(lock, `${dead.pid} ${hostname()}`)
  expect((await run(['--fresh'])).stdout).toMatch(accessToken)
  expect(existsSync(lock)).toBe(false)
})

/** Sends an exchange on to the real server. */
async function passOn(request: Request): Promise<Response> {
  const body = new URLSearchParams(await request.text())
  return fetch(`${federation.server.baseUrl}/oauth/token`, { method: 'POST', body })
}

describe('prints nothing on standard output, and', () => {
  test("reports the server's sentence, the request id, the claims and what to check", async () => {
    writeFileSync(inFolder('jwt'), await federation.mint({ aud: 'another' }))
    const refused = await run()
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toMatch(/^latchkey: The subject token was not accepted.*\(request id [\w-]+\)$/m)
    expect(refused.stderr).toContain(`sub "${subject}", aud "another", exp 20`)
    expect(refused.stderr).toContain('issuer, audience and subject or condition match the JWT')
    expect(refused.stderr).toMatch(/latchkey audit show [\w-]+$/m)
    expect(refused.stderr).not.toContain('eyJ')
    expect(cached()).toEqual([expect.stringMatching(/\.failure$/)])
  })

  test('names a missing option or identity, or a URL that is not encrypted', async () => {
    const cases: [args: string[], more: Record<string, string>, code: number, stderr: string][] = [
      [[], { LATCHKEY_URL: '' }, 2, 'LATCHKEY_URL is not set'],
      [[], { LATCHKEY_POLICY: '' }, 2, 'LATCHKEY_POLICY is not set'],
      [[], { LATCHKEY_IDENTITY: '' }, 1, 'No identity was found in this environment: people run latchkey login URL'],
      [[], { LATCHKEY_IDENTITY: 'vault' }, 2, 'is not a valid value for --identity'],
      [['--url', 'http://llm.example.com/v1'], {}, 2, '--url must start with https://'],
      [['--url', 'https://user:password@llm.example.com/v1'], {}, 2, '--url must not contain credentials'],
      [['--url', `${federation.server.baseUrl}/v2`], {}, 1, 'it ends in /v1'],
      [[], { LATCHKEY_IDENTITY: 'command:exit 3' }, 1, 'it ended with exit code 3'],
    ]
    for (const [args, more, code, stderr] of cases)
      expect(await run(args, more)).toEqual({ code, stdout: '', stderr: expect.stringContaining(stderr) })
  }, 60_000)

  const hostile: [name: string, respond: () => Response, stderr: string][] = [
    [
      'follows no redirect',
      () => Response.redirect('http://127.0.0.1:1/steal', 307),
      'a redirect, which is not followed',
    ],
    ['reads no endless body', () => new Response(endless()), 'sent more than 64 KB'],
    ['accepts no page for a token', () => new Response('<html>'), 'did not send an access token'],
    [
      'accepts no token with a line break',
      () => Response.json({ access_token: 'a\nb', token_type: 'Bearer', expires_in: 9 }),
      'did not send an access token',
    ],
    [
      'shows no control characters',
      () => Response.json({ error: 'invalid_grant', error_description: 'no\u001b[2J\u0007' }, { status: 400 }),
      'latchkey: no',
    ],
  ]
  for (const [name, respond, stderr] of hostile) {
    test(`${name} of a hostile server`, async () => {
      const agents: (string | null)[] = []
      const server = await listenLocally(async (request) => {
        agents.push(request.headers.get('user-agent'))
        return respond()
      })
      const failed = await run([], { LATCHKEY_URL: `${server.url}/v1` })
      expect(failed).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining(stderr) })
      expect(failed.stderr).not.toContain('\u001b')
      expect(agents).toEqual([`latchkey-agent/${packageJson.version}`])
      await server.listener.drain()
    })
  }
})

/** A body that never ends; its reader cancels it. */
function endless(): ReadableStream<Uint8Array> {
  const chunk = new Uint8Array(16 * 1024).fill(0x20)
  return new ReadableStream({ pull: (controller) => controller.enqueue(chunk) })
}

describe('refuses', () => {
  const isRoot = process.getuid?.() === 0
  const places: [name: string, make: () => void, stderr: string][] = [
    [
      'a link in the place of the folder',
      () => {
        mkdirSync(inFolder('elsewhere'), { mode: 0o700 })
        symlinkSync(inFolder('elsewhere'), inFolder('latchkey'))
      },
      'is a symbolic link',
    ],
    ['a folder that others can open', () => open(0o755), 'is open to other users'],
    ['a file in the place of the folder', () => writeFileSync(inFolder('latchkey'), ''), 'is not a folder'],
  ]
  const open = (mode: number) => {
    mkdirSync(inFolder('latchkey'))
    chmodSync(inFolder('latchkey'), mode)
  }
  const refusesFolder = async (make: () => void, stderr: string) => {
    make()
    expect(await run()).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining(stderr) })
  }
  for (const [name, make, stderr] of places) test(name, () => refusesFolder(make, stderr))

  test.skipIf(!isRoot)("another user's folder (needs root)", () =>
    refusesFolder(() => {
      open(0o700)
      chownSync(inFolder('latchkey'), 65_534, 65_534)
    }, 'belongs to another user'),
  )

  test('a link in the place of the token, and a token that others can read', async () => {
    await run()
    const path = inFolder(join('latchkey', cached()[0] ?? ''))
    chmodSync(path, 0o644)
    expect(await run()).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('open to other users') })
    rmSync(path)
    symlinkSync(inFolder('jwt'), path)
    expect(await run()).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('is a symbolic link') })
  })
})

test.skipIf(process.platform !== 'linux')('puts neither token into the arguments of a process', async () => {
  const jwt = await federation.mint()
  const seen: string[] = []
  const server = await listenLocally(async (request) => {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
      seen.push(
        await Bun.file(`/proc/${pid}/cmdline`)
          .text()
          .catch(() => ''),
      )
    return passOn(request)
  })
  const { code, stdout } = await run([], { LATCHKEY_URL: `${server.url}/v1`, LATCHKEY_IDENTITY: 'env:JWT', JWT: jwt })
  expect(code).toBe(0)
  expect(seen.some((line) => line.includes('latchkey\0token'))).toBe(true)
  expect(seen.filter((line) => line.includes(jwt) || line.includes(stdout.trim()))).toEqual([])
  await server.listener.drain()
})

test('loads no database, and nothing else that is heavy', async () => {
  const main = join(import.meta.dirname, '../../scripts/latchkey.ts')
  const script = `process.on('exit', () => console.log(Object.keys(require.cache).join('\\n')))
    await (await import(${JSON.stringify(main)})).runLatchkey(['token'])`
  const { stdout } = await runCommand([], { cwd: folder.path, env, program: [process.execPath, '-e', script] })
  const packages = [...stdout.matchAll(/node_modules\/((?:@[^/]+\/)?[^/\n]+)/g)].map(([, name]) => name)
  expect(stdout).toContain('src/agent/access-token.ts')
  expect(new Set(packages)).toEqual(new Set(['commander', 'ipaddr.js']))
  expect(stdout).not.toContain('/db/file/open.ts')
})
