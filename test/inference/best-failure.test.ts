// What a caller gets when no inference server can answer: the failure that helps most, and nothing of the others stays
// open.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { answer, type Inference, question, startInference } from '../support/inference.ts'
import { holdStream, type ScriptedUpstream, startScriptedUpstream } from '../support/scripted-upstream.ts'
import { until } from '../support/until.ts'

let latchkey: Inference
let upstreams: ScriptedUpstream[]
const names = ['configured', 'second', 'third']
beforeAll(async () => {
  latchkey = await startInference()
  upstreams = [latchkey.upstream, await startScriptedUpstream(), await startScriptedUpstream()]
  for (const [priority, { url }] of upstreams.entries())
    if (priority > 0) await latchkey.admin('upstreams.add', { name: names[priority], base_url: url, priority })
})
beforeEach(() => {
  latchkey.reset()
  for (const upstream of upstreams) upstream.requests.length = 0
})
afterAll(async () => {
  await latchkey.stop()
  await Promise.all(upstreams.slice(1).map(({ stop }) => stop()))
})

/** `429 7` answers 429 with `Retry-After: 7`; `gone` is a response that cannot be passed on. */
function script(answers: string[]): void {
  for (const [index, upstream] of upstreams.entries()) {
    const [status = '', retryAfter] = (answers[index] ?? 'gone').split(' ')
    const headers: Record<string, string> = retryAfter === undefined ? {} : { 'retry-after': retryAfter }
    upstream.answer.current = () => {
      if (status === 'gone') return new Response(null, { status: 302 })
      return status === '200'
        ? Response.json(answer)
        : Response.json({ by: names[index] }, { status: Number(status), headers })
    }
  }
}

describe('of three failures the caller gets', () => {
  const rows: [name: string, answers: string[], status: number, by: string, asked: number][] = [
    ['a 429 that says when, over a 404', ['429 7', '404', '404'], 429, 'configured', 3],
    ['a 429 that says when, over no answer', ['429 7', 'gone', 'gone'], 429, 'configured', 3],
    ['a 429 that says when, over a 500', ['429 7', '500', '404'], 429, 'configured', 3],
    ['a 503 that says when, over a 429 that does not', ['503 7', '429', '404'], 503, 'configured', 3],
    ['a 429 that does not say when, over a 502', ['502', '429', '500'], 429, 'second', 3],
    ['a 500 over a 404', ['500', '404', '404'], 500, 'configured', 3],
    ['a 500 over a 401', ['500', '401', '403'], 500, 'configured', 3],
    ['the last of two that help as much', ['429 7', '503 9', '404'], 503, 'second', 3],
    ['a 400 at once, which is about the request', ['429 7', '400', '500'], 400, 'second', 2],
    ['a 404 at once, where nothing was worth another attempt before', ['404', '429 7', '429 7'], 404, 'configured', 1],
  ]
  for (const [name, answers, status, by, asked] of rows)
    test(name, async () => {
      script(answers)
      const response = await latchkey.complete(question)
      expect([response.status, await response.json()]).toEqual([status, { by }])
      expect(response.headers.get('retry-after')).toBe(answers[names.indexOf(by)]?.split(' ')[1] ?? null)
      expect(upstreams.filter(({ requests }) => requests.length === 1)).toHaveLength(asked)
      expect(await latchkey.usageOf(response)).toMatchObject([{ status, upstream: by, completed: true }])
    })

  test('the answer of the one that can, also after a 404', async () => {
    script(['429 7', '404', '200'])
    const response = await latchkey.complete(question)
    expect([response.status, await response.json()]).toEqual([200, answer])
    expect(await latchkey.usageOf(response)).toMatchObject([{ status: 200, upstream: 'third' }])
  })

  test('no response only when no upstream sent one', async () => {
    script(['gone', 'gone', '404'])
    const response = await latchkey.complete(question)
    expect(response.status).toBe(502)
    expect(await latchkey.usageOf(response)).toMatchObject([{ status: 502, upstream: 'second', completed: false }])
  })
})

describe('an upstream call that was fallen back from is ended', () => {
  /** A failure whose body has begun and does not end. */
  const busy = (held: ReturnType<typeof holdStream>) => () => {
    held.send('busy')
    return new Response(held.response.body, { status: 503 })
  }

  test('when another failure helps more', async () => {
    const held = holdStream()
    script(['503', '429 7', '404'])
    latchkey.upstream.answer.current = busy(held)
    expect((await latchkey.complete(question)).status).toBe(429)
    await held.left
  })

  test('when the client leaves meanwhile', async () => {
    const held = holdStream()
    const controller = new AbortController()
    script(['503', '200', '200'])
    latchkey.upstream.answer.current = busy(held)
    const [, second] = upstreams
    if (second !== undefined) second.answer.current = () => new Promise(() => {})
    const asked = latchkey.complete(question, {}, controller.signal).catch(() => 'left')
    await until('the second upstream', () => second?.requests.length === 1)
    controller.abort()
    expect(await asked).toBe('left')
    await held.left
  })
})
