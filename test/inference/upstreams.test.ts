// Several inference servers behind one service: who is asked, in which order, and what happens when one fails.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { answer, type Inference, question, startInference, streamReply, usageEvent } from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'
import { type ScriptedUpstream, startScriptedUpstream } from '../support/scripted-upstream.ts'

let latchkey: Inference
let other: ScriptedUpstream
let third: ScriptedUpstream
beforeAll(async () => {
  latchkey = await startInference()
  other = await startScriptedUpstream()
  third = await startScriptedUpstream()
  const add = (input: object) => latchkey.admin('upstreams.add', input as Record<string, unknown>)
  await add({ name: 'other', base_url: other.url, models: ['other/*'], priority: 1, credential: 'other-secret' })
  await add({ name: 'third', base_url: `${third.url}/`, models: ['third', 'shared'], priority: 2 })
})
beforeEach(() => {
  latchkey.reset()
  for (const upstream of [other, third]) {
    upstream.requests.length = 0
    upstream.answer.current = () => Response.json(answer)
  }
})
afterAll(async () => {
  await latchkey.stop()
  await Promise.all([other.stop(), third.stop()])
})

/** How many requests each upstream got: the one of the settings, `other`, `third`. */
const asked = () => [latchkey.upstream, other, third].map(({ requests }) => requests.length)
const failing = (status: number) => () => Response.json({ error: { message: 'no' } }, { status })

describe('a request', () => {
  test('goes to the first upstream that serves its model, with the credential of that one', async () => {
    expect((await latchkey.complete({ ...question, model: 'shared' })).status).toBe(200)
    expect(asked()).toEqual([1, 0, 0])
    await latchkey.admin('upstreams.update', { upstream: 'other', models: ['*'] })
    const response = await latchkey.complete({ ...question, model: 'other/x' })
    await response.text()
    expect(asked()).toEqual([2, 0, 0])
    await latchkey.admin('upstreams.update', { upstream: 'other', models: ['other/*'] })
  })

  test('falls back to the next upstream and the next model, before the first byte', async () => {
    latchkey.upstream.answer.current = failing(503)
    other.answer.current = failing(429)
    const body = { messages: question.messages, model: 'other/x', models: ['other/y', 'third'] }
    const response = await latchkey.complete(body)
    expect([response.status, await response.json()]).toEqual([200, answer])
    expect(asked()).toEqual([3, 2, 1])
    expect(JSON.parse(third.requests[0]?.body ?? '')).toEqual({ messages: question.messages, model: 'third' })
    expect(other.requests.map(({ headers }) => headers.get('authorization'))).toEqual([
      'Bearer other-secret',
      'Bearer other-secret',
    ])
    expect(third.requests[0]?.headers.has('authorization')).toBe(false)
    expect(await latchkey.usageOf(response)).toMatchObject([
      { status: 200, model_asked: 'other/x', model: 'real-model', upstream: 'third' },
    ])
    expect(latchkey.logLines.join('')).toContain('"event":"upstream_fallback"')
  })

  test('is tried with a model at every upstream that serves it, and then with the next model', async () => {
    const tried: string[] = []
    for (const [name, { answer, requests }] of Object.entries({ configured: latchkey.upstream, other, third }))
      answer.current = () => {
        tried.push(`${name} ${JSON.parse(requests.at(-1)?.body ?? '').model}`)
        return failing(503)()
      }
    await (await latchkey.complete({ ...question, model: 'shared', models: ['other/x'] })).text()
    expect(tried).toEqual(['configured shared', 'third shared', 'configured other/x', 'other other/x'])
  })

  test('gets the answer of the last attempt when all fail, and of the first that is no failure of the server', async () => {
    latchkey.upstream.answer.current = failing(500)
    third.answer.current = failing(502)
    const failed = await latchkey.complete({ ...question, model: 'third' })
    expect([failed.status, await failed.json()]).toEqual([502, { error: { message: 'no' } }])
    latchkey.upstream.answer.current = failing(400)
    const refused = await latchkey.complete({ ...question, models: ['third'] })
    expect(refused.status).toBe(400)
    expect(third.requests).toHaveLength(1)
  })

  test('falls back when an upstream cannot be reached', async () => {
    const gone = await startScriptedUpstream()
    await gone.stop()
    await latchkey.admin('upstreams.add', { name: 'gone', base_url: gone.url, models: ['gone'], priority: 0 })
    latchkey.upstream.answer.current = failing(503)
    const response = await latchkey.complete({ ...question, models: ['gone', 'third'] })
    expect(response.status).toBe(200)
    await latchkey.admin('upstreams.remove', { upstream: 'gone' })
  })

  test('is not asked again once its answer has begun', async () => {
    latchkey.upstream.answer.current = () => streamReply(usageEvent.slice(0, 20))
    const response = await latchkey.complete({ ...question, stream: true, models: ['third'] })
    await response.text()
    expect(asked()).toEqual([1, 0, 0])
    expect(await latchkey.usageOf(response)).toMatchObject([{ completed: false, client_left: false }])
  })

  test('may list 16 models, of 256 characters each', async () => {
    latchkey.upstream.answer.current = failing(503)
    const models = Array.from({ length: 16 }, (_, at) => `${at}`.padEnd(256, '𐀀'.slice(at % 2)))
    const response = await latchkey.complete({ messages: question.messages, models })
    expect(response.status).toBe(503)
    expect(latchkey.upstream.requests.map(({ body }) => JSON.parse(body).model)).toEqual(models)
  })

  for (const [name, models] of [
    ['no list', 'a'],
    ['too long', Array.from({ length: 257 }, (_, at) => `m${at}`)],
    ['of numbers', [1]],
    ['with an empty name', ['']],
  ] as const)
    test(`whose models are ${name} is refused`, async () => {
      const response = await latchkey.complete({ ...question, models })
      expect(response.status).toBe(400)
      expect(asked()).toEqual([0, 0, 0])
    })
})

