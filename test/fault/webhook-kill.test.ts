// Alerts survive kills: a server is killed while a receiver holds its requests, and every event arrives after the restart, with its id.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { question } from '../support/inference.ts'
import { type Installation, install, type Served } from '../support/installation.ts'
import type { Row } from '../support/latchkey.ts'
import { isServerKind } from '../support/server-kind.ts'
import { until } from '../support/until.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

const rounds = 3
let installation: Installation
let receiver: WebhookReceiver
beforeAll(async () => {
  receiver = await startWebhookReceiver()
  installation = await install()
})
afterAll(async () => {
  await receiver.stop()
  await installation.remove()
})

const serve = () => installation.serve(undefined, { LATCHKEY_WEBHOOK_NETWORKS: '127.0.0.0/8' })

async function spend({ baseUrl }: Served, key: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(`${baseUrl}/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify(question),
  })
  await response.arrayBuffer()
  expect(response.status).toBe(200)
}

// Of several nodes, another one sends it half a minute later.
test.skipIf(isServerKind)(
  'each event arrives at least once, and again with the same id after a kill',
  async () => {
    let served = await serve()
    const { secret } = await served.ask<Row & { secret: string }>('webhooks.add', { name: 'ops', url: receiver.url })
    receiver.secret.current = secret
    const never = new Promise<Response>(() => {})
    for (let round = 0; round < rounds; round++) {
      const { key, name } = await served.ask<Row & { key: string; name: string }>('keys.create', { name: `k${round}` })
      const budget = { name, applies_to: { keys: [name] }, windows: [{ per: 'month', requests: 2 }], alerts: [50, 100] }
      await served.ask('budgets.create', budget)
      receiver.answer.current = () => never
      const held = receiver.received.length
      await spend(served, key)
      await spend(served, key)
      await until('an event at the receiver', () => receiver.received.length > held)
      await served.serving.stop('SIGKILL')
      receiver.answer.current = undefined
      served = await serve()
      const ofRound = () => receiver.received.slice(held).filter(({ data }) => (data.budget as Row).name === name)
      await until('both events', () => new Set(ofRound().map(({ data }) => data.percent)).size === 2)
      await until('the held event again', () => ofRound().length >= 3, ofRound)
      const percentOf = new Map(ofRound().map(({ id, data }) => [id, data.percent]))
      expect([...percentOf.values()].toSorted()).toEqual([100, 50])
    }
    await served.serving.stop()
    expect(receiver.refused).toEqual([])
  },
  60_000,
)
