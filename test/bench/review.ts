// What the review of policies costs: linting one, recording claims at an exchange beside recording none, judging past
// exchanges, and planning and applying a document with 1,000 policies.
import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { createTestIssuer } from '../../scripts/dev/test-issuer.ts'
import { gitlab } from '../../src/federation/lint/gitlab.ts'
import { goodPolicies } from '../federation/lint/good-policies.ts'
import { findingsOf } from '../federation/lint/linting.ts'
import { worstConditions } from '../federation/lint/worst-conditions.ts'
import { cpuMilliseconds } from '../support/cpu-time.ts'
import { audience, listenLocally, mintAt } from '../support/latchkey.ts'
import { contest } from './contest.ts'
import { type Exchanger, exchange } from './exchange.ts'
import { fill } from './growth.ts'
import { benchFolder, concurrencies, type Installed, installLatchkey, rounds, serveFolder } from './measure.ts'
import { addRound, type Figures, type Result } from './report.ts'
import type { Measured } from './review-operations.ts'

const cellMilliseconds = 700
const warmUpMilliseconds = Number(process.env.BENCH_WARM_UP ?? 4_000)
const pastExchanges = 200_000
const tokensEach = 200
const subject = 'project_path:acme/app:ref_type:branch:ref:main'
/** As a job on GitLab has it, so that the linter's claims are recorded. */
const claims = { ...gitlab.stranger, sub: subject, environment: 'production', project_path: 'acme/app', ref: 'main' }
const condition = 'claims.environment == "production" && claims.project_path == "acme/app"'

export async function benchReview(note: (text: string) => void): Promise<Result[]> {
  const [lint, backtest, config] = [createResults('lint'), createResults('back-test'), createResults('1,000 policies')]
  for (let round = 0; round < rounds; round++) measureLint(lint.add)
  const issuer = await startIssuer()
  const installed = await installTrusting(issuer.url)
  const recorded = await benchRecording(installed, issuer.tokens, note)
  await fill(installed.folder, { exchanges: pastExchanges })
  for (let round = 0; round < rounds; round++) {
    await measureBacktest(installed.folder, backtest.add)
    await measureConfig(installed.folder, config.add)
  }
  await issuer.stop()
  return [...recorded, ...lint.results(), ...backtest.results(), ...config.results()]
}

function createResults(load: string) {
  const results = new Map<string, Result>()
  const add = (arm: string, figures: Figures): void => {
    const result = results.get(arm) ?? { bench: 'review', load, concurrency: 0, arm, figures: {} }
    results.set(arm, result)
    addRound(result, figures)
  }
  return { add, results: () => [...results.values()] }
}

/** The mean of the policies that vendors recommend, and the slowest of the worst conditions. */
function measureLint(add: Add): void {
  const all = cpuMilliseconds(() => goodPolicies.map(findingsOf))
  const worst = Object.values(worstConditions).map((each) =>
    cpuMilliseconds(() => findingsOf({ issuer: 'github', condition: each })),
  )
  add('a policy', { milliseconds: all / goodPolicies.length })
  add('the worst condition', { milliseconds: Math.max(...worst) })
}

async function startIssuer() {
  let issuerUrl = ''
  const { url, listener } = await listenLocally(await createTestIssuer(() => issuerUrl))
  issuerUrl = url
  const tokens = await Promise.all(
    Array.from({ length: tokensEach }, () => mintAt(url, { ...claims, aud: audience }, 'ES256')),
  )
  return { url, tokens, stop: () => listener.drain() }
}

type Trusting = Installed & { policyId: string }

async function installTrusting(issuerUrl: string): Promise<Trusting> {
  const installed = await installLatchkey()
  const { run } = installed
  await run('keys', 'create', '--name', 'key')
  await run('issuers', 'add', '--name', 'idp', '--issuer-url', issuerUrl)
  const common = ['--issuer', 'idp', '--key', 'key', '--audience', audience, '--subject', subject]
  const { id: policyId } = await run('policies', 'create', '--name', 'bench', ...common, '--condition', condition)
  return { ...installed, policyId }
}

