// Two thousand requests of every kind at once, and the ledger held against what the upstreams say they answered: every
// request has one row, and every total, by row, status, key and upstream, is the same to the token and to the
// nanodollar.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  type Answered,
  answersOf,
  type CountingUpstream,
  countsOf,
  startCountingUpstream,
} from '../support/counting-upstream.ts'
import type { UsageRow } from '../support/inference.ts'
import { type Federation, postExchange, type Row, startFederation } from '../support/latchkey.ts'
import { startScriptedUpstream } from '../support/scripted-upstream.ts'
import { until } from '../support/until.ts'

const requests = 2_000
const clients = 32

type Kind = {
  path: string
  model: string
  models?: string[]
  streams?: boolean
  includesUsage?: boolean
  /** When the client goes away, or the upstream breaks off. */
  leaves?: 'before' | 'within' | 'after'
  breaks?: true
}
const [chat, completions, responses, messages] = ['/chat/completions', '/completions', '/responses', '/messages']
const kinds: Kind[] = [
  { path: chat, model: 'one/chat' },
  { path: chat, model: 'two/cost' },
  { path: chat, model: 'one/stream', streams: true },
  { path: chat, model: 'two/stream', streams: true, includesUsage: true },
  { path: chat, model: 'one/cost-stream', streams: true },
  { path: completions, model: 'two/uncounted' },
  { path: completions, model: 'one/stream', streams: true },
  { path: '/embeddings', model: 'one/embeddings' },
  { path: '/rerank', model: 'two/rerank' },
  { path: responses, model: 'one/response' },
  { path: responses, model: 'two/response-stream', streams: true },
  { path: messages, model: 'two/message' },
  { path: messages, model: 'one/message-stream', streams: true },
  { path: chat, model: 'one/refuse400' },
  { path: chat, model: 'two/refuse429' },
  { path: chat, model: 'two/refuse500', streams: true },
  { path: chat, model: 'busy/chat', models: ['two/chat'] },
  { path: chat, model: 'shared/stream', streams: true },
  { path: chat, model: 'gone/chat', models: ['busy/chat', 'one/stream'], streams: true },
  { path: chat, model: 'gone/chat' },
  { path: chat, model: 'nobody/chat' },
  { path: chat, model: 'one/break', streams: true, breaks: true },
  { path: chat, model: 'two/hold', streams: true, leaves: 'within' },
  { path: messages, model: 'one/message-hold', streams: true, leaves: 'within' },
  { path: chat, model: 'one/linger', streams: true, leaves: 'after' },
  { path: chat, model: 'two/silence', leaves: 'before' },
  { path: responses, model: 'one/silence', streams: true, leaves: 'before' },
]

/** Nanodollars a token; `real-two` is what the second upstream calls all but the shared models, which have no price. */
const tariffs: Record<string, { prompt: number; completion: number; cached: number }> = {
  one: { prompt: 150, completion: 600, cached: 75 },
  'real-two': { prompt: 1_000, completion: 2_000, cached: 1_000 },
}

let latchkey: Federation
let one: CountingUpstream
let two: CountingUpstream
let credentials: { keyId: string; subject: string | null; text: string }[]
beforeAll(async () => {
  const gone = await startScriptedUpstream()
  await gone.stop()
  one = await startCountingUpstream({ busyWith: ['busy/', 'shared/'] })
  two = await startCountingUpstream({ nameOf: (model) => (model.startsWith('shared/') ? model : 'real-two') })
  latchkey = await startFederation({ settings: { LATCHKEY_UPSTREAM_URL: undefined } })
  const { admin, server } = latchkey
  await admin('upstreams.add', { name: 'one', base_url: one.url, models: ['one/*', 'busy/*', 'shared/*'], priority: 1 })
  await admin('upstreams.add', { name: 'two', base_url: two.url, models: ['two/*', 'shared/*'], priority: 2 })
  await admin('upstreams.add', { name: 'gone', base_url: gone.url, models: ['gone/*'] })
  await admin('prices.set', {
    prices: [
      { model: 'one/*', prompt: 0.15, completion: 0.6, cached: 0.075 },
      { model: 'real-two', prompt: 1, completion: 2 },
    ],
  })
  const keys = [0, 1].map((name) => admin<Row & { key: string }>('keys.create', { name: `app-${name}` }))
  const { id: policyId } = await admin('policies.create', {
    name: 'second',
    issuer: 'idp',
    key: 'target',
    audience: 'latchkey-tests',
    subject: 'workload-2',
  })
  const exchange = async (policy: string, sub: string) => {
    const fields = { federation_policy_id: policy, subject_token: await latchkey.mint({ sub }) }
    return ((await (await postExchange(server.baseUrl, fields)).json()) as { access_token: string }).access_token
  }
  credentials = [
    ...[latchkey.key, ...(await Promise.all(keys))].map(({ id, key }) => ({ keyId: id, subject: null, text: key })),
    { keyId: latchkey.key.id, subject: 'workload-1', text: await exchange(latchkey.policy.id, 'workload-1') },
    { keyId: latchkey.key.id, subject: 'workload-2', text: await exchange(policyId, 'workload-2') },
  ]
})
afterAll(async () => {
  await latchkey.stop()
  await Promise.all([one.stop(), two.stop()])
})

