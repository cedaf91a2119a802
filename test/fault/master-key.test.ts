// A master key replacement that is killed, after each step and at other moments, leaves a database that opens. The next
// command or the server completes the replacement, and every key survives.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, rmSync, watch } from 'node:fs'
import { join } from 'node:path'
import { createEchoUpstream } from '../../scripts/dev/echo-upstream.ts'
import { dependencies } from '../../scripts/shared/command-line.ts'
import { runInProcess } from '../../scripts/shared/in-process.ts'
import type { OperationName } from '../../src/admin/operations.ts'
import { readLocalUser } from '../../src/admin/transport/local-user.ts'
import { loadConfig } from '../../src/settings/config.ts'
import { compiledProgram } from '../support/compiled-program.ts'
import { readDatabaseFile } from '../support/database-file.ts'
import { copyInstallation, type Installation, install, trust } from '../support/installation.ts'
import {
  briefRuntime,
  listenLocally,
  postExchange,
  runCommand,
  startServing,
  temporaryFolder,
} from '../support/latchkey.ts'

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

type Copied = Awaited<ReturnType<typeof copyInstallation>>

/** A copy for one test: of the installation, or of what a killed replacement left. */
let copy: ReturnType<typeof temporaryFolder>
let copied: Copied
let file: string
let env: Record<string, string>
async function copyOf(source: Source): Promise<void> {
  copied = await copyInstallation(source, copy.path)
  file = join(copy.path, 'master.key')
  env = copied.env
}
beforeEach(() => {
  copy = temporaryFolder()
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

type Source = Parameters<typeof copyInstallation>[0]

const stepsOfReplacement = 4
const closing: (() => Promise<unknown>)[] = []

/**
 * Copies the installation as a replacement leaves it that is killed before its first step, and after each of its steps.
 * The process stands still while it is copied.
 */
async function leaveAfterEachStep(input: { lost?: true }): Promise<Source[]> {
  const [running, ...left] = Array.from({ length: 2 + stepsOfReplacement }, temporaryFolder)
  if (running === undefined) throw new Error('No folder')
  const { close, ...source } = await copyInstallation(installed, running.path)
  if (input.lost) rmSync(join(running.path, 'master.key'))
  const program = join(import.meta.dirname, '../support/killed-replacement.ts')
  const child = Bun.spawn([process.execPath, program, JSON.stringify(input)], {
    env: { ...briefRuntime, ...source.env },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const states: Source[] = []
  for await (const lines of child.stdout) {
    expect(Buffer.from(lines).toString()).toBe(`${states.length} of ${stepsOfReplacement}\n`)
    const folder = left[states.length]?.path ?? ''
    const { close: closeState, ...state } = await copyInstallation({ ...source, folder: running.path }, folder)
    closing.push(closeState)
    states.push({ ...state, folder })
    child.stdin.write('\n')
  }
  await child.exited
  expect(child.signalCode).toBe('SIGKILL')
  expect(states).toHaveLength(1 + stepsOfReplacement)
  await close()
  running.remove()
  closing.push(async () => {
    for (const { remove } of left) remove()
  })
  return states
}

async function json(...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await runCommand([...args, '--json'], { cwd: copy.path, env })
  expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' })
  return JSON.parse(stdout) as Record<string, unknown>
}

/** Runs an operation in this process, on a folder that no other process opens afterward. */
function runHere(name: OperationName, input: object = {}, settings = env): Promise<unknown> {
  const config = loadConfig({ flags: {}, environment: settings })
  const call = { name, input, user: readLocalUser(process.env) }
  return runInProcess(config, { ...dependencies, log: () => {} }, call, async () => undefined)
}

/** What `upstreams check` says if the master key decrypts all signing keys, and the credential, which the upstream accepts. */
const allOpens = { data: [{ ok: true, problem: null }] }

// The first command after a kill is a separate process, as for an operator.
describe('killed', () => {
  let left: { known: Source[]; lost: Source[] }
  beforeAll(async () => {
    left = { known: await leaveAfterEachStep({}), lost: await leaveAfterEachStep({ lost: true }) }
  }, 60_000)
  afterAll(async () => {
    for (const close of closing) await close()
  })
  const copyLeft = (kind: keyof typeof left, steps: number) => {
    const source = left[kind][steps]
    if (source === undefined) throw new Error(`Nothing was left after ${steps} steps`)
    return copyOf(source)
  }

  for (let steps = 0; steps <= stepsOfReplacement; steps++) {
    const isCommitted = steps >= 2
    const isDone = steps === stepsOfReplacement

    test(`after ${steps} of its steps, everything still opens, and the next run completes it`, async () => {
      await copyLeft('known', steps)
      const old = readFileSync(join(installed.folder, 'master.key'), 'utf8')
      const waiting = keys()
      expect(waiting).toContain(old)
      expect(await json('upstreams', 'check', 'gpu')).toMatchObject(allOpens)
      expect(readFileSync(file, 'utf8') === old).toBe(!isCommitted)
      expect(await runHere('master_key.replace')).toMatchObject({ replaced: true, credentials_reencrypted: ['gpu'] })
      for (const key of waiting) expect(keys()).toContain(key)
      expect(names().filter((name) => name.includes('.next'))).toEqual([])
    }, 120_000)

    test(`after ${steps} of its steps and run again at once, it completes with the key that it began with`, async () => {
      await copyLeft('known', steps)
      const waiting = keys()
      const again = await json('master-key', 'replace')
      const isFinished = isCommitted && !isDone
      expect(again).toMatchObject({ replaced: !isFinished, finished: isFinished })
      expect(steps > 0 && !isDone ? keys() : waiting).toEqual(waiting)
      expect(await runHere('upstreams.check', { upstream: 'gpu' })).toMatchObject(allOpens)
    }, 120_000)

    test(`after ${steps} of its steps with the old key lost, what is left can be completed`, async () => {
      await copyLeft('lost', steps)
      const replaced = isCommitted ? { replaced: true } : await json('master-key', 'replace', '--lost', '--yes')
      expect(replaced).toMatchObject({ replaced: true })
      const rotated = isCommitted
        ? await json('signing-keys', 'rotate', '--at-once')
        : await runHere('signing_keys.rotate', { at_once: true })
      expect(rotated).toMatchObject({ state: 'signing' })
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
  // Asking again and again for the names would take the processor from the command.
  const written = Promise.withResolvers<void>()
  const watcher = watch(copy.path, (_, name) => {
    if (name?.startsWith('master.key')) written.resolve()
  })
  const child = Bun.spawn([...compiledProgram(), 'master-key', 'replace'], {
    env: { ...briefRuntime, ...env },
    stdout: 'ignore',
    stderr: 'ignore',
  })
  await Promise.race([written.promise, child.exited])
  watcher.close()
  const at = performance.now() + milliseconds
  while (performance.now() < at);
  child.kill('SIGKILL')
  await child.exited
}

/** Checks that everything opens in a copy of what the kill left. The next command to be killed continues on what it left. */
async function checkCopy(): Promise<void> {
  const left = temporaryFolder()
  const { env: settings, close } = await copyInstallation({ ...copied, folder: copy.path }, left.path)
  expect(await runHere('upstreams.check', { upstream: 'gpu' }, settings)).toMatchObject(allOpens)
  await close()
  left.remove()
}

test('killed at moments all over it, it never loses a key, a token or a credential', async () => {
  await copyOf(installed)
  const seen = keys()
  for (let kill = 0; kill < 20; kill++) {
    await killDuring(kill)
    await checkCopy()
    for (const key of seen) expect(keys()).toContain(key)
    for (const key of keys()) seen.add(key)
  }
  expect(await json('upstreams', 'check', 'gpu')).toMatchObject(allOpens)
  const { facts, stop } = await startServing(['serve'], { cwd: copy.path, env })
  const called = await fetch(`http://${facts.listening}/v1/models`, { headers: { authorization: `Bearer ${token}` } })
  expect(called.status).toBe(200)
  await stop()
}, 240_000)