/** The same installation under each setting. */
async function benchRecording(
  { folder, policyId, run }: Trusting,
  tokens: string[],
  note: (text: string) => void,
): Promise<Result[]> {
  const arms: Exchanger[] = []
  for (const [mode, name] of [
    ['off', 'no claims'],
    ['selected', 'selected claims'],
    ['hashed', 'hashed claims'],
  ] as const) {
    await run('organizations', 'update', 'default', '--record-claims', mode)
    const copy = benchFolder()
    cpSync(folder, copy, { recursive: true })
    const { baseUrl, ...serving } = await serveFolder(copy)
    const fields = { federation_policy_id: policyId }
    arms.push({ name: `latchkey, ${name}`, ...serving, url: `${baseUrl}/oauth/token`, fields })
  }
  await run('organizations', 'update', 'default', '--record-claims', 'selected')
  const results = await contest({
    ...{ bench: 'review', arms, warmUpMilliseconds },
    cells: (concurrencies ?? [1, 32]).map((concurrency) => ({
      ...{ load: 'exchange', concurrency, milliseconds: cellMilliseconds },
    })),
    act: (arm, _cell, index) => exchange(arm, tokens, index),
    onFailure: (arm, error) => note(`left out: ${arm} failed: ${error}`),
  })
  for (const { stop } of arms) await stop()
  return results
}

/** Runs operations in a child process, on a copy of the installation. */
export async function measureOperations(folder: string, asked: [name: string, input: object][]): Promise<Measured[]> {
  const copy = benchFolder()
  cpSync(folder, copy, { recursive: true })
  const command = [process.execPath, join(import.meta.dirname, 'review-operations.ts')]
  const database = join(copy, 'latchkey-data/latchkey.db')
  const stdin = new Blob([JSON.stringify(asked)])
  const child = Bun.spawn([...command, database], { stdin, stdout: 'pipe', stderr: 'inherit' })
  return JSON.parse(await new Response(child.stdout).text()) as Measured[]
}

type Add = (arm: string, figures: Figures) => void

/** The first run of a process also compiles what runs. */
async function measureBacktest(folder: string, add: Add): Promise<void> {
  const condition = 'claims.environment == "production" && claims.project_id != "7"'
  const input = { policy: 'bench', condition, subject: null, limit: 1_000_000, since: '2026-01-01T00:00:00Z' }
  const [first] = await measureOperations(folder, [['policies.backtest', input]])
  if (first === undefined) throw new Error('The back-test was not measured')
  const { exchanges, not_judged } = first.response as { exchanges: number; not_judged: number }
  if (exchanges < pastExchanges || not_judged > 0)
    throw new Error(`Judged ${exchanges} exchanges, not ${not_judged} of them`)
  const { milliseconds, cpuMilliseconds, longestMilliseconds } = first
  const perSecond = (1_000 * exchanges) / milliseconds
  add('selected claims', { cpuMicroseconds: (1_000 * cpuMilliseconds) / exchanges, perSecond, longestMilliseconds })
}

/** A document with 1,000 new policies, each with a condition. */
async function measureConfig(folder: string, add: Add): Promise<void> {
  const policies = Array.from({ length: 1_000 }, (_, index) => ({
    ...{ name: `app-${index}`, issuer: 'idp', key: 'key', audience },
    condition: `claims.project_id == "${index}" && claims.ref_protected == "true" && claims.environment in ["staging", "production"]`,
  }))
  const input = { document: { latchkey: 1, owner: 'platform', policies } }
  const [plan, apply] = await measureOperations(folder, [
    ['config.plan', input],
    ['config.apply', input],
  ])
  for (const [step, measured] of Object.entries({ plan, apply })) {
    if (measured === undefined) throw new Error(`The ${step} was not measured`)
    const { response: _, cpuMilliseconds: _cpu, ...figures } = measured
    add(step, figures)
  }
}
