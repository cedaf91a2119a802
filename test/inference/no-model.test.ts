// A request that names no model: every upstream can serve it, so it goes to them in order, first to those that do not rest.
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
  latchkey.reset()
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

test('skips an upstream that rests after three failures, until a trial succeeds', async () => {
  fail(latchkey.upstream)
  for (let times = 0; times < 3; times++) await ask()
  expect(asked()).toEqual([3, 3])
  expect([await ask(), asked()]).toEqual([200, [3, 4]])
  latchkey.reset()
  expect([await ask(), asked()]).toEqual([200, [1, 4]])
  expect([await ask(), asked()]).toEqual([200, [2, 4]])
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
