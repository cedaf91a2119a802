// The drill: backups of a server under load, with kills of the server and of the copying process at random moments. Whatever is there under
// its full name restores, and contains everything that was acknowledged before that backup began.
import { expect } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { removeScratch } from '../../src/backup/restore.ts'
import { verifyBackup } from '../../src/backup/verify.ts'
import { createChance, killsOr } from '../support/chance.ts'
import { readDatabaseFile } from '../support/database-file.ts'
import { onFile } from '../support/file-only.ts'
import { type Installation, install, type Served, type Trust, trust } from '../support/installation.ts'
import { type Acknowledged, nothingAcknowledged, putLoad } from '../support/load.ts'
import { until } from '../support/until.ts'

const chance = createChance('backup')

const { afterAll, beforeAll, test } = onFile('backup by copy')

const kills = killsOr(4)

let installation: Installation
let issuerUrl: string
let folder: string
beforeAll(async () => {
  installation = await install()
  issuerUrl = await installation.startIssuer()
  folder = join(installation.folder, 'backups')
  mkdirSync(folder)
})
afterAll(() => installation.remove())

type Snapshot = { tokens: string[]; answers: string[]; policies: string[]; keys: string[] }

function snapshotOf({ tokens, answers, policies, keys }: Acknowledged): Snapshot {
  const saved = (states: Acknowledged['keys']) => [...states].filter(([, { known }]) => known !== 'absent')
  return {
    tokens: [...tokens.keys()],
    answers: [...answers.keys()],
    policies: saved(policies).map(([name]) => name),
    keys: saved(keys).map(([name]) => name),
  }
}

/** Fails unless every check passes and every acknowledged row is there. */
async function checkBackup(file: string, before: Snapshot): Promise<void> {
  const scratch = join(installation.folder, 'scratch.db')
  const masterKey = { kind: 'file', path: join(installation.folder, 'master.key'), isDefault: true } as const
  const { checks } = await verifyBackup({ file, scratch, masterKey, withoutMasterKey: false, now: Date.now })
  expect(checks.filter(({ result }) => result !== 'ok')).toEqual([])
  const columns = [
    "select access_token_id as id from exchange_audit where outcome = 'issued'",
    'select request_id as id from usage',
    'select name as id from policies',
    'select name as id from api_keys',
  ]
  const found = readDatabaseFile(scratch, ...columns).map((rows) => new Set(rows.map(({ id }) => id)))
  const expected = [before.tokens, before.answers, before.policies, before.keys]
  for (const [index, ids] of expected.entries()) expect(ids.filter((id) => !found[index]?.has(id))).toEqual([])
  removeScratch(scratch)
}

/** The processes that a server has started. Linux only, as are the limits of the other tests here. */
function childrenOf(pid: number): number[] {
  const path = `/proc/${pid}/task/${pid}/children`
  return existsSync(path) ? readFileSync(path, 'utf8').split(' ').filter(Boolean).map(Number) : []
}

type Loaded = Served & { stopLoad: () => Promise<unknown> }

async function serveUnderLoad(acknowledged: Acknowledged, known?: Trust): Promise<Loaded & { trusted: Trust }> {
  const served = await installation.serve()
  const trusted = known ?? (await trust(served, issuerUrl))
  let isOver = false
  const load = putLoad({ ...served, ...trusted }, acknowledged, { onAnswer: () => {}, isOver: () => isOver })
  const stopLoad = () => {
    isOver = true
    return load
  }
  return { ...served, trusted, stopLoad }
}

test(`with ${kills} kills, every backup restores to a state with everything acknowledged before it began`, async () => {
  const acknowledged = nothingAcknowledged()
  let served = await serveUnderLoad(acknowledged)
  const whole = join(folder, 'whole.backup')
  const started = performance.now()
  await served.ask('backup.create', { to: whole })
  const milliseconds = performance.now() - started
  rmSync(whole)
  let complete = 0
  let reported = 0
  for (let kill = 0; kill < kills; kill++) {
    const before = snapshotOf(acknowledged)
    const file = join(folder, `${kill}.backup`)
    const asked = served.ask('backup.create', { to: file }).then(
      () => true,
      () => false,
    )
    // A killed backup may be at any point between its request and its response.
    await Bun.sleep(((kill + chance()) / kills) * 1.5 * milliseconds)
    if (kill % 2 === 0) {
      const stopped = served.stopLoad()
      served.serving.process.kill('SIGKILL')
      await Promise.all([stopped, served.serving.process.exited])
    } else for (const pid of childrenOf(served.serving.process.pid)) process.kill(pid, 'SIGKILL')
    const isReported = await asked
    if (isReported) reported += 1
    expect([isReported, existsSync(file)]).not.toEqual([true, false])
    if (existsSync(file)) {
      complete += 1
      await checkBackup(file, before)
      rmSync(file)
    }
    if (kill % 2 === 0) served = await serveUnderLoad(acknowledged, served.trusted)
  }
  const last = join(folder, 'last.backup')
  const before = snapshotOf(acknowledged)
  await served.ask('backup.create', { to: last })
  await checkBackup(last, before)
  await served.stopLoad()
  expect(await served.ask<unknown>('usage.verify')).toEqual({ ok: true, data: [] })
  expect(await served.serving.stop()).toBe(0)
  expect(acknowledged.tokens.size).toBeGreaterThan(30 * kills)
  expect(complete).toBeGreaterThanOrEqual(reported)
  // A copying process notices that its server is gone, and removes what it has written.
  const hasPartial = () => readdirSync(folder).some((name) => name.includes('.partial-'))
  await until(
    'the partial files to go',
    () => !hasPartial(),
    () => readdirSync(folder),
  )
  expect(readdirSync(folder)).toEqual(['last.backup'])
}, 120_000)
