// A stream does not outlive the key that it was asked with: the next chunk is replaced by an error that clients of the
// endpoint understand, and what was used until then counts.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { deltaOf, eventOf, finishOf, type Inference, startInference, usageEvent } from '../support/inference.ts'
import type { Row } from '../support/latchkey.ts'
import { type HeldStream, holdStream } from '../support/scripted-upstream.ts'

let latchkey: Inference
let held: HeldStream
beforeAll(async () => {
  latchkey = await startInference()
})
beforeEach(() => {
  held = holdStream()
  latchkey.upstream.answer.current = () => held.response
})
afterAll(() => latchkey.stop())

let names = 0
async function createKey(): Promise<Row & { key: string }> {
  names += 1
  return latchkey.admin('keys.create', { name: `key-${names}` })
}

/** A stream of which the client has read the first event. */
async function open(credential: string, path = '/chat/completions') {
  // The upstream sends its head with the first event.
  held.send(deltaOf('before'))
  const response = await fetch(latchkey.server.baseUrl + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', stream: true, messages: [], input: 'x', max_tokens: 1 }),
  })
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  expect((await reader?.read())?.value).toContain('before')
  const rest = async () => {
    let text = ''
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true }
      if (done) return text
      text += value
    }
  }
  return { rest, rows: () => latchkey.usageOf(response) }
}

const cut = { status: 200, completed: false, client_left: false }
const message = 'Invalid credentials: the key of this request is no longer valid, so the response ends here'
const metadata = { error_type: 'authentication' }
const fields = { code: '401', message, param: null, metadata }
const inMessages = { type: 'error', error: { type: 'authentication_error', code: 401, message, metadata } }
const inResponses = { type: 'error', sequence_number: 0, ...fields, error: fields }

describe('a stream ends at the next chunk', () => {
  for (const [path, event, data] of [
    ['/chat/completions', '', { error: { code: 401, message, metadata } }],
    ['/completions', '', { error: { code: 401, message, metadata } }],
    ['/responses', 'event: error\n', inResponses],
    ['/messages', 'event: error\n', inMessages],
  ] as const)
    test(`with the error event of ${path}`, async () => {
      const key = await createKey()
      const { rest, rows } = await open(key.key, path)
      await latchkey.admin('keys.delete', { key: key.id })
      held.send(deltaOf('after'))
      expect(await rest()).toBe(event + eventOf(data))
      await held.left
      expect(await rows()).toMatchObject([cut])
    })

  test('after its key was disabled', async () => {
    const key = await createKey()
    const { rest } = await open(key.key)
    await latchkey.admin('keys.disable', { key: key.id })
    held.send(deltaOf('after'))
    expect(await rest()).toBe(eventOf({ error: { code: 401, message, metadata } }))
  })

  test('after the key that its access token acts as was disabled', async () => {
    const { rest } = await open(latchkey.accessToken)
    await latchkey.admin('keys.disable', { key: latchkey.key.id })
    held.send(deltaOf('after'))
    expect(await rest()).toBe(eventOf({ error: { code: 401, message, metadata } }))
    await latchkey.admin('keys.enable', { key: latchkey.key.id })
  })

  test('after its key has expired by a change', async () => {
    const key = await createKey()
    const { rest } = await open(key.key)
    const expires_at = new Date(Date.now() + 60_000).toISOString()
    await latchkey.admin('keys.update', { key: key.id, expires_at })
    held.send(deltaOf('usable'))
    const { context } = latchkey.server
    const registered = context.registry.keys.get(key.id)
    if (registered !== undefined) context.registry.keys.set(key.id, { ...registered, expiresAt: Date.now() - 1 })
    held.send(deltaOf('after'))
    const text = await rest()
    expect(text).toEndWith(eventOf({ error: { code: 401, message, metadata } }))
    expect(text).not.toContain('after')
  })

  test('after the time when its key expires has passed, without a change', async () => {
    const { context } = latchkey.server
    const { now } = context
    let aheadMilliseconds = 0
    context.now = () => now() + aheadMilliseconds
    const expires_at = new Date(now() + 60_000).toISOString()
    const key = await latchkey.admin<Row & { key: string }>('keys.create', { name: 'expiring', expires_at })
    const { rest } = await open(key.key)
    context.now = now
    aheadMilliseconds = 60_001
    held.send(deltaOf('after'))
    held.end()
    expect(await rest()).toBe(eventOf({ error: { code: 401, message, metadata } }))
  })

  test('and waits for usage that is due, which is charged', async () => {
    const key = await createKey()
    const { rest, rows } = await open(key.key)
    await latchkey.admin('keys.delete', { key: key.id })
    held.send(finishOf())
    held.send(usageEvent)
    expect(await rest()).toBe(eventOf({ error: { code: 401, message, metadata } }))
    expect(await rows()).toMatchObject([{ ...cut, total_tokens: 7, usage_source: 'upstream' }])
  })
})

describe('a stream goes on to its end', () => {
  for (const [name, change] of [
    ['its key was changed', (key: Row) => latchkey.admin('keys.update', { key: key.id, name: `renamed ${key.id}` })],
    ['a different key was deleted', async () => latchkey.admin('keys.delete', { key: (await createKey()).id })],
  ] as const)
    test(`after ${name}`, async () => {
      const key = await createKey()
      const { rest, rows } = await open(key.key)
      await change(key)
      held.send(deltaOf('after') + finishOf() + usageEvent + eventOf('[DONE]'))
      held.end()
      expect(await rest()).toContain('after')
      expect(await rows()).toMatchObject([{ completed: true, total_tokens: 7 }])
    })

  test('after the policy of its access token was deleted', async () => {
    const { rest } = await open(latchkey.accessToken)
    await latchkey.admin('policies.delete', { policy: latchkey.policy.id })
    held.send(deltaOf('after') + eventOf('[DONE]'))
    held.end()
    expect(await rest()).toContain('after')
  })
})
