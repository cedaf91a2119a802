// The helper of a workload as users run it: the program itself, and the portable file on Bun, Node and Deno.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import { OpenRouter } from '@openrouter/sdk'
import OpenAI from 'openai'
import packageJson from '../../package.json' with { type: 'json' }
import { agentCommand } from '../../scripts/agent.ts'
import { buildPortableFiles, portableBytesMax } from '../../scripts/build/release/portable-files.ts'
import { execCommand } from '../../scripts/exec.ts'
import { tokenCommand } from '../../scripts/token.ts'
import { compiledProgram } from '../support/compiled-program.ts'
import { type Federation, listenLocally, runCommand, startFederation, temporaryFolder } from '../support/latchkey.ts'
import { commandClient, type PeopleProvider, startPeopleProvider } from '../support/people-provider.ts'
import { openPersonBrowser } from '../support/person-browser.ts'
import { openRawRequest } from '../support/raw-request.ts'
import { type RecordingProxy, startRecordingProxy } from '../support/recording-proxy.ts'
import { runtimes } from '../support/runtimes.ts'
import { until } from '../support/until.ts'
import { workloadEnv } from '../support/workload-env.ts'

const folder = temporaryFolder()
const inFolder = (name: string) => join(folder.path, name)
const question = [{ role: 'user' as const, content: 'Hello from a workload' }]
let federation: Federation
let env: Record<string, string>
let proxy: RecordingProxy
let provider: PeopleProvider

beforeAll(async () => {
  proxy = await startRecordingProxy()
  await buildPortableFiles(folder.path, 'test')
  federation = await startFederation()
  await offerLogin()
  env = {
    PATH: process.env.PATH ?? '',
    HOME: folder.path,
    XDG_RUNTIME_DIR: folder.path,
    ...(await workloadEnv(federation, inFolder('jwt'))),
    ANTHROPIC_API_KEY: 'of-another-service',
    // Deno would ask for its newest version through the proxy.
    DENO_NO_UPDATE_CHECK: '1',
  }
})
afterAll(async () => {
  await federation.stop()
  await provider.stop()
  proxy.stop()
  folder.remove()
})

/** Lets a person sign in with `login`. */
async function offerLogin(): Promise<void> {
  provider = await startPeopleProvider({ clients: [commandClient] })
  provider.people.set('ada', { email: 'ada@example.com', groups: ['llm-users'] })
  provider.who = 'ada'
  const { admin } = federation
  const issuer = { name: 'staff', issuer_url: provider.issuerUrl, shared: false, login_client_id: 'latchkey-cli' }
  await admin('issuers.add', issuer)
  const policy = { name: 'developers', issuer: 'staff', key: 'target', audience: 'latchkey-cli' }
  await admin('policies.create', { ...policy, condition: '"llm-users" in claims.groups' })
}

