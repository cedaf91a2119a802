// Alerts as a receiver of webhooks and an operator meet them: what is sent, once or again, what is not, and what is seen of failures.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { metricsText } from '../../../src/monitoring/metrics-report.ts'
import { examineNow } from '../../../src/server/schedules.ts'
import { question } from '../../support/inference.ts'
import { type Federation, type Row, startFederation } from '../../support/latchkey.ts'
import { isServerKind } from '../../support/server-kind.ts'
import { type ReceivedEvent, startWebhookReceiver, type WebhookReceiver } from '../../support/webhook-receiver.ts'

type Key = Row & { key: string }
type Hook = Row & { waiting: number; failing_since: string | null; delivered_at: string | null; problem: string | null }

let latchkey: Federation
let receiver: WebhookReceiver
/** In sum less than the five minutes that the official package allows between two clocks. */
let aheadMilliseconds = 0
beforeAll(async () => {
  receiver = await startWebhookReceiver()
  latchkey = await startFederation({
    settings: { LATCHKEY_WEBHOOK_NETWORKS: '127.0.0.0/8' },
    dependencies: { now: () => Date.now() + aheadMilliseconds },
  })
  const { secret } = await latchkey.admin<Hook & { secret: string }>('webhooks.add', { name: 'ops', url: receiver.url })
  receiver.secret.current = secret
})
beforeEach(() => {
  receiver.received.length = 0
  receiver.answer.current = undefined
})
afterAll(async () => {
  await latchkey.stop()
  await receiver.stop()
})

let made = 0
const createKey = () => latchkey.admin<Key>('keys.create', { name: `a${made++}` })
const create = (key: Key, more: object) =>
  latchkey.admin('budgets.create', { name: `of ${key.name}`, applies_to: { keys: [key.name] }, ...more })
const perMonth = (requests: number) => [{ per: 'month', requests }]
const ask = async ({ key }: Key, times = 1) => {
  for (let count = 0; count < times; count++) {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify(question) }
    await (await fetch(`${latchkey.server.baseUrl}/chat/completions`, init)).arrayBuffer()
  }
}
/** All that was raised is saved and sent. */
const settle = async () => {
  const { alerts, budgetAlerts, outbox, follow } = latchkey.server.context
  await follow.fresh()
  await budgetAlerts.settle()
  await alerts.settle()
  await outbox.deliver()
}
const show = () => latchkey.admin<Hook>('webhooks.show', { webhook: 'ops' })
const percentsOf = (events: readonly ReceivedEvent[]) => events.map(({ data }) => data.percent)

test('alerts are listed, newest first, with how far their deliveries are', async () => {
  const key = await createKey()
  await create(key, { windows: perMonth(2) })
  receiver.answer.current = () => new Response(null, { status: 500 })
  await ask(key, 2)
  await settle()
  const { data } = await latchkey.admin<{ data: Row[] }>('alerts.list', { type: 'budget.reached', limit: 2 })
  expect(data.map(({ data: each }) => each)).toMatchObject([
    { budget: { name: `of ${key.name}` }, per: 'month' },
    { budget: { name: `of ${key.name}` }, per: 'month' },
  ])
  expect(data.map(({ data: each }) => (each as unknown as { percent: number }).percent).toSorted()).toEqual([100, 80])
  for (const { deliveries } of data) expect(deliveries).toEqual({ delivered: 0, waiting: 1, given_up: 0 } as never)
  const later = await latchkey.admin<{ data: Row[] }>('alerts.list', {
    since: new Date(Date.now() + 600_000).toISOString(),
  })
  expect(later.data).toEqual([])
  receiver.answer.current = undefined
  aheadMilliseconds += 10_000
  await settle()
  const [again] = (await latchkey.admin<{ data: Row[] }>('alerts.list', { limit: 1 })).data
  expect(again?.deliveries).toEqual({ delivered: 1, waiting: 0, given_up: 0 } as never)
})

