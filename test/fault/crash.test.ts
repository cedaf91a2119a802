// Acknowledged work survives a crash. The server is killed twenty times during work; each time, the file on disk and
// the restarted server must match every response that clients have received.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { createChance, killsOr } from '../support/chance.ts'
import { readDatabaseFile } from '../support/database-file.ts'
import { type Installation, install, publicUrl, type Served, type Trust, trust } from '../support/installation.ts'
import { mintAt, postExchange, type Row } from '../support/latchkey.ts'
import {
  type Acknowledged,
  answerKinds,
  countAcknowledged,
  nothingAcknowledged,
  putLoad,
  type State,
} from '../support/load.ts'

const rounds = killsOr(4)
/** Dollars per million tokens. Each request counts three prompt and three completion tokens. */
const price = { model: 'echo', prompt: 1, completion: 2 }
const nanodollarsPerRequest = 3 * 1_000 + 3 * 2_000
const chance = createChance('crash')

let installation: Installation
let issuerUrl: string
beforeAll(async () => {
  installation = await install()
  issuerUrl = await installation.startIssuer()
})
afterAll(() => installation.remove())

/**
 * Reads the file after the kill, before any process opens it again. Resolves to the total cost of its requests in
 * dollars.
 */
function checkFile({ tokens, answers }: Acknowledged): number {
  const [integrity, foreign, audits = [], usages = [], summed, days] = readDatabaseFile(
    installation.databasePath,
    'pragma integrity_check',
    'pragma foreign_key_check',
    "select access_token_id as id from exchange_audit where outcome = 'issued'",
    'select request_id as id, endpoint as path, streamed, completed, status, total_tokens as tokens, cost_nanodollars as cost from usage',
    `select key_id, at / 86400000 as day, count(*) as requests, sum(prompt_tokens) as prompts, sum(completion_tokens) as completions,
      sum(total_tokens) as tokens, sum(cost_nanodollars) as cost from usage where id <= (select usage_id from usage_summed)
      group by 1, 2 order by 1, 2`,
    `select key_id, day, requests, prompt_tokens as prompts, completion_tokens as completions, total_tokens as tokens,
      cost_nanodollars as cost from day_totals order by 1, 2`,
  )
  expect(integrity).toEqual([{ integrity_check: 'ok' }])
  expect(foreign).toEqual([])

  const audited = new Set(audits.map(({ id }) => id))
  expect(audited.size).toBe(audits.length)
  expect([...tokens.keys()].filter((id) => !audited.has(id))).toEqual([])

  const used = new Map(usages.map((row) => [row.id, row]))
  expect(used.size).toBe(usages.length)
  for (const [id, kind] of answers) {
    const { path, streamed } = answerKinds[kind]
    const whole = { completed: 1, status: 200, tokens: 6, cost: nanodollarsPerRequest }
    expect(used.get(id)).toEqual({ id, path, streamed: Number(streamed), ...whole })
  }
  // One commit holds a total and its rows, so a kill cannot separate them.
  expect(days).toEqual(summed)
  return usages.reduce((sum, { cost }) => sum + Number(cost), 0) / 1e9
}

/** Budgets that never refuse, but hold what running requests use. By name, what they have a counter for each of, as the ledger has it. */
const budgets = {
  all: "''",
  key: 'key_id',
  policy: "coalesce(policy_id, '')",
  attribution: "coalesce(attribution, '')",
}
const limits = { usd: 1_000_000, tokens: 1_000_000_000, requests: 1_000_000 }

async function createBudgets({ ask }: Served): Promise<void> {
  const windows = ['lifetime', 'month'].map((per) => ({ per, ...limits }))
  for (const name of Object.keys(budgets))
    await ask('budgets.create', { name, windows, ...(name === 'all' ? {} : { each: name }) })
  // Each session has two requests, one after the other: if the first one never gave back what it holds, the second would be refused.
  await ask('budgets.create', { name: 'sessions', each: 'session', windows: [{ per: 'day', requests: 2 }] })
  await ask('keys.update', { key: 'target', queue_seconds: 0 })
}

type Spent = { per: string; unit: string; spent: number }

/** What is spent of each counter of each budget is the sum of its rows in the file. */
async function checkBudgets({ ask }: Served, tables: ReturnType<typeof readBudgetTables>): Promise<void> {
  for (const [name, rows] of tables) {
    const shown = await ask<{ spent?: Spent[]; values?: { value: string; spent: Spent[] }[] }>('budgets.show', {
      budget: name,
    })
    const values = shown.values ?? [{ value: '', spent: shown.spent ?? [] }]
    const spentOf = (all: Spent[], per: string) =>
      Object.fromEntries(all.flatMap((each) => (each.per === per ? [[each.unit, each.spent]] : [])))
    for (const per of ['lifetime', 'month'])
      expect<unknown>([
        name,
        per,
        Object.fromEntries(values.map(({ value, spent }) => [value, spentOf(spent, per)])),
      ]).toEqual([...[name, per], Object.fromEntries(rows.map(({ value, ...spent }) => [String(value), spent]))])
  }
}

