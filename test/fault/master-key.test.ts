// A master key replacement that is killed, after each step and at other moments, leaves a database that opens. The next
// command or the server completes the replacement, and every key survives.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createEchoUpstream } from '../../src/dev/echo-upstream.ts'
import { compiledProgram } from '../support/compiled-program.ts'
import { readDatabaseFile } from '../support/database-file.ts'
import { copyInstallation, type Installation, install, trust } from '../support/installation.ts'
import { listenLocally, postExchange, runCommand, startServing, temporaryFolder } from '../support/latchkey.ts'

let installed: Installation
let upstream: Awaited<ReturnType<typeof listenLocally>>
let token: string
beforeAll(async () => {
  installed = await install()
  upstream = await listenLocally(createEchoUpstream('gpu-secret'))
  const served = await installed.serve()
  await served.ask('upstreams.add', { name: 'gpu', base_url: `${upstream.url}/v1`, credential: 'gpu-secret' })
  const trusted = await trust(served, await installed.startIssuer())
  const fields = { federation_policy_id: trusted.policyId, subject_token: trusted.subjectToken }
  const response = await postExchange(served.baseUrl, fields)
  token = ((await response.json()) as { access_token: string }).access_token
  await served.serving.stop()
})
afterAll(async () => {
  await installed.remove()
  await upstream.listener.drain()
})

/** A copy of the installation for one test. */
let copy: ReturnType<typeof temporaryFolder>
let copied: Awaited<ReturnType<typeof copyInstallation>>
let file: string
let env: Record<string, string>
beforeEach(async () => {
  copy = temporaryFolder()
  copied = await copyInstallation(installed, copy.path)
  file = join(copy.path, 'master.key')
  env = copied.env
})
afterEach(async () => {
  await copied.close()
  copy.remove()
})

const names = () => readdirSync(copy.path).filter((name) => name.startsWith('master.key'))
/** A file that is still being written has not been used. */
const isDraft = (name: string) => name.includes('.next.')
const keys = () => {
  const complete = names().filter((name) => !isDraft(name))
  return new Set(complete.map((name) => readFileSync(join(copy.path, name), 'utf8')))
}

/** Kills a replacement after a number of steps. Returns how many steps it has. */
async function killAfter(steps: number, input: object): Promise<number> {
  const program = join(import.meta.dirname, '../support/killed-replacement.ts')
  const child = Bun.spawn([process.execPath, program, String(steps), JSON.stringify(input)], {
    env,
    stdout: 'pipe',
    stderr: 'inherit',
  })
  await child.exited
  expect(child.signalCode).toBe('SIGKILL')
  return Number(await new Response(child.stdout).text())
}

async function json(...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await runCommand([...args, '--json'], { cwd: copy.path, env })
  expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' })
  return JSON.parse(stdout) as Record<string, unknown>
}

/** Checks that the master key decrypts all signing keys, and the credential, which the upstream accepts. */
async function expectAllOpens(): Promise<void> {
  expect(await json('upstreams', 'check', 'gpu')).toMatchObject({ data: [{ ok: true, problem: null }] })
}

const stepsOfReplacement = 4

describe('killed', () => {
  for (let steps = 0; steps <= stepsOfReplacement; steps++) {
    const isCommitted = steps >= 2
    const isDone = steps === stepsOfReplacement

    test(`after ${steps} of its steps, everything still opens, and the next run completes it`, async () => {
      const old = readFileSync(file, 'utf8')
      expect(await killAfter(steps, {})).toBe(stepsOfReplacement)
      const waiting = keys()
      expect(waiting).toContain(old)
      await expectAllOpens()
      expect(readFileSync(file, 'utf8') === old).toBe(!isCommitted)
      expect(await json('master-key', 'replace')).toMatchObject({ replaced: true, credentials_reencrypted: ['gpu'] })
      for (const key of waiting) expect(keys()).toContain(key)
      expect(names().filter((name) => name.includes('.next'))).toEqual([])
    }, 120_000)

    test(`after ${steps} of its steps and run again at once, it completes with the key that it began with`, async () => {
      await killAfter(steps, {})
      const waiting = keys()
      const again = await json('master-key', 'replace')
      const isFinished = isCommitted && !isDone
      expect(again).toMatchObject({ replaced: !isFinished, finished: isFinished })
      if (steps > 0 && !isDone) expect(keys()).toEqual(waiting)
      await expectAllOpens()
    }, 120_000)

    test(`after ${steps} of its steps with the old key lost, what is left can be completed`, async () => {
      rmSync(file)
      expect(await killAfter(steps, { lost: true })).toBe(stepsOfReplacement)
      if (!isCommitted) expect(await json('master-key', 'replace', '--lost', '--yes')).toMatchObject({ replaced: true })
      expect(await json('signing-keys', 'rotate', '--at-once')).toMatchObject({ state: 'signing' })
      const [ended = [], credentials] = readDatabaseFile(
        copied.databasePath,
        "select id from signing_keys where private_key_encrypted = ''",
        'select credential_encrypted from upstreams',
      )
      expect(ended).toHaveLength(1)
      expect(credentials).toEqual([{ credential_encrypted: null }])
    }, 120_000)
  }
})

/** Runs the command and kills it a number of milliseconds after its first write. */
async function killDuring(milliseconds: number): Promise<void> {
  const before = names().length
  const child = Bun.spawn([...compiledProgram(), 'master-key', 'replace'], {
    env,
    stdout: 'ignore',
    stderr: 'ignore',
  })
  while (child.exitCode === null && names().length === before) await new Promise((resolve) => setImmediate(resolve))
  const at = performance.now() + milliseconds
  while (performance.now() < at);
  child.kill('SIGKILL')
  await child.exited
}

test('killed at moments all over it, it never loses a key, a token or a credential', async () => {
  const seen = keys()
  for (let kill = 0; kill < 20; kill++) {
    await killDuring(kill)
    await expectAllOpens()
    for (const key of seen) expect(keys()).toContain(key)
    for (const key of keys()) seen.add(key)
  }
  const { facts, stop } = await startServing(['serve'], { cwd: copy.path, env })
  const called = await fetch(`http://${facts.listening}/v1/models`, { headers: { authorization: `Bearer ${token}` } })
  expect(called.status).toBe(200)
  await stop()
}, 240_000)
