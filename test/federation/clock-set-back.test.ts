// The clock of the machine is set, back above all: what was remembered under the wrong time neither lasts nor passes sooner than it should.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { listSigningKeys } from '../../db/tables/signing-keys.ts'
import { createReplayGuard, hashTokenId, type ReplayGuardOptions } from '../../src/federation/replay.ts'
import { createRateLimiter } from '../../src/http/rate-limit.ts'
import { createKeyRates } from '../../src/keys/key-rates.ts'
import { rotateOnSchedule } from '../../src/server/rotation.ts'
import { readMasterKey } from '../../src/tokens/master-key.ts'
import { openSigningKeys, publicationMilliseconds } from '../../src/tokens/signing-keys.ts'
import { createIssuerServer, type IssuerServer, issuerRow, keySetReply } from '../support/issuer-server.ts'
import { startTestServer } from '../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'
import { createKeyPair, type KeyPair } from '../support/subject-token.ts'
import { until } from '../support/until.ts'

const second = 1_000
const minute = 60 * second
const day = 24 * 60 * minute
const month = 30 * day

test('the signing key is rotated on schedule after the clock was a year ahead, and without a gap', async () => {
  const clock = { now: Date.now() }
  const { server, stop } = await startTestServer({ dependencies: { now: () => clock.now } })
  const { context, runOperation } = server
  const rotateWhenDue = async () => (await rotateOnSchedule(context, runOperation))()
  const kid = () => context.signingKeys.current(clock.now).kid
  const first = kid()
  clock.now += 400 * day
  await rotateWhenDue()
  expect(await listSigningKeys(context.orm)).toHaveLength(2)
  clock.now -= 400 * day - second
  expect(kid()).toBe(first)
  clock.now += 91 * day
  await rotateWhenDue()
  const rows = await listSigningKeys(context.orm)
  expect(rows).toHaveLength(3)
  expect(kid()).toBe(first)
  clock.now += publicationMilliseconds
  expect(kid()).toBe(rows[1]?.id ?? '')
  expect(JSON.parse(context.signingKeys.jwks(clock.now)).keys.map(({ kid }: { kid: string }) => kid)).toContain(first)
  await rotateWhenDue()
  expect(await listSigningKeys(context.orm)).toHaveLength(3)
  await stop()
})

describe('of an issuer', () => {
  let one: KeyPair
  let two: KeyPair
  let server: IssuerServer
  let issuer = issuerRow()
  beforeAll(async () => {
    ;[one, two] = await Promise.all([createKeyPair('ES256', 'one'), createKeyPair('ES256', 'two')])
  })
  beforeEach(() => {
    server = createIssuerServer([one])
    issuer = issuerRow()
  })
  const find = async (kid = 'one', of = issuer) => {
    const found = await server.keys.find(of, { kid, algorithm: 'ES256' })
    return 'refused' in found ? found.refused : found.kid
  }
  const fail = () => Promise.reject(new Error('connection refused'))

  test('keys that were fetched while it was ahead are renewed when their time is over', async () => {
    server.clock.ahead = month
    await find()
    server.clock.ahead = 0
    server.clock.now += 10 * minute
    server.answers.keys = () => keySetReply([two])
    expect(await find('one')).toBe('kid_unknown')
    expect(await find('two')).toBe('two')
  })

  test('keys that are fresh stay so while it is ahead', async () => {
    await find()
    server.clock.ahead = month
    server.answers.discovery = fail
    expect(await find()).toBe('one')
    expect(server.fetchesOf('keys')).toBe(1)
  })

  test('keys that were fetched while it was ahead are asked for at once after a restart', async () => {
    server.clock.ahead = month
    await find()
    const restarted = issuerRow({ lastKeySet: server.kept[0] ?? null })
    server = createIssuerServer([two])
    expect(await find('one', restarted)).toBe('kid_unknown')
    expect(await find('two', restarted)).toBe('two')
    expect(server.fetchesOf('keys')).toBe(1)
  })

  test('such keys serve after a restart while the issuer is down, for as long as stale keys do', async () => {
    server.clock.ahead = month
    await find()
    const restarted = issuerRow({ lastKeySet: server.kept[0] ?? null })
    server = createIssuerServer([])
    server.answers.discovery = fail
    expect(await find('one', restarted)).toBe('one')
    server.clock.now += day - 1
    expect(await find('one', restarted)).toBe('one')
    server.clock.now += 1
    expect(await find('one', restarted)).toBe('issuer_keys_unavailable')
  })

  test('a fetch that failed while it was ahead is tried again as soon as any other', async () => {
    server.clock.ahead = month
    const { discovery } = server.answers
    server.answers.discovery = fail
    expect(await find()).toBe('issuer_keys_unavailable')
    server.clock.ahead = 0
    server.answers.discovery = discovery
    server.clock.now += 30 * second
    expect(await find()).toBe('one')
  })

  test('a kid that was unknown while it was ahead is asked for as soon as any other', async () => {
    server.clock.ahead = month
    await find()
    expect(await find('two')).toBe('kid_unknown')
    server.clock.ahead = 0
    server.clock.now += 30 * second
    server.answers.keys = () => keySetReply([one, two])
    expect(await find('two')).toBe('two')
  })
})

