// An upstream whose failure sends a request on to the next one: its call is ended, whatever it goes on to send.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { answer, type Inference, question, startInference } from '../support/inference.ts'
import { holdStream, type ScriptedUpstream, startScriptedUpstream } from '../support/scripted-upstream.ts'

let latchkey: Inference
let next: ScriptedUpstream
beforeAll(async () => {
  latchkey = await startInference()
  next = await startScriptedUpstream()
  await latchkey.admin('upstreams.add', { name: 'next', base_url: next.url, priority: 1 })
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

for (const status of [429, 500, 503]) {
  test(`after a ${status} whose body never ends, the first call is ended and the second one answers`, async () => {
    const held = holdStream()
    held.send('a beginning')
    latchkey.upstream.answer.current = () => new Response(held.response.body, { status })
    const response = await latchkey.complete(question)
    expect([response.status, await response.json()]).toEqual([200, answer])
    expect([latchkey.upstream.requests.length, next.requests.length]).toEqual([1, 1])
    // Other requests pass the time, less of it than the runtime takes to close a connection that nobody reads.
    let isLeft = false
    void held.left.then(() => {
      isLeft = true
    })
    latchkey.upstream.answer.current = () => Response.json(answer)
    for (let asked = 0; asked < 50 && !isLeft; asked++) await (await latchkey.complete(question)).text()
    expect(isLeft).toBe(true)
  })
}

test('an answer that is an error of the caller is kept, and its call is not repeated elsewhere', async () => {
  latchkey.upstream.answer.current = () => Response.json({ error: 'no' }, { status: 400 })
  const response = await latchkey.complete(question)
  expect([response.status, await response.json()]).toEqual([400, { error: 'no' }])
  expect(next.requests).toHaveLength(0)
})
