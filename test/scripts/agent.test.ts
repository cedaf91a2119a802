// `latchkey agent` as a service runs it: what it writes and signals, its socket, its secret, and a server that is not there yet.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { compiledProgram } from '../support/compiled-program.ts'
import { type Federation, runCommand, startFederation, temporaryFolder } from '../support/latchkey.ts'
import { until } from '../support/until.ts'
import { workloadEnv } from '../support/workload-env.ts'

const folder = temporaryFolder()
const inFolder = (name: string) => join(folder.path, name)
let federation: Federation
let env: Record<string, string>

beforeAll(async () => {
  federation = await startFederation()
  env = {
    PATH: process.env.PATH ?? '',
    ...(await workloadEnv(federation, inFolder('jwt'))),
    LOCAL_SECRET: 'local-secret',
  }
})
afterAll(async () => {
  await federation.stop()
  folder.remove()
})

const run = (args: string[], more: Record<string, string> = {}) =>
  runCommand(['agent', ...args], { cwd: folder.path, env: { ...env, ...more } })

/** Starts an agent; `saw` resolves with the first line of an event. */
function start(args: string[], more: Record<string, string> = {}) {
  const errors = inFolder(`${crypto.randomUUID()}.log`)
  const command = [...compiledProgram(), 'agent', ...args]
  const child = Bun.spawn(command, {
    cwd: folder.path,
    env: { ...env, ...more },
    stdin: 'ignore',
    stderr: Bun.file(errors),
  })
  const lines = () => readFileSync(errors, 'utf8').split('\n')
  const saw = (event: string) =>
    until(event, () => lines().find((line) => line.includes(`"event":"${event}"`)), lines).then(
      (line) => JSON.parse(line) as Record<string, string>,
    )
  return { saw, child }
}

test('writes the token, signals the process that reads it, and serves a socket with a secret', async () => {
  const script = `process.on('SIGHUP', () => { console.log('renewed'); process.exit(0) }); console.log('ready'); setInterval(() => {}, 1000)`
  const reader = Bun.spawn([process.execPath, '-e', script], { stdin: 'ignore', stdout: 'pipe' })
  const output = reader.stdout.getReader()
  await output.read()
  const [socket, file] = [inFolder('a.sock'), inFolder('token')]
  const listen = ['--listen', `unix:${socket}`, '--secret', 'env:LOCAL_SECRET']
  const { saw, child } = start([...listen, '--write', file, '--signal', String(reader.pid)])
  expect(new TextDecoder().decode((await output.read()).value)).toBe('renewed\n')
  expect((await saw('listening')).address).toBe(`unix:${socket}`)
  expect(readFileSync(file, 'utf8')).toMatch(/^ey[\w-]+\.[\w-]+\.[\w-]+$/)
  expect(statSync(socket).mode & 0o077).toBe(0)
  const ask = (authorization: string) =>
    fetch('http://any-host/v1/models', { unix: socket, headers: { authorization } }).then(({ status }) => status)
  expect([await ask('Bearer wrong'), await ask('Bearer local-secret')]).toEqual([401, 200])
  expect(await run(['--ready', '--listen', `unix:${socket}`])).toEqual({ code: 0, stdout: 'ready\n', stderr: '' })
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
  expect(await run(['--ready', '--listen', `unix:${socket}`])).toMatchObject({ code: 1, stdout: 'unreachable\n' })
})

test('waits for a server that is not there yet, and says when it tries again', async () => {
  const { saw, child } = start(['--listen', '127.0.0.1:0'], { LATCHKEY_URL: 'http://127.0.0.1:1/v1' })
  const { address = '' } = await saw('listening')
  const { message, next_attempt_at: next = '', time = '' } = await saw('renewal_failed')
  expect(message).toContain('The Latchkey server could not be reached at http://127.0.0.1:1/v1/oauth/token')
  expect(Date.parse(next) - Date.parse(time)).toBeLessThanOrEqual(1_000)
  expect((await fetch(address.replace('/v1', '/readyz'))).status).toBe(503)
  expect((await fetch(`${address}/models`)).status).toBe(503)
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
})

test('refuses options that make no sense, and never a secret as an argument', async () => {
  const wrong: [args: string[], stderr: string][] = [
    [[], '--listen or --write must be given'],
    [['--listen', '127.0.0.1:0', '--signal', '1'], '--signal needs --write'],
    [['--write', 'f', '--signal', '-1'], '"-1" is not a valid value for --signal'],
    [['--listen', '127.0.0.1:0', '--secret', 'my-secret'], 'use env:NAME or file:PATH'],
    [['--listen', '127.0.0.1:0', '--secret', 'env:NONE'], 'env:NONE is missing or empty'],
    [['--ready'], '--ready needs --listen'],
  ]
  for (const [args, stderr] of wrong) {
    const refused = await run(args)
    expect(refused).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(stderr) })
    expect(refused.stderr).not.toContain('my-secret')
  }
})
