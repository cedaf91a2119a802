// A call whose ledger row could not be written: the upstream has still done its work, so the budget and the rate count
// it.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import {
  answer,
  deltaOf,
  eventOf,
  type Inference,
  question,
  startInference,
  streamReply,
} from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'

type Key = Row & { key: string; usage: number; limit_remaining: number }

let latchkey: Inference
beforeAll(async () => {
  latchkey = await startInference()
})
beforeEach(() => latchkey.reset())
afterAll(() => latchkey.stop())

let made = 0
const create = (bounds: object) => latchkey.admin<Key>('keys.create', { name: `k${made++}`, ...bounds })
const usage = { ...answer.usage, cost: 1 }
const ask = ({ key }: Key, body: object = question) => latchkey.complete(body, { authorization: `Bearer ${key}` })

/** The next rows are lost, until the test ends. */
function loseRows(): void {
  latchkey.server.context.writer.appendUsage = () => Promise.reject(new Error('disk full'))
}

for (const stream of [false, true]) {
  test(`the cost of ${stream ? 'a stream' : 'a JSON answer'} is spent, and the log keeps its row`, async () => {
    const events = deltaOf('hi') + eventOf({ choices: [], usage }) + eventOf('[DONE]')
    latchkey.upstream.answer.current = () => (stream ? streamReply(events) : Response.json({ ...answer, usage }))
    const key = await create({ limit: 1 })
    loseRows()
    latchkey.logLines.length = 0
    // Nobody gets a whole answer that the ledger does not know: JSON is a 500, a stream is cut before its end.
    const seen = await ask(key, { ...question, stream }).then(
      async (response) => `${response.status} ${await response.text().catch(() => 'cut')}`,
      () => 'cut',
    )
    expect(seen).toMatch(stream ? /^(?!.*\[DONE\]).*cut$/s : /^500 .*"Internal server error"/)
    expect(await latchkey.admin<Key>('keys.show', { key: key.id })).toMatchObject({ usage: 1, limit_remaining: 0 })
    const logged = latchkey.logLines.map((line) => JSON.parse(line)).find(({ event }) => event === 'usage_lost')
    expect(logged).toMatchObject({ keyId: key.id, costNanodollars: 1e9, totalTokens: 7, error: 'disk full' })
    latchkey.reset()
    expect((await ask(key)).status).toBe(402)
  })
}

test('its tokens are taken from the rate of the key', async () => {
  const key = await create({ tokens_per_minute: 7 })
  loseRows()
  await (await ask(key)).text()
  latchkey.reset()
  expect((await ask(key)).status).toBe(429)
})