/** Runs `login` as a person does, whose browser opens the link that it shows. */
async function logIn(program: string[], person: Record<string, string>): Promise<{ code: number; stderr: string }> {
  const command = [...program, 'login', federation.server.baseUrl]
  const child = Bun.spawn(command, { cwd: folder.path, env: person, stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
  let stderr = ''
  for await (const chunk of child.stderr) {
    stderr += new TextDecoder().decode(chunk)
    const link = /http:\S+\/start\/\S+(?=\n)/.exec(stderr)?.[0]
    if (link !== undefined) await openPersonBrowser().open(link)
  }
  return { code: await child.exited, stderr }
}

const programs: [name: string, program: string[] | undefined][] = [
  ['the program', compiledProgram()],
  ...runtimes.map(([name, command]): [string, string[] | undefined] => [
    `the portable file on ${name}`,
    command === undefined ? undefined : [...command, inFolder('latchkey-agent.mjs')],
  ]),
]

type RunningAgent = { url: string; lines: () => Record<string, string>[]; stop: () => Promise<number> }

/** Starts an agent and waits for its address and its first token. Its standard error goes to a file. */
async function startAgent(program: string[], args: string[], more: Record<string, string> = {}): Promise<RunningAgent> {
  const errors = Bun.file(inFolder(`agent-${crypto.randomUUID()}.log`))
  const command = [...program, 'agent', ...args]
  const child = Bun.spawn(command, { cwd: folder.path, env: { ...env, ...more }, stdin: 'ignore', stderr: errors })
  const text = () => readFileSync(errors.name ?? '', 'utf8')
  const lines = () =>
    text()
      .trim()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, string>)
  const has = (event: string) => lines().find((line) => line.event === event)
  await until('the first token', () => has('token_renewed') !== undefined || child.exitCode !== null, text)
  return {
    url: has('listening')?.address ?? '',
    lines,
    stop: () => {
      child.kill('SIGTERM')
      return child.exited
    },
  }
}

for (const [name, program] of programs) {
  describe.skipIf(program === undefined)(`${name} (needs its runtime)`, () => {
    const run = (args: string[], more: Record<string, string> = {}) =>
      runCommand(args, { cwd: folder.path, env: { ...env, ...more }, program })

    test('token prints a token that the server accepts', async () => {
      const { code, stdout, stderr } = await run(['token', '--fresh'])
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      const headers = { authorization: `Bearer ${stdout.trim()}` }
      expect((await fetch(`${federation.server.baseUrl}/models`, { headers })).status).toBe(200)
    })

    test('a proxy sees nothing of token, exec and agent, nor of the platform that gives the JWT, on this machine', async () => {
      const metadata = await listenLocally(async () => Response.json({ access_token: await federation.mint() }))
      const azure = { IDENTITY_ENDPOINT: metadata.url, IDENTITY_HEADER: 'secret', LATCHKEY_IDENTITY: 'azure' }
      const ways = [
        ['token', '--fresh'],
        ['exec', '--inject', 'agent', '--', 'true'],
        ['exec', '--inject', 'token', '--', 'sh', '-c', 'echo $no_proxy'],
      ]
      for (const identity of [{}, { ...azure, LATCHKEY_AUDIENCE: 'latchkey' }])
        for (const args of ways) {
          const { code, stderr } = await run(args, { ...proxy.env, ...identity })
          expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' })
        }
      const agent = await startAgent(program ?? [], ['--listen', '127.0.0.1:0'], proxy.env)
      expect((await fetch(`${agent.url}/models`)).status).toBe(200)
      const address = new URL(agent.url).host
      expect((await run(['agent', '--listen', address, '--ready'], proxy.env)).code).toBe(0)
      expect(await agent.stop()).toBe(0)
      await metadata.listener.drain()
      expect(proxy.seen).toEqual([])
    })

    // test/agent/login.test.ts runs the same code on Bun.
    if (!name.endsWith('on Bun'))
      test('login signs a person in, token uses it, and logout leaves nothing', async () => {
        const state = inFolder(`state of ${name}`)
        const { PATH = '', HOME = '' } = env
        const person = {
          PATH,
          HOME,
          XDG_STATE_HOME: state,
          XDG_RUNTIME_DIR: state,
          BROWSER: 'true',
          DENO_NO_UPDATE_CHECK: '1',
        }
        const { code, stderr } = await logIn(program ?? [], person)
        expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringMatching(/ey[\w-]+\.ey/) })
        const asPerson = (...args: string[]) =>
          runCommand(args, { cwd: folder.path, env: person, program: program ?? [] })
        const token = await asPerson('token')
        expect(token.stderr).toBe('')
        const headers = { authorization: `Bearer ${token.stdout.trim()}` }
        expect((await fetch(`${federation.server.baseUrl}/models`, { headers })).status).toBe(200)
        expect((await asPerson('logout')).code).toBe(0)
        expect(readdirSync(join(state, 'latchkey'))).toEqual([])
      })

    test('agent serves the clients of OpenAI, OpenRouter and Anthropic, refuses pages, and ends on SIGTERM', async () => {
      const file = inFolder('token')
      const agent = await startAgent(program ?? [], ['--listen', '127.0.0.1:0', '--write', file])
      const openai = new OpenAI({ baseURL: agent.url, apiKey: 'unused', maxRetries: 0 })
      const chat = await openai.chat.completions.create({ model: 'echo', messages: question })
      expect(chat.choices[0]?.message.content).toBe('Hello from a workload')
      const stream = await openai.chat.completions.create({ model: 'echo', messages: question, stream: true })
      const parts: string[] = []
      for await (const { choices } of stream) parts.push(choices[0]?.delta.content ?? '')
      expect(parts.filter((part) => part !== '').length).toBeGreaterThan(2)
      const openrouter = new OpenRouter({ serverURL: agent.url, apiKey: 'unused', retryConfig: { strategy: 'none' } })
      const routed = await openrouter.chat.send({ chatRequest: { model: 'echo', messages: question } })
      expect(JSON.stringify(routed)).toContain('Hello from a workload')
      const anthropic = new Anthropic({ baseURL: agent.url.replace('/v1', ''), authToken: 'unused', maxRetries: 0 })
      const message = await anthropic.messages.create({ model: 'echo', max_tokens: 16, messages: question })
      expect(JSON.stringify(message.content)).toContain('Hello from a workload')
      for (const header of ['origin', 'host']) {
        const { socket, answer } = openRawRequest(`${agent.url}/models`, 'GET', { [header]: 'http://evil.example.com' })
        expect((await answer).status).toBe(403)
        socket.destroy()
      }
      expect(statSync(file).mode & 0o777).toBe(0o600)
      const headers = { authorization: `Bearer ${readFileSync(file, 'utf8')}` }
      expect((await fetch(`${federation.server.baseUrl}/models`, { headers })).status).toBe(200)
      expect(await agent.stop()).toBe(0)
      expect(agent.lines().map(({ event }) => event)).toContain('stopping')
    })

    const needsCurl = test.skipIf(Bun.which('curl') === null)
    needsCurl('exec gives the command an address and a secret, and passes on its exit code (needs curl)', async () => {
      const script = `
        test -z "$ANTHROPIC_API_KEY" && test "$OPENAI_BASE_URL" = "$ANTHROPIC_BASE_URL/v1" || exit 9
        curl -s "$OPENAI_BASE_URL/models" -o /dev/null -w '%{http_code} '
        curl -s "$OPENAI_BASE_URL/models" -H "Authorization: Bearer $OPENAI_API_KEY" -o /dev/null -w '%{http_code}'
        exit 7`
      expect(await run(['exec', '--', 'sh', '-c', script])).toEqual({ code: 7, stdout: '401 200', stderr: '' })
    })

    test('exec ends with 128 and the number of the signal that ended the command, which needs no --', async () => {
      const child = Bun.spawn(
        [...(program ?? []), 'exec', '--inject', 'agent', 'sh', '-c', 'echo started; exec sleep 60'],
        {
          cwd: folder.path,
          env,
          stdin: 'ignore',
          stdout: 'pipe',
        },
      )
      await child.stdout.getReader().read()
      child.kill('SIGTERM')
      expect(await child.exited).toBe(143)
    })

    test('agent ends as usual when nobody reads its lines any more', async () => {
      const command = [...(program ?? []), 'agent', '--listen', '127.0.0.1:0']
      const child = Bun.spawn(command, { cwd: folder.path, env, stdin: 'ignore', stderr: 'pipe' })
      const lines = child.stderr.getReader()
      await lines.read()
      await lines.cancel()
      child.kill('SIGTERM')
      expect(await child.exited).toBe(0)
    })

    test('a missing option or command, and one that does not exist, are wrong usage', async () => {
      const wrong: [args: string[], stderr: string][] = [
        [['agent', '--listen', '0.0.0.0:1'], '--listen must not be 0.0.0.0'],
        [['exec', '--', ''], 'The command is missing'],
        [['exec', '--inject', 'all', '--', 'true'], '"all" is not a valid value for --inject: use agent or token'],
      ]
      for (const [args, stderr] of wrong)
        expect(await run(args)).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(stderr) })
    })
  })
}

