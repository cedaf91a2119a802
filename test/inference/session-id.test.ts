// The session id of a body as a header for the upstream: only a text that a header can hold becomes one.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type Inference, question, startInference } from '../support/inference.ts'

let latchkey: Inference
beforeAll(async () => {
  latchkey = await startInference()
})
beforeEach(() => latchkey.reset())
afterAll(() => latchkey.stop())

const headerFor = async (session_id: unknown, headers: Record<string, string> = {}) => {
  expect((await latchkey.complete({ ...question, session_id }, headers)).status).toBe(200)
  return latchkey.upstream.requests.at(-1)?.headers.get('x-session-id') ?? null
}

describe('a session id', () => {
  const passing: [name: string, text: string][] = [
    ['of a word', 'session-1'],
    ['of any printable ASCII', '!"#$%&\'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~'],
    ['of 256 characters', 'x'.repeat(256)],
  ]
  for (const [name, text] of passing) test(`${name} is sent`, async () => expect(await headerFor(text)).toBe(text))

  const others: [name: string, value: unknown][] = [
    ['with a space', 'two words'],
    ['with a space at its end', 'session '],
    ['with a tab', 'a\tb'],
    ['with a line end', 'a\r\nx-api-key: secret'],
    ['with a control character', 'a\u007fb'],
    ['beyond ASCII', 'sitzung-ä'],
    ['of 257 characters', 'x'.repeat(257)],
    ['that is empty', ''],
    ['that is a number', 7],
  ]
  for (const [name, value] of others)
    test(`${name} is not sent`, async () => {
      expect(await headerFor(value)).toBeNull()
      expect(latchkey.upstream.requests.at(-1)?.headers.has('x-api-key')).toBe(false)
    })

  test('in the header is refused beyond 256 characters, unless the body has one', async () => {
    const ask = async (length: number, body: object) =>
      (await latchkey.complete({ ...question, ...body }, { 'x-session-id': 'x'.repeat(length) })).status
    expect([await ask(256, {}), await ask(257, {}), await ask(257, { session_id: null })]).toEqual([200, 400, 400])
    expect(await ask(257, { session_id: 'body' })).toBe(200)
    expect(latchkey.upstream.requests.at(-1)?.headers.get('x-session-id')).toBe('body')
  })

  test('of the body counts before the header of the caller', async () => {
    expect(await headerFor('body', { 'x-session-id': 'header' })).toBe('body')
    expect(await headerFor(undefined, { 'x-session-id': 'header' })).toBe('header')
  })
})