function readBudgetTables() {
  const queries = Object.values(budgets).map(
    (
      value,
    ) => `select ${value} as value, sum(cost_nanodollars) / 1e9 as usd, sum(total_tokens) as tokens, count(*) as requests
      from usage group by 1`,
  )
  const found = readDatabaseFile(installation.databasePath, ...queries)
  return Object.keys(budgets).map((name, index) => [name, found[index] ?? []] as const)
}

/** Checks that everything matches its last acknowledged state or a change in progress, and updates the known state. */
function checkStates(states: Map<string, State>, found: Map<string, string>): void {
  for (const [name, state] of states) {
    const now = found.get(name) ?? 'absent'
    expect({ name, now: [state.known, state.asked].includes(now) ? 'acknowledged' : now }).toEqual({
      name,
      now: 'acknowledged',
    })
    state.known = now
    state.asked = now
  }
}

async function checkServer(
  { baseUrl, ask }: Served,
  { policyId, subjectToken }: Trust,
  { policies, keys, tokens }: Acknowledged,
  spentDollars: number,
): Promise<void> {
  expect(await ask<unknown>('usage.verify')).toEqual({ ok: true, data: [] })
  expect(await ask<unknown>('keys.show', { key: 'target' })).toMatchObject({ usage: spentDollars })
  const policyRows = (await ask<{ data: (Row & { name: string; enabled: boolean })[] }>('policies.list')).data
  const keyRows = (await ask<{ data: (Row & { name: string; disabled: boolean })[] }>('keys.list')).data
  checkStates(policies, new Map(policyRows.map(({ name, enabled }) => [name, enabled ? 'enabled' : 'paused'])))
  checkStates(keys, new Map(keyRows.map(({ name, disabled }) => [name, disabled ? 'disabled' : 'enabled'])))

  const keySet = createLocalJWKSet((await (await fetch(`${baseUrl}/oauth/jwks`)).json()) as JSONWebKeySet)
  for (const token of [...tokens.values()].slice(-100))
    await jwtVerify(token, keySet, { issuer: publicUrl, audience: publicUrl })
  for (const token of [...tokens.values()].slice(-3)) {
    const response = await fetch(`${baseUrl}/models`, { headers: { authorization: `Bearer ${token}` } })
    expect(response.status).toBe(200)
  }

  // The listed state must also take effect: a paused policy refuses, an enabled one exchanges.
  for (const enabled of [true, false]) {
    const policy = policyRows.findLast((row) => row.enabled === enabled)
    if (policy === undefined) continue
    const token = policy.id === policyId ? subjectToken : await mintAt(issuerUrl, { sub: policy.name })
    const response = await postExchange(baseUrl, { federation_policy_id: policy.id, subject_token: token })
    expect(response.status).toBe(enabled ? 200 : 400)
  }
}

async function killUnderLoad(
  { serving, baseUrl, ask }: Served,
  trusted: Trust,
  acknowledged: Acknowledged,
  answersUntilKill: number,
): Promise<void> {
  const killAt = countAcknowledged(acknowledged) + answersUntilKill
  let isKilled = false
  await putLoad({ baseUrl, ask, ...trusted }, acknowledged, {
    isOver: () => isKilled,
    onAnswer: () => {
      if (isKilled || countAcknowledged(acknowledged) < killAt) return
      isKilled = true
      serving.process.kill('SIGKILL')
    },
  })
  await serving.process.exited
  expect(serving.process.signalCode).toBe('SIGKILL')
}

test(`a server killed ${rounds} times under load has lost nothing that it acknowledged`, async () => {
  const acknowledged = nothingAcknowledged()
  let round = 0
  try {
    let served = await installation.serve()
    const trusted = await trust(served, issuerUrl)
    await served.ask('prices.set', { prices: [price] })
    await createBudgets(served)
    for (round = 1; round <= rounds; round++) {
      await killUnderLoad(served, trusted, acknowledged, 1 + Math.floor(chance() * 200))
      const spentDollars = checkFile(acknowledged)
      const tables = readBudgetTables()
      served = await installation.serve()
      await checkBudgets(served, tables)
      await checkServer(served, trusted, acknowledged, spentDollars)
    }
    expect(await installation.run('usage', 'verify')).toMatchObject({ code: 0 })
    expect(await served.serving.stop()).toBe(0)
    checkFile(acknowledged)
    expect(await installation.run('usage', 'verify')).toMatchObject({ code: 0 })
  } catch (error) {
    throw new Error(`Failed in round ${round}: ${error}`, { cause: error })
  }

  const kinds = [...acknowledged.answers.values()]
  // As many as the kills let through, of each kind.
  expect(acknowledged.tokens.size).toBeGreaterThan(15 * rounds)
  expect(kinds.filter((kind) => kind === 'plain').length).toBeGreaterThan(2 * rounds)
  expect(kinds.filter((kind) => kind === 'streamed').length).toBeGreaterThan(2 * rounds)
  for (const kind of ['response', 'message'])
    expect(kinds.filter((each) => each === kind).length).toBeGreaterThan(rounds)
  expect(acknowledged.changes).toBeGreaterThan(rounds)
}, 120_000)