const kindOf = (number: number) => kinds[number % kinds.length] as Kind
const credentialOf = (number: number) =>
  credentials[Math.floor(number / kinds.length) % credentials.length] as (typeof credentials)[number]

/** What the client itself has seen: a status and a request id, where there was an answer. */
type Seen = { status?: number; requestId?: string | null }

async function ask(number: number): Promise<Seen> {
  const { path, model, models, streams, includesUsage, leaves, breaks } = kindOf(number)
  const leaving = new AbortController()
  const body = {
    model: `${model}/${number}`,
    models: models?.map((name) => `${name}/${number}`),
    stream: streams,
    stream_options: includesUsage ? { include_usage: true } : undefined,
  }
  const call = fetch(latchkey.server.baseUrl + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${credentialOf(number).text}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: leaving.signal,
  })
  if (leaves === 'before') {
    await (model.startsWith('one') ? one : two).reached(body.model)
    leaving.abort()
    await call.catch(() => {})
    return {}
  }
  const response = await call
  const seen = { status: response.status, requestId: response.headers.get('x-request-id') }
  let text = ''
  // Its end comes as an error where somebody breaks off.
  await (async () => {
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString()
      if (breaks) one.breakOff(body.model)
      if (leaves === 'within' || (leaves === 'after' && text.includes('[DONE]'))) leaving.abort()
    }
  })().catch(() => {})
  expect(leaves === 'after' ? text : 'data: [DONE]').toContain('data: [DONE]')
  return seen
}

/**
 * What the row of a request has to say, from the upstreams' own count and, where none answered, from what was asked.
 */
function expectedOf(number: number, answers: Map<string, Answered & { upstream: string }>) {
  const { model, models = [], streams = false, leaves } = kindOf(number)
  const { keyId, subject } = credentialOf(number)
  const asked = [model, ...models].map((name) => `${name}/${number}`)
  const answered = asked.map((name) => answers.get(name)).findLast((found) => found !== undefined)
  const server = model.split('/')[0] ?? ''
  const unanswered = leaves === 'before' ? 499 : 502
  const counted = answered ?? countsOf({})
  return {
    model_asked: asked[0],
    model: answered?.status === 200 ? answered.named : asked[0],
    upstream: answered?.upstream ?? server,
    key_id: keyId,
    subject,
    status: answered?.status ?? unanswered,
    streamed: streams,
    completed: answered?.whole ?? false,
    client_left: leaves === 'before' || leaves === 'within',
    prompt_tokens: counted.prompt,
    completion_tokens: counted.completion,
    total_tokens: counted.total,
    cached_tokens: counted.cached,
    reasoning_tokens: counted.reasoning,
    costNanodollars: costOf(answered),
  }
}

function costOf(answered: Answered | undefined): number | null {
  if (answered === undefined || answered.total === null) return null
  if (answered.costNanodollars !== null) return answered.costNanodollars
  const tariff = tariffs[answered.named] ?? tariffs[answered.named.split('/')[0] ?? '']
  if (tariff === undefined) return null
  // Rerankings are counted as a total alone, and embeddings without a completion.
  const [prompt, completion, cached] = [
    answered.prompt ?? (answered.completion === null ? answered.total : 0),
    answered.completion ?? 0,
    answered.cached ?? 0,
  ]
  return (prompt - cached) * tariff.prompt + cached * tariff.cached + completion * tariff.completion
}

type Expected = ReturnType<typeof expectedOf>
type FoundRow = UsageRow & Expected & { cost: number | null }
type Sum = { requests: number; tokens: number; nanodollars: number }
type Field = 'key_id' | 'upstream' | 'subject'

/** What rows that share a field add up to. */
function sumBy(rows: Expected[], field: Field): Record<string, Sum> {
  const sums: Record<string, Sum> = {}
  for (const row of rows) {
    const { requests, tokens, nanodollars } = sums[String(row[field])] ?? { requests: 0, tokens: 0, nanodollars: 0 }
    sums[String(row[field])] = {
      requests: requests + 1,
      tokens: tokens + (row.total_tokens ?? 0),
      nanodollars: nanodollars + (row.costNanodollars ?? 0),
    }
  }
  return sums
}