describe('a budget', () => {
  test('alerts once at each percent of a period, with what was spent and when it resets', async () => {
    const key = await createKey()
    await create(key, { windows: perMonth(5) })
    await ask(key, 3)
    await settle()
    expect(receiver.received).toEqual([])
    await ask(key)
    await settle()
    expect(receiver.received).toMatchObject([
      {
        type: 'budget.reached',
        data: {
          budget: { name: `of ${key.name}`, mode: 'block' },
          per: 'month',
          percent: 80,
          unit: 'requests',
          spent: 4,
        },
      },
    ])
    const [{ id, timestamp, data } = {} as ReceivedEvent] = receiver.received
    expect(id).toMatch(/^msg_[0-9a-f]{32}$/)
    expect(new Date(timestamp).toISOString()).toBe(timestamp)
    expect(data.limit).toBe(5)
    expect(data.resets_at).toMatch(/^\d{4}-\d{2}-01T00:00:00\.000Z$/)
    expect(data).not.toHaveProperty('value')
    await ask(key, 3)
    await settle()
    expect(percentsOf(receiver.received)).toEqual([80, 100])
    expect(receiver.refused).toEqual([])
  })

  test('for each value alerts of every value, and says which', async () => {
    const key = await createKey()
    await create(key, { each: 'key', windows: perMonth(2), alerts: [50] })
    await ask(key, 2)
    await settle()
    expect(receiver.received.map(({ data }) => [data.each, data.value, data.percent])).toEqual([['key', key.id, 50]])
  })

  test('that is made late, edited or looked at again alerts of what was spent already, and not twice', async () => {
    const key = await createKey()
    await ask(key, 4)
    await create(key, { windows: perMonth(4), alerts: [90] })
    await settle()
    expect(percentsOf(receiver.received)).toEqual([90])
    await latchkey.admin('budgets.update', { budget: `of ${key.name}`, alerts: [50, 90] })
    await settle()
    expect(percentsOf(receiver.received)).toEqual([90, 50])
    await latchkey.server.context.budgetAlerts.lookAtAll(Date.now())
    await settle()
    expect(receiver.received).toHaveLength(2)
  })

  test('without percents, and one that is disabled, alerts of nothing', async () => {
    const key = await createKey()
    await create(key, { windows: perMonth(1), alerts: [] })
    const other = await createKey()
    const { id } = await create(other, { windows: perMonth(1) })
    await latchkey.admin('budgets.update', { budget: id, enabled: false })
    await ask(key)
    await ask(other)
    await settle()
    expect(receiver.received).toEqual([])
  })

  test('logs and counts what it alerts of', async () => {
    const key = await createKey()
    await create(key, { windows: perMonth(1), alerts: [100] })
    const before = await counted('latchkey_alerts_total{type="budget.reached"}')
    await ask(key)
    await settle()
    expect(await counted('latchkey_alerts_total{type="budget.reached"}')).toBe(before + 1)
    const [line] = latchkey.logLines.filter((each) => each.includes(`of ${key.name}`) && each.includes('"alert"'))
    expect(JSON.parse(line ?? '{}')).toMatchObject({ type: 'budget.reached', percent: 100, spent: 1, limit: 1 })
  })
})

async function counted(series: string): Promise<number> {
  const text = await metricsText(latchkey.server.context)
  const line = text.split('\n').find((each) => each.startsWith(series)) ?? ''
  return Number(line.split(' ').at(-1))
}