describe('of replay protection', () => {
  const clock = { now: 0, ahead: 0 }
  const none: ReplayGuardOptions = {
    known: [],
    keep: async () => true,
    drop: async () => {},
    now: 0,
    monotonic: () => clock.now,
  }
  const reasonOf = (outcome: object) => ('refused' in outcome ? outcome.refused : undefined)
  beforeEach(() => {
    clock.now = 1_800_000_000_000
    clock.ahead = 0
  })

  test('a use is remembered until the token expires, though it was ahead meanwhile and everything expired was forgotten', async () => {
    const dropped: string[] = []
    const drop: ReplayGuardOptions['drop'] = async (tokens) =>
      void dropped.push(...tokens.map(({ tokenIdSha256 }) => tokenIdSha256))
    const guard = createReplayGuard({ ...none, drop })
    const expiresAt = clock.now + 10 * minute
    const use = (id: string, until = expiresAt) =>
      reasonOf(guard.use({ issuerId: 'i', id, expiresAt: until }, clock.now + clock.ahead))
    expect(use('captured')).toBeUndefined()
    clock.ahead = month
    for (let index = 0; index < 5_000; index++) use(`t${index}`, clock.now + clock.ahead + second)
    clock.now += minute
    let more = 0
    await until('a sweep', () => {
      use(`u${more++}`, clock.now + clock.ahead + second)
      return dropped.length >= 5_000
    })
    expect(dropped).not.toContain(hashTokenId('captured') ?? '')
    clock.ahead = 0
    expect(use('captured')).toBe('replayed')
  })

  test('a use from before a restart is remembered the same', () => {
    const expiresAt = clock.now + 10 * minute
    const known: ReplayGuardOptions['known'] = []
    const keep: ReplayGuardOptions['keep'] = async (row) => known.push(row) > 0
    createReplayGuard({ ...none, keep }).use({ issuerId: 'i', id: 'captured', expiresAt }, clock.now)
    const guard = createReplayGuard({ ...none, known, now: clock.now })
    for (let index = 0; index < 5_000; index++)
      guard.use({ issuerId: 'i', id: `t${index}`, expiresAt: clock.now + month + second }, clock.now + month)
    expect(reasonOf(guard.use({ issuerId: 'i', id: 'captured', expiresAt }, clock.now))).toBe('replayed')
  })
})