describe('the models', () => {
  const list = (...ids: string[]) => Response.json({ data: ids.map((id) => ({ id, object: 'model' })) })
  const idsFor = async (credential: string) => {
    const headers = { authorization: `Bearer ${credential}` }
    const { data } = (await (await fetch(`${latchkey.server.baseUrl}/models`, { headers })).json()) as { data: Row[] }
    return data.map(({ id }) => id)
  }

  test('are those of all upstreams as far as each serves them, once each', async () => {
    latchkey.upstream.answer.current = () => list('a', 'shared')
    other.answer.current = () => list('other/x', 'hidden')
    third.answer.current = () => list('shared', 'third')
    expect(await idsFor(latchkey.key.key)).toEqual(['a', 'shared', 'other/x', 'third'])
  })

  test('leave out an upstream that fails, and what the key may not use', async () => {
    latchkey.upstream.answer.current = () => list('a', 'b')
    other.answer.current = failing(500)
    third.answer.current = () => new Response('{')
    const { key } = await latchkey.admin<Row & { key: string }>('keys.create', {
      name: 'narrow',
      allowed_models: ['b*'],
    })
    expect(await idsFor(key)).toEqual(['b'])
  })

  test('of one name are shown by who serves it, slashes and all', async () => {
    latchkey.upstream.answer.current = () => list('a')
    other.answer.current = () => list('other/x y', 'a')
    const headers = { authorization: `Bearer ${latchkey.key.key}` }
    const response = await fetch(`${latchkey.server.baseUrl}/models/other/x%20y`, { headers })
    expect(await response.json()).toEqual({ id: 'other/x y', object: 'model' })
    expect(other.requests.map(({ path }) => path)).toEqual(['/v1/models'])
  })
})

test('a check shows which upstreams respond, and why the others fail', async () => {
  latchkey.upstream.answer.current = () => Response.json({ data: [{ id: 'a' }] })
  other.answer.current = failing(401)
  third.answer.current = () => new Response('nonsense')
  const { data } = await latchkey.admin<{ data: Row[] }>('upstreams.check')
  expect(data).toMatchObject([
    { name: 'configured', ok: true, models: 1, problem: null },
    { name: 'other', ok: false, problem: 'it responds with 401: check its credential' },
    { name: 'third', ok: false },
  ])
})

test('that of the settings is shown and checked as the others are, and changed in the settings alone', async () => {
  const configured = { upstream: 'configured' }
  expect(await latchkey.admin<Row>('upstreams.show', configured)).toMatchObject({ base_url: latchkey.upstream.url })
  latchkey.upstream.answer.current = () => Response.json({ data: [] })
  const { data } = await latchkey.admin<{ data: Row[] }>('upstreams.check', configured)
  expect(data).toMatchObject([{ name: 'configured', ok: true }])
  await expect(latchkey.admin('upstreams.remove', configured)).rejects.toThrow('LATCHKEY_UPSTREAM_URL')
})

test('a credential is nowhere to be seen again', async () => {
  const { data } = await latchkey.admin<{ data: Row[] }>('upstreams.list')
  const { data: changes } = await latchkey.admin<{ data: Row[] }>('audit.changes')
  const seen = JSON.stringify([data, changes, latchkey.logLines])
  expect(seen).toContain('"has_credential":true')
  expect(seen).not.toContain('other-secret')
  // Also not in its encrypted form: records of changes say whether there is one.
  expect(JSON.stringify(changes)).toContain('"has_credential":true')
  expect(seen).not.toContain('credential_encrypted')
})
