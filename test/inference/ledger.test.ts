// The one usage row that a call leaves (reference: Inference): what it names, that it is committed before the end of
// the answer goes out, and that calls that are broken off are recorded as well.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { decodeJwt } from 'jose'
import type { UsageRow as LedgerRow } from '../../db/schema/record-schema.ts'
import {
  answer,
  deltaOf,
  eventOf,
  type Inference,
  question,
  startInference,
  streamReply,
  usageEvent,
} from '../support/inference.ts'
import { audience } from '../support/latchkey.ts'
import { holdStream } from '../support/scripted-upstream.ts'

let latchkey: Inference
beforeAll(async () => {
  latchkey = await startInference()
})
beforeEach(() => latchkey.reset())
afterAll(() => latchkey.stop())

/** Lets `before` and `after` run around the commit of the next row. */
function watchLedger({
  before = async () => {},
  after = () => {},
}: {
  before?: () => Promise<void>
  after?: (row: LedgerRow) => void
}) {
  const { writer } = latchkey.server.context
  const { appendUsage } = writer
  writer.appendUsage = async (row) => {
    await before()
    await appendUsage(row)
    after(row)
  }
}

describe('the usage', () => {
  test('of an access token names key, policy, issuer, subject and token', async () => {
    const response = await latchkey.complete(question, { authorization: `Bearer ${latchkey.accessToken}` })
    expect(await response.json()).toEqual(answer)
    expect(await latchkey.usageOf(response)).toMatchObject([
      {
        key_id: latchkey.key.id,
        policy_id: latchkey.policy.id,
        issuer_id: latchkey.issuer.id,
        subject: 'workload-1',
        access_token_id: String(decodeJwt(latchkey.accessToken).jti),
        endpoint: '/chat/completions',
        model: 'real-model',
        status: 200,
        streamed: false,
        completed: true,
        prompt_tokens: 3,
        completion_tokens: 4,
        total_tokens: 7,
        usage_source: 'upstream',
      },
    ])
  })

  test('of a key names the key alone', async () => {
    const [row] = await latchkey.usageOf(await latchkey.complete())
    expect(row).toMatchObject({
      key_id: latchkey.key.id,
      policy_id: null,
      issuer_id: null,
      subject: null,
      access_token_id: null,
    })
  })

  for (const streams of [false, true]) {
    test(`is committed before the end of ${streams ? 'a stream' : 'a JSON answer'} goes out`, async () => {
      const asked = Promise.withResolvers<void>()
      const released = Promise.withResolvers<void>()
      watchLedger({
        before: () => {
          asked.resolve()
          return released.promise
        },
      })
      // The stream does not end: its [DONE] alone is what a client takes for the end.
      const held = holdStream()
      if (streams) latchkey.upstream.answer.current = () => held.response
      held.send(deltaOf('hi') + usageEvent + eventOf('[DONE]'))
      const mark = streams ? '[DONE]' : JSON.stringify(answer)
      let seen = ''
      const ended = latchkey.complete({ ...question, stream: streams }).then(async (response) => {
        for await (const chunk of response.body ?? []) {
          seen += Buffer.from(chunk).toString()
          if (seen.includes(mark)) break
        }
        return response
      })
      await asked.promise
      // A whole request to the upstream and back: time enough for an answer that does not wait.
      latchkey.upstream.answer.current = () => Response.json({})
      const headers = { authorization: `Bearer ${latchkey.accessToken}` }
      await fetch(`${latchkey.server.baseUrl}/models`, { headers })
      expect(seen).not.toContain(mark)
      released.resolve()
      const response = await ended
      held.end()
      expect(seen).toContain(mark)
      expect(await latchkey.usageOf(response)).toMatchObject([{ completed: true, total_tokens: 7 }])
    })
  }

  test('of a caller that leaves in mid-stream is one row, not completed, and the upstream call is aborted', async () => {
    const held = holdStream()
    latchkey.upstream.answer.current = () => held.response
    held.send(deltaOf('one'))
    const recorded = Promise.withResolvers<void>()
    watchLedger({ after: () => recorded.resolve() })
    const leaving = new AbortController()
    const response = await latchkey.complete({ ...question, stream: true }, {}, leaving.signal)
    await response.body?.getReader().read()
    leaving.abort()
    await held.left
    await recorded.promise
    const row = { status: 200, completed: false, streamed: true, usage_source: 'none' }
    expect(await latchkey.usageOf(response)).toMatchObject([row])
  })

  test('of a caller that leaves before there is an answer is one row with status 499', async () => {
    const reached = Promise.withResolvers<void>()
    const recorded = Promise.withResolvers<unknown>()
    latchkey.upstream.answer.current = (request) => {
      reached.resolve()
      return new Promise((resolve) => request.signal.addEventListener('abort', () => resolve(new Response())))
    }
    watchLedger({ after: recorded.resolve })
    const leaving = new AbortController()
    const call = latchkey.complete(question, {}, leaving.signal)
    call.catch(() => {})
    await reached.promise
    leaving.abort()
    expect(await recorded.promise).toMatchObject({ status: 499, completed: false, keyId: latchkey.key.id })
    await expect(call).rejects.toThrow()
  })

  test('of a stream that ends without [DONE] is not completed, as a cut connection looks the same', async () => {
    for (const [end, completed] of [
      ['', false],
      [eventOf('[DONE]'), true],
    ] as const) {
      latchkey.upstream.answer.current = () => streamReply(deltaOf('one') + usageEvent + end)
      const response = await latchkey.complete({ ...question, stream: true })
      await response.text()
      expect(await latchkey.usageOf(response)).toMatchObject([{ completed, total_tokens: 7 }])
    }
  })

  test('has none where the counts of an upstream are absurd, so that no sum leaves the integers', async () => {
    const usage = { prompt_tokens: Number.MAX_SAFE_INTEGER, total_tokens: Number.MAX_SAFE_INTEGER }
    latchkey.upstream.answer.current = () => Response.json({ usage })
    const response = await latchkey.complete()
    await response.text()
    expect(await latchkey.usageOf(response)).toMatchObject([{ usage_source: 'none', total_tokens: null }])
  })

  test('took no time at all where the clock was set back meanwhile', async () => {
    const { context } = latchkey.server
    let ahead = 0
    context.now = () => Date.now() + ahead
    latchkey.upstream.answer.current = () => {
      ahead = -3_600_000
      return Response.json(answer)
    }
    const response = await latchkey.complete()
    await response.text()
    context.now = Date.now
    const row = { duration_milliseconds: 0, first_byte_milliseconds: 0, total_tokens: 7 }
    expect(await latchkey.usageOf(response)).toMatchObject([row])
  })

  test('keeps a model name whole, though it holds a NUL', async () => {
    // A client may not send one.
    latchkey.upstream.answer.current = () => Response.json({ ...answer, model: 'a\0b' })
    const response = await latchkey.complete()
    await response.text()
    expect(await latchkey.usageOf(response)).toMatchObject([{ model: String.raw`a\u0000b` }])
  })

  test('keeps no credential that slipped into a subject or the name of a model', async () => {
    const jwt = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl'
    const key = `sk-lk-v1-${'0123456789abcdef'.repeat(4)}`
    const names = { issuer: 'idp', key: 'target', audience }
    const policy = await latchkey.admin('policies.create', { ...names, name: 'by token', subject: `x ${jwt}` })
    const exchanged = await latchkey.exchange(await latchkey.mint({ sub: `x ${jwt}` }), {
      federation_policy_id: policy.id,
    })
    const { access_token } = (await exchanged.json()) as { access_token: string }
    latchkey.upstream.answer.current = () => Response.json({ model: `real ${key}` })
    const body = { ...question, model: `asked ${key}` }
    const response = await latchkey.complete(body, { authorization: `Bearer ${access_token}` })
    await response.text()
    const rows = await latchkey.usageOf(response)
    expect(rows).toMatchObject([
      {
        subject: expect.stringMatching(/^x /),
        model: expect.stringMatching(/^real /),
        model_asked: expect.stringMatching(/^asked /),
      },
    ])
    for (const secret of [jwt, key]) expect(JSON.stringify(rows)).not.toContain(secret.slice(12))
  })

  test('of an upstream that breaks off is one row, not completed', async () => {
    const held = holdStream()
    latchkey.upstream.answer.current = () =>
      new Response(held.response.body?.pipeThrough(breakAfterFirst()), held.response)
    held.send(deltaOf('one'))
    const response = await latchkey.complete({ ...question, stream: true })
    held.send('second')
    await response.text().catch(() => '')
    expect(await latchkey.usageOf(response)).toMatchObject([{ completed: false }])
  })
})

function breakAfterFirst(): TransformStream<Uint8Array, Uint8Array> {
  let seen = 0
  return new TransformStream({
    transform: (chunk, controller) => {
      if (seen++ === 0) controller.enqueue(chunk)
      else controller.error(new Error('broken'))
    },
  })
}