const needsProcesses = test.skipIf(process.platform !== 'linux')
needsProcesses('exec puts no secret into the arguments of a process (needs /proc)', async () => {
  const script = "printf '%s\\n' \"$OPENAI_API_KEY\"; cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; true"
  for (const inject of ['agent', 'token']) {
    const { code, stdout } = await runCommand(['exec', '--inject', inject, '--', 'sh', '-c', script], {
      cwd: folder.path,
      env,
    })
    const [secret = '', ...seen] = stdout.split('\n')
    expect(code).toBe(0)
    expect(secret.length).toBeGreaterThan(40)
    expect(seen.join()).toContain(`exec --inject ${inject} `)
    expect(seen.join()).not.toContain(secret)
  }
})

test('the portable file is small, lists its commands and options, and names a command that it does not have', async () => {
  expect(statSync(inFolder('latchkey-agent.mjs')).size).toBeLessThan(portableBytesMax)
  const run = (...args: string[]) =>
    runCommand(args, { cwd: folder.path, env, program: [process.execPath, inFolder('latchkey-agent.mjs')] })
  const overview = await run('--help')
  for (const made of [tokenCommand(), execCommand(), agentCommand()]) {
    expect(overview.stdout).toContain(`  ${made.name()} `)
    const { stdout } = await run(made.name(), '--help')
    const listed = [...stdout.matchAll(/^ +(--[\w-]+)/gm)].map(([, flag]) => flag)
    const shown = made.options.filter(({ hidden }) => !hidden)
    expect(listed).toEqual(shown.map(({ long }) => long ?? ''))
  }
  expect((await run('--version')).stdout).toBe(`${packageJson.version}\n`)
  expect(await run('serve')).toMatchObject({ code: 2, stderr: expect.stringContaining('"serve" is not a command') })
  expect(await run('token', '--none')).toMatchObject({ code: 2, stderr: expect.stringContaining('--none') })
})