/** The same as the server reports it. */
async function reportBy(field: Field): Promise<Record<string, Sum>> {
  const by = field === 'key_id' ? 'key' : field
  const { data } = await latchkey.admin<{
    data: (Record<Field, string | null> & { requests: number; total_tokens: number; cost: number })[]
  }>('usage.sum', { by })
  return Object.fromEntries(
    data.map((sum) => [
      String(sum[field]),
      { requests: sum.requests, tokens: sum.total_tokens, nanodollars: Math.round(sum.cost * 1e9) },
    ]),
  )
}

const numbers = Array.from({ length: requests }, (_, number) => number)
const countOf = (isMeant: (kind: Kind) => unknown) => numbers.filter((number) => isMeant(kindOf(number))).length
/** What nobody serves is refused and never forwarded, so that it leaves no row. */
const isForwarded = (number: number) => !kindOf(number).model.startsWith('nobody')
const forwarded = numbers.filter(isForwarded)

async function askAll(): Promise<Seen[]> {
  const seen: Seen[] = []
  let next = 0
  const work = async () => {
    for (let number = next++; number < requests; number = next++) seen[number] = await ask(number)
  }
  await Promise.all(Array.from({ length: clients }, work))
  return seen
}

test(`the ledger of ${requests} requests is what the upstreams answered`, async () => {
  const seen = await askAll()
  // Nobody waits for the rows of those that left, nor for what the upstreams note of them.
  const abandoned = () => one.abandoned.length + two.abandoned.length
  const leavers = countOf(({ leaves }) => leaves)
  await until('the upstreams to see who left', () => abandoned() === leavers, abandoned)
  const read = async () => (await latchkey.admin<{ data: FoundRow[] }>('usage.requests', { limit: 10_000 })).data
  await until(
    'a row of each',
    async () => (await read()).length >= forwarded.length,
    async () => (await read()).length,
  )

  const answers = answersOf({ one, two })
  const expected = forwarded.map((number) => expectedOf(number, answers))
  const rows = await read()
  expect(rows).toHaveLength(forwarded.length)
  const found = new Map(rows.map((row) => [row.model_asked, row]))
  const ids = new Map(rows.map((row) => [row.request_id, row]))
  expect([found.size, ids.size]).toEqual([forwarded.length, forwarded.length])
  for (const number of numbers.filter((each) => !isForwarded(each))) expect(seen[number]?.status).toBe(404)
  for (const [index, { costNanodollars, ...fields }] of expected.entries()) {
    const row = found.get(fields.model_asked)
    expect(row).toMatchObject({ ...fields, cost: costNanodollars === null ? null : costNanodollars / 1e9 })
    const { status, requestId } = seen[forwarded[index] ?? 0] ?? {}
    const recorded = [row?.status, row?.request_id]
    expect<unknown>(status === undefined ? recorded : [status, requestId]).toEqual(recorded)
  }
  const responses = [...answers.values()]
  for (const { model, requestId } of responses)
    expect(ids.get(requestId)?.model_asked?.split('/').at(-1)).toBe(model.split('/').at(-1))
  expect(
    responses.length +
      countOf(({ model, models, leaves }) => !models && (leaves === 'before' || /^(gone|nobody)/.test(model))),
  ).toBe(requests)
  // An upstream sends the usage of a stream on request, and the gateway must request it.
  expect(responses.filter(({ model, total }) => /stream|linger/.test(model) && total === null)).toEqual([])
  expect(one.sentAway.length).toBe(countOf(({ model, models = [] }) => /busy|shared/.test([model, ...models].join())))
  expect(two.sentAway).toEqual([])

  for (const field of ['key_id', 'upstream', 'subject'] as const) {
    const sums = sumBy(expected, field)
    expect(await reportBy(field)).toEqual(sums)
    const total = Object.values(sums).reduce((sum, { tokens }) => sum + tokens, 0)
    expect(total).toBe(responses.reduce((sum, answered) => sum + (answered.total ?? 0), 0))
    const nanodollars = Object.values(sums).reduce((sum, { nanodollars }) => sum + nanodollars, 0)
    expect(nanodollars).toBe(responses.reduce((sum, answered) => sum + (costOf(answered) ?? 0), 0))
  }
  expect(await latchkey.admin<unknown>('usage.verify')).toEqual({ ok: true, data: [] })
  for (const [key, { nanodollars }] of Object.entries(sumBy(expected, 'key_id')))
    expect(await latchkey.admin<unknown>('keys.show', { key })).toMatchObject({ usage: nanodollars / 1e9 })
}, 60_000)
