// An issuer whose keys cannot be fetched while none is held: when it is asked again, and what callers must wait (reference: Issuer keys).
import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { outboundFetch } from '../../../src/runtime/outbound.ts'
import { createIssuerServer, type IssuerServer, issuerRow } from '../../support/issuer-server.ts'
import { startFederation } from '../../support/latchkey.ts'
import { createKeyPair, type KeyPair } from '../../support/subject-token.ts'

const minute = 60_000
const day = 24 * 60 * minute
let one: KeyPair
beforeAll(async () => {
  one = await createKeyPair('ES256', 'one')
})

let server: IssuerServer
const issuer = issuerRow()
let answerDiscovery: IssuerServer['answers']['discovery']
beforeEach(() => {
  server = createIssuerServer([one])
  answerDiscovery = server.answers.discovery
})

const fail = () => Promise.reject(new Error('connection refused'))
const find = () => server.keys.find(issuer, { kid: 'one', algorithm: 'ES256' })
/** The seconds that a refused caller must wait; undefined for a key. */
async function retryAfter(): Promise<number | undefined> {
  const found = await find()
  return 'refused' in found ? found.retryAfterSeconds : undefined
}
/** How often the issuer was asked. */
const attempts = () => server.fetched.length

/** Moves the clock, a tenth of a second at a time, until the issuer is asked once more; gives the seconds that took. */
async function secondsToNextAttempt(): Promise<number> {
  const before = attempts()
  for (let waited = 0; ; waited += 100) {
    await find()
    if (attempts() > before) return waited / 1_000
    server.clock.now += 100
  }
}

describe('while no usable key is held', () => {
  beforeEach(async () => {
    server.answers.discovery = fail
    await find()
  })

  test('the issuer is asked again after 1, 2, 4, 8, 16 and then every 30 s', async () => {
    const waits: number[] = []
    for (let attempt = 0; attempt < 8; attempt++) waits.push(await secondsToNextAttempt())
    expect(waits).toEqual([1, 2, 4, 8, 16, 30, 30, 30])
  })

  test('callers receive the time until then, and a request at that time asks', async () => {
    const told: (number | undefined)[] = []
    for (let attempt = 0; attempt < 7; attempt++) {
      const before = attempts()
      const seconds = await retryAfter()
      told.push(seconds)
      server.clock.now += Number(seconds) * 1_000 - 1
      expect(await retryAfter()).toBe(1)
      expect(attempts()).toBe(before)
      server.clock.now += 1
      await find()
      expect(attempts()).toBe(before + 1)
    }
    expect(told).toEqual([1, 2, 4, 8, 16, 30, 30])
  })

  test('those who wait for one fetch count as one failure', async () => {
    server.clock.now += 1_000
    await Promise.all(Array.from({ length: 100 }, find))
    expect(await secondsToNextAttempt()).toBe(2)
    expect(server.logLines.filter((line) => line.includes('issuer_keys_fetch_failed'))).toHaveLength(3)
  })

  test('an issuer that is back is found at the next attempt, and its next outage begins with 1 s again', async () => {
    for (let attempt = 0; attempt < 6; attempt++) await secondsToNextAttempt()
    server.answers.discovery = answerDiscovery
    server.clock.now += 30_000
    expect(await retryAfter()).toBeUndefined()
    server.answers.discovery = fail
    server.clock.now += 10 * minute + day
    expect(await retryAfter()).toBe(1)
  })

  test('an attempt of an admin that fails puts the next one off, and one that succeeds ends the wait', async () => {
    await expect(server.keys.refresh(issuer)).rejects.toThrow('could not be fetched')
    expect(await retryAfter()).toBe(2)
    server.answers.discovery = answerDiscovery
    await server.keys.refresh(issuer)
    expect(await retryAfter()).toBeUndefined()
  })
})

test('the wait varies by a quarter, so that many do not ask at once, and is never longer than what callers receive', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), { minLength: 8, maxLength: 8 }),
      async (draws) => {
        const left = [...draws]
        server = createIssuerServer([one], { random: () => left.shift() ?? 0 })
        server.answers.discovery = fail
        await find()
        for (const step of [1, 2, 4, 8, 16, 30, 30]) {
          const told = Number(await retryAfter())
          const waited = await secondsToNextAttempt()
          expect(waited).toBeGreaterThanOrEqual(0.75 * step)
          expect(waited).toBeLessThanOrEqual(Math.min(step + 0.1, told + 0.1))
          expect(told - waited).toBeLessThanOrEqual(1)
        }
      },
    ),
    { numRuns: 20 },
  )
})

test('while a key is held that has aged, its issuer is asked every 30 s', async () => {
  await find()
  server.answers.discovery = fail
  server.clock.now += 10 * minute
  expect(await retryAfter()).toBeUndefined()
  expect(await secondsToNextAttempt()).toBe(30)
  expect(await secondsToNextAttempt()).toBe(30)
})

test('over the wire a service that is back is served after the second that Retry-After named', async () => {
  const clock = { now: Date.now() }
  let isDown = true
  const federation = await startFederation({
    dependencies: {
      now: () => clock.now,
      random: () => 0,
      fetch: (url, init) => (isDown ? fail() : outboundFetch(url, init)),
    },
  })
  const token = await federation.mint()
  const refused = await federation.exchange(token)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
  isDown = false
  clock.now += 999
  expect((await federation.exchange(token)).status).toBe(503)
  clock.now += 1
  expect((await federation.exchange(token)).status).toBe(200)
  await federation.stop()
})
