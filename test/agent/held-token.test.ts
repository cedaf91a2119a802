// The token of a long-running process: renewed ahead of need by one exchange at a time, and never asked for in a flood.
import { expect, test } from 'bun:test'
import type { AccessToken } from '../../src/agent/exchange.ts'
import { holdToken } from '../../src/agent/held-token.ts'

/** A holder with a clock that the test moves, whose exchanges end when the test says so. */
function holder(seconds = 900) {
  const state = { now: 1_800_000_000_000, exchanges: 0, renewed: 0, attempts: [] as number[] }
  let answer: (token: number) => Promise<number> = async () => seconds
  const exchange = async (): Promise<AccessToken> => {
    const number = ++state.exchanges
    const issuedAt = state.now
    const lifetime = await answer(number)
    return { text: `token-${number}`, issuedAt, expiresAt: issuedAt + lifetime * 1000 }
  }
  const held = holdToken({
    exchange,
    now: () => state.now,
    onRenewal: () => (state.renewed += 1),
    onFailure: (_error, attemptAt) => state.attempts.push(attemptAt - state.now),
  })
  return {
    ...held,
    state,
    text: async () => (await held.get()).text,
    pass: (duration: number) => (state.now += duration * 1000),
    answerWith: (next: typeof answer) => (answer = next),
  }
}

const fails = () => Promise.reject(new Error('refused'))

test('200 callers without a token cause one exchange', async () => {
  const { text, state } = holder()
  const texts = await Promise.all(Array.from({ length: 200 }, text))
  expect(new Set(texts)).toEqual(new Set(['token-1']))
  expect(state.exchanges).toBe(1)
})

test('two thirds into its life a token is renewed in the background, while callers use it on', async () => {
  const { text, state, pass, answerWith, dueAt } = holder()
  await text()
  expect(dueAt()).toBe(state.now + 600_000)
  pass(599)
  expect([await text(), state.exchanges]).toEqual(['token-1', 1])
  pass(1)
  const held = Promise.withResolvers<number>()
  answerWith(() => held.promise)
  expect([await text(), await text(), state.exchanges]).toEqual(['token-1', 'token-1', 2])
  held.resolve(900)
  await held.promise
  await new Promise((done) => setImmediate(done))
  expect([await text(), state.exchanges, state.renewed]).toEqual(['token-2', 2, 2])
})

test('a token is not used in its last 10 seconds, nor in the last sixth of a short life, nor before it was issued', async () => {
  const long = holder()
  await long.text()
  long.answerWith(() => new Promise(() => {}))
  long.pass(889)
  expect(await long.text()).toBe('token-1')
  long.pass(1)
  expect(long.current()).toBeUndefined()
  const short = holder(6)
  await short.text()
  short.pass(4.9)
  expect(short.current()?.text).toBe('token-1')
  short.pass(0.1)
  expect(short.current()).toBeUndefined()
  const back = holder()
  await back.text()
  back.pass(-1)
  expect(await back.text()).toBe('token-2')
})

test('a failure is shared until the next attempt is due, after 1, 2, 4 and at most 30 seconds', async () => {
  const { text, state, pass, answerWith, get } = holder()
  answerWith(fails)
  const outcomes = await Promise.allSettled(Array.from({ length: 50 }, () => get()))
  expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(50)
  await expect(get()).rejects.toThrow('refused')
  expect(state.exchanges).toBe(1)
  for (const seconds of [1, 2, 4, 8, 16, 30]) {
    pass(seconds)
    await expect(get()).rejects.toThrow('refused')
  }
  expect(state.attempts).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
  answerWith(async () => 900)
  pass(30)
  expect(await text()).toBe('token-8')
})

test('while the server fails, a token is used to its end', async () => {
  const { text, state, pass, answerWith } = holder()
  await text()
  answerWith(fails)
  pass(700)
  expect([await text(), await text(), state.exchanges]).toEqual(['token-1', 'token-1', 2])
})

test('a refused token is replaced once for all who hold it, but not if it was just issued', async () => {
  const { get, replace, pass, state } = holder()
  const first = await get()
  expect(await replace(first.text)).toBeUndefined()
  pass(10)
  const replaced = await Promise.all(Array.from({ length: 20 }, () => replace(first.text)))
  expect(new Set(replaced.map((token) => token?.text))).toEqual(new Set(['token-2']))
  expect((await replace(first.text))?.text).toBe('token-2')
  expect(state.exchanges).toBe(2)
})

test('a token that cannot be replaced leaves the refusal as it is', async () => {
  const { get, replace, pass, answerWith } = holder()
  const first = await get()
  pass(10)
  answerWith(fails)
  expect(await replace(first.text)).toBeUndefined()
})