describe('a webhook', () => {
  test('that fails gets the same event again, later each time, and is shown as failing until it arrives', async () => {
    const key = await createKey()
    await create(key, { windows: perMonth(1), alerts: [100] })
    const replies = [
      new Response('no', { status: 500 }),
      new Response(null, { status: 302, headers: { location: receiver.url } }),
      new Response(null, { status: 429 }),
    ]
    const spare = replies.length
    receiver.answer.current = () => replies.shift() ?? new Response('{}')
    await ask(key)
    await settle()
    expect(receiver.received).toHaveLength(1)
    for (const delay of [6_000, 18_000, 54_000]) {
      // Not yet.
      aheadMilliseconds += delay / 2
      await settle()
      aheadMilliseconds += delay / 2
      await settle()
    }
    expect(receiver.received).toHaveLength(spare + 1)
    expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1)
    expect(new Set(receiver.received.map((event) => JSON.stringify(event))).size).toBe(1)
    expect(await show()).toMatchObject({ waiting: 0, failing_since: null, problem: null })
  })

  test('that fails three times is a finding of the doctor, which names it and how to test it, until it works again', async () => {
    const key = await createKey()
    await create(key, { windows: perMonth(1), alerts: [100] })
    receiver.answer.current = () => new Response(null, { status: 503 })
    await ask(key)
    await settle()
    const failing = async () => {
      const { findings } = await latchkey.admin<{ findings: { code: string; message: string; action: string }[] }>(
        'doctor.examine',
      )
      return findings.filter(({ code }) => code === 'webhook_failing')
    }
    expect(await failing()).toEqual([])
    for (const delay of [6_000, 18_000]) {
      aheadMilliseconds += delay
      await settle()
    }
    expect(await show()).toMatchObject({ waiting: 1, problem: 'it responds with 503' })
    const [finding] = await failing()
    expect(finding?.message).toContain('"ops"')
    expect(finding?.message).toContain('it responds with 503')
    expect(finding?.action).toBe('latchkey webhooks test ops')
    receiver.answer.current = undefined
    aheadMilliseconds += 54_000
    await settle()
    expect(await failing()).toEqual([])
  })

  test('that responds with 410 does not get that event again, but the others', async () => {
    const [key, other] = [await createKey(), await createKey()]
    await create(key, { windows: perMonth(1), alerts: [100] })
    await create(other, { windows: perMonth(1), alerts: [100] })
    receiver.answer.current = () => new Response(null, { status: 410 })
    await ask(key)
    await settle()
    receiver.answer.current = undefined
    aheadMilliseconds += 60_000
    await ask(other)
    await settle()
    const ids = receiver.received.map(({ data }) => (data.budget as Row).name)
    expect(ids).toEqual([`of ${key.name}`, `of ${other.name}`])
  })

  test('gets only the events that it asks for, and nothing while it is disabled', async () => {
    const others = await startWebhookReceiver()
    const { secret } = await latchkey.admin<Hook & { secret: string }>('webhooks.add', {
      ...{ name: 'findings', url: others.url, events: ['finding.opened'] },
    })
    others.secret.current = secret
    await latchkey.admin('webhooks.update', { webhook: 'ops', enabled: false })
    const key = await createKey()
    await create(key, { windows: perMonth(1), alerts: [100] })
    await ask(key)
    await settle()
    await latchkey.admin('webhooks.update', { webhook: 'ops', enabled: true })
    await settle()
    expect([others.received, receiver.received]).toEqual([[], []])
    await latchkey.admin('webhooks.delete', { webhook: 'findings' })
    await others.stop()
  })

  test('is tested with one event that it can verify; a wrong secret and a dead receiver are reported', async () => {
    expect(await latchkey.admin('webhooks.test', { webhook: 'ops' })).toMatchObject({ ok: true, status: 204 })
    expect(receiver.received).toMatchObject([{ type: 'webhook.test', data: { webhook: 'ops' } }])
    const right = receiver.secret.current
    receiver.secret.current = `whsec_${Buffer.alloc(32).toString('base64')}`
    const report = { ok: false, status: null, problem: 'it responds with 400' }
    expect(await latchkey.admin('webhooks.test', { webhook: 'ops' })).toMatchObject(report)
    receiver.secret.current = right
    receiver.refused.length = 0
    const dead = await startWebhookReceiver()
    await dead.stop()
    await latchkey.admin('webhooks.add', { name: 'dead', url: dead.url })
    const { ok, problem } = await latchkey.admin<{ ok: boolean; problem: string }>('webhooks.test', { webhook: 'dead' })
    expect([ok, problem]).toEqual([false, expect.stringContaining('nothing listens there')])
    await latchkey.admin('webhooks.delete', { webhook: 'dead' })
  })

  test('gets a new secret while its receiver still has the one before, which ends when that is asked for', async () => {
    const before = receiver.secret.current
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
    const isVerified = async () => (await latchkey.admin<Row>('webhooks.test', { webhook: 'ops' })).ok
    const update = (more: object) => latchkey.admin('webhooks.update', { webhook: 'ops', ...more })
    await expect(update({ grace_seconds: 5 })).rejects.toThrow('send secret with it')
    await update({ secret })
    expect(await isVerified()).toBe(true)
    receiver.secret.current = secret
    expect(await isVerified()).toBe(true)
    await update({ secret: before, grace_seconds: 0 })
    expect(await isVerified()).toBe(false)
    receiver.secret.current = before
    expect(await isVerified()).toBe(true)
  })

  test('keeps its secret to itself: it is in the response that made it, and in no other and no record', async () => {
    const text = JSON.stringify([
      await show(),
      await latchkey.admin('webhooks.list'),
      await latchkey.admin('audit.changes', { kind: 'webhook' }),
      await latchkey.admin('config.export', {}),
    ])
    expect(text).not.toContain(receiver.secret.current)
    expect(text).not.toContain(receiver.secret.current.slice('whsec_'.length))
    expect(text).toContain('has_credential')
  })
})

describe('a finding of the doctor', () => {
  // Nodes do not see the same, so that of several it takes a quarter of an hour.
  test.skipIf(isServerKind)('is sent when it appears and when it is gone, and not in between', async () => {
    const { context } = latchkey.server
    await examineNow(context)
    await settle()
    receiver.received.length = 0
    const { id } = await latchkey.admin('policies.create', {
      ...{ name: 'idle', issuer: 'idp', key: 'target', audience: 'llm', subject: 'nobody' },
    })
    await context.database.client.execute('update policies set created_at = 0')
    for (let count = 0; count < 3; count++) await examineNow(context)
    await settle()
    const opened = receiver.received.filter(({ type }) => type === 'finding.opened')
    expect(opened.map(({ data }) => [data.code, data.level])).toEqual([['policy_never_issued', 'note']])
    expect(String(opened[0]?.data.message)).toContain('"idle"')
    receiver.received.length = 0
    await latchkey.admin('policies.delete', { policy: id })
    for (let count = 0; count < 2; count++) await examineNow(context)
    await settle()
    const closed = receiver.received.filter(({ type }) => type === 'finding.closed')
    expect(closed.map(({ data }) => data.opened_as)).toEqual([opened[0]?.id])
  })
})
