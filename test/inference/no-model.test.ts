// A request that names no model: every upstream can serve it, so it goes to them in order, first to those that are not down.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { answer, type Inference, question, startInference } from '../support/inference.ts'
import { type ScriptedUpstream, startScriptedUpstream } from '../support/scripted-upstream.ts'

let latchkey: Inference
let next: ScriptedUpstream
beforeAll(async () => {
  latchkey = await startInference()
  next = await startScriptedUpstream()
  await latchkey.admin('upstreams.add', { name: 'next', base_url: next.url, priority: 1, models: ['other/*'] })
})
beforeEach(() => {
  // Later than an upstream counts as down.
  for (let times = 0; times < 3; times++) latchkey.reset()
  next.requests.length = 0
  next.answer.current = () => Response.json(answer)
})
afterAll(async () => {
  await latchkey.stop()
  await next.stop()
})

const ask = async () => (await latchkey.complete({ messages: question.messages })).status
const asked = () => [latchkey.upstream.requests.length, next.requests.length]
const fail = ({ answer }: ScriptedUpstream) => {
  answer.current = () => Response.json({ error: 'no' }, { status: 500 })
}

test('goes to the first upstream, and after its failure to the next one, whatever models that one serves', async () => {
  expect([await ask(), asked()]).toEqual([200, [1, 0]])
  fail(latchkey.upstream)
  expect([await ask(), asked()]).toEqual([200, [2, 1]])
})

test('skips an upstream whose last request failed, for ten seconds or until another request succeeds', async () => {
  fail(latchkey.upstream)
  expect([await ask(), asked()]).toEqual([200, [1, 1]])
  expect([await ask(), asked()]).toEqual([200, [1, 2]])
  latchkey.reset()
  expect([await ask(), asked()]).toEqual([200, [0, 3]])
  latchkey.reset()
  expect([await ask(), asked()]).toEqual([200, [1, 3]])
  fail(latchkey.upstream)
  await ask()
  latchkey.upstream.answer.current = () => Response.json(answer)
  expect((await latchkey.complete(question)).status).toBe(200)
  expect([await ask(), asked()]).toEqual([200, [4, 4]])
})

test('reaches an upstream that is down where the others fail as well', async () => {
  fail(latchkey.upstream)
  fail(next)
  expect([await ask(), asked()]).toEqual([500, [1, 1]])
  latchkey.upstream.answer.current = () => Response.json(answer)
  expect([await ask(), asked()]).toEqual([200, [2, 1]])
})

test('ends where an upstream says that it needs a model', async () => {
  latchkey.upstream.answer.current = () => Response.json({ error: 'model is required' }, { status: 400 })
  expect([await ask(), asked()]).toEqual([400, [1, 0]])
})