describe('of rates', () => {
  const now = 1_800_000_000_000
  const key = { id: 'key', requestsPerMinute: 2, tokensPerMinute: null, createdAt: now }

  test('a client that was heard while it was ahead waits no longer than any other', () => {
    const limiter = createRateLimiter(() => ({ perMinute: 60, burst: 1 }))
    limiter.take('192.0.2.1', now + month)
    expect(limiter.take('192.0.2.1', now)).toBe(1)
    expect(limiter.take('192.0.2.1', now + second)).toBe(0)
  })

  test('a key that was used while it was ahead waits no longer than any other', () => {
    const rates = createKeyRates()
    for (const _ of [1, 2]) rates.take(key, now + month)
    expect(rates.take(key, now)).toBe(30)
    expect(rates.take(key, now + 30 * second)).toBe(0)
  })
})

describe('of a server', () => {
  let latchkey: PastedIssuer
  beforeAll(async () => {
    latchkey = await startWithPastedIssuer()
  })
  afterAll(() => latchkey.stop())
  /** Runs something while the clock is ahead by so much. */
  const ahead = async <Result>(milliseconds: number, run: () => Promise<Result>): Promise<Result> => {
    latchkey.clock.now += milliseconds
    const result = await run()
    latchkey.clock.now -= milliseconds
    return result
  }
  const accessToken = async () => {
    const response = await latchkey.exchange(await latchkey.sign())
    expect(response.status).toBe(200)
    return ((await response.json()) as { access_token: string }).access_token
  }
  const statusWith = async (token: string) =>
    (await fetch(`${latchkey.server.baseUrl}/key`, { headers: { authorization: `Bearer ${token}` } })).status

  test('an access token that was issued while it was ahead is refused, used before or not', async () => {
    const [used, unused] = await ahead(month, async () => {
      const tokens = [await accessToken(), await accessToken()] as const
      expect(await statusWith(tokens[0])).toBe(200)
      return tokens
    })
    for (const token of [used, unused, used]) expect(await statusWith(token)).toBe(401)
    expect(await statusWith(await accessToken())).toBe(200)
  })

  test('an access token that was issued while it was ahead by a little stays valid', async () => {
    const token = await ahead(10 * second, accessToken)
    expect(await statusWith(token)).toBe(200)
  })

  test('every exchange is found by its request id, whatever the time was', async () => {
    const exchangeTwenty = () =>
      Promise.all(
        Array.from({ length: 20 }, async () =>
          (await latchkey.exchange(await latchkey.sign())).headers.get('x-request-id'),
        ),
      )
    const ids = [...(await exchangeTwenty()), ...(await ahead(month, exchangeTwenty)), ...(await exchangeTwenty())]
    for (const request_id of ids)
      expect(await latchkey.admin('audit.show', { request_id })).toMatchObject({ request_id })
  })

  const kids = async () => {
    const published = (await (await fetch(`${latchkey.server.baseUrl}/oauth/jwks`)).json()) as {
      keys: { kid: string }[]
    }
    return published.keys.map(({ kid }) => kid)
  }

  for (const [name, milliseconds] of [
    ['while it was ahead', month],
    ['before it was set back', 0],
  ] as const)
    test(`a signing key that was revoked ${name} stays revoked, with its tokens, over rotations and restarts`, async () => {
      const { server, config, admin, clock } = latchkey
      const [revoked] = (await kids()) as [string]
      const token = await accessToken()
      await ahead(milliseconds, () => admin('signing_keys.rotate', { revoke: true }))
      clock.now -= 5 * minute
      expect(await kids()).not.toContain(revoked)
      expect(await statusWith(token)).toBe(401)
      await admin('signing_keys.rotate', { at_once: true })
      expect(await kids()).not.toContain(revoked)
      const masterKey = await readMasterKey(config.masterKey, { create: false })
      const restarted = await openSigningKeys(await listSigningKeys(server.context.orm), masterKey)
      expect(restarted.byKid(revoked, clock.now)).toBeUndefined()
      clock.now += 5 * minute
    })
})
