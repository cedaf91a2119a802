// Where the keys of an issuer come from and how long they count (reference: Issuer keys), with the clock and the network in the test's hand.
import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Issuer } from '../../../src/federation/issuer/issuer.ts'
import type { Refusal } from '../../../src/federation/subject-token/refusal.ts'
import { json } from '../../../src/http/reply.ts'
import {
  createIssuerServer,
  type IssuerServer,
  issuerRow,
  issuerUrl,
  keySetReply,
} from '../../support/issuer-server.ts'
import { createKeyPair, type KeyPair } from '../../support/subject-token.ts'

const minute = 60_000
const day = 24 * 60 * minute
let one: KeyPair
let two: KeyPair
let rsa: KeyPair
beforeAll(async () => {
  ;[one, two, rsa] = await Promise.all([
    createKeyPair('ES256', 'one'),
    createKeyPair('ES256', 'two'),
    createKeyPair('RS256', 'rsa'),
  ])
})

let server: IssuerServer
let issuer: Issuer
beforeEach(() => {
  server = createIssuerServer([one])
  issuer = issuerRow()
})

/** The kid of the key that was found, or the reason why no key was found. */
async function find(kid: string | undefined = 'one', algorithm: 'ES256' | 'RS256' = 'ES256', of = issuer) {
  const found = await server.keys.find(of, { kid, algorithm })
  return 'refused' in found ? (found as Refusal).refused : found.kid
}
const fail = () => Promise.reject(new Error('connection refused'))
const turnOff = () => {
  server.answers.discovery = fail
  server.answers.keys = fail
}

describe('an issuer that hangs', () => {
  test('holds nobody up who has a key that is kept, and its late answer counts for the next', async () => {
    expect(await find()).toBe('one')
    const answered = Promise.withResolvers<void>()
    server.clock.now += 11 * minute
    const { keys } = server.answers
    server.answers.keys = async () => {
      await answered.promise
      return keySetReply([one, two])
    }
    expect(await find()).toBe('one')
    const waiting = find('two')
    answered.resolve()
    expect(await waiting).toBe('two')
    server.answers.keys = keys
  })

  test('is waited for when what is kept no longer counts, for longer than the patience with one that does', async () => {
    expect(await find()).toBe('one')
    server.clock.now += 2 * day
    const patient = issuerRow({ id: 'patient' })
    expect(await find('one', 'ES256', patient)).toBe('one')
    server.clock.now += 11 * minute
    const answered = Promise.withResolvers<Response>()
    server.answers.keys = () => answered.promise
    const waiting = find()
    // This one is given up, which takes the patience; the other began before it.
    expect(await find('one', 'ES256', patient)).toBe('one')
    answered.resolve(keySetReply([one]))
    expect(await waiting).toBe('one')
  })
})

describe('the cache', () => {
  test('asks discovery and then the address it names, once', async () => {
    expect(await find()).toBe('one')
    expect(await find()).toBe('one')
    expect(server.fetched).toEqual([`${issuerUrl}/.well-known/openid-configuration`, `${issuerUrl}/keys`])
  })

  test('asks only the JWKS URL when there is one', async () => {
    const jwksUrl = `${issuerUrl}/keys`
    expect(await find('one', 'ES256', issuerRow({ keySource: 'jwks_url', jwksUrl }))).toBe('one')
    expect(server.fetched).toEqual([jwksUrl])
  })

  test('asks discovery under an issuer URL that ends in a slash', async () => {
    server.answers.discovery = () => json(200, { issuer: `${issuerUrl}/`, jwks_uri: `${issuerUrl}/keys` })
    expect(await find('one', 'ES256', issuerRow({ issuerUrl: `${issuerUrl}/` }))).toBe('one')
  })

  const lives: [cacheControl: string | undefined, seconds: number][] = [
    [undefined, 600],
    ['max-age=300', 300],
    ['public, max-age=3600, must-revalidate', 3_600],
    ['Max-Age="120"', 120],
    ['max-age=0', 60],
    ['max-age=59', 60],
    ['max-age=86400', 86_400],
    ['max-age=86401', 86_400],
    ['max-age=99999999999999999999', 86_400],
    ['s-maxage=5', 600],
    ['max-age=soon', 600],
    ['no-store', 600],
  ]
  for (const [cacheControl, seconds] of lives) {
    test(`is fresh for ${seconds} s with Cache-Control ${cacheControl ?? 'absent'}`, async () => {
      server.answers.keys = () => keySetReply([one], cacheControl)
      await find()
      server.clock.now += seconds * 1_000 - 1
      await find()
      expect(server.fetchesOf('keys')).toBe(1)
      server.clock.now += 1
      await find()
      expect(server.fetchesOf('keys')).toBe(2)
      expect(server.kept.map((keySet) => (keySet.freshUntil - keySet.fetchedAt) / 1_000)).toEqual([seconds, seconds])
    })
  }

  test('makes one fetch for a hundred concurrent misses', async () => {
    const held = Promise.withResolvers<void>()
    server.answers.keys = async () => {
      await held.promise
      return keySetReply([one])
    }
    const found = Array.from({ length: 100 }, () => find())
    held.resolve()
    expect(new Set(await Promise.all(found))).toEqual(new Set(['one']))
    expect(server.fetched).toHaveLength(2)
  })

  test('keeps the usable public keys of the set for the database, with their source', async () => {
    const { use: _use, ...kept } = one.publicJwk
    const secret = { kty: 'oct', k: 'c2VjcmV0' }
    server.answers.keys = () => json(200, { keys: [{ ...one.publicJwk, d: 'private' }, secret, null] })
    await find()
    expect(server.kept.map((set) => ({ ...set, jwks: JSON.parse(set.jwks) as unknown }))).toEqual([
      {
        issuerId: 'issuer',
        source: `discovery of ${issuerUrl}`,
        jwks: { keys: [kept] },
        fetchedAt: server.clock.now,
        freshUntil: server.clock.now + 10 * minute,
      },
    ])
  })

  test('is renewed once the new set is kept for the database, and not before', async () => {
    const asked = Promise.withResolvers<void>()
    const kept = Promise.withResolvers<void>()
    const waiting = createIssuerServer([one], {
      keep: () => {
        asked.resolve()
        return kept.promise
      },
    })
    let isDone = false
    const refreshed = waiting.keys.refresh(issuer).then((keySet) => {
      isDone = true
      return keySet
    })
    await asked.promise
    // What does not wait is done some turns later.
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(isDone).toBe(false)
    kept.resolve()
    expect(await refreshed).toMatchObject({ issuerId: 'issuer' })
  })

  test('is dropped by an edit of the issuer, even to the same values', async () => {
    await find()
    server.answers.keys = () => keySetReply([two])
    expect(await find('one', 'ES256', issuerRow())).toBe('kid_unknown')
    expect(await find('two', 'ES256', issuerRow())).toBe('two')
  })
})

describe('the key', () => {
  test('has to fit the algorithm as well as the kid', async () => {
    server.answers.keys = () => keySetReply([one, rsa])
    expect(await find('rsa', 'RS256')).toBe('rsa')
    expect(await find('rsa', 'ES256')).toBe('kid_unknown')
  })

  test('may go without a kid where only one fits', async () => {
    server.answers.keys = () => keySetReply([one, rsa])
    const found = await server.keys.find(issuer, { kid: undefined, algorithm: 'RS256' })
    expect(found).toHaveProperty('kid', 'rsa')
    server.answers.keys = () => keySetReply([one, two])
    const ambiguous = await server.keys.find(issuerRow(), { kid: undefined, algorithm: 'ES256' })
    expect(ambiguous).toHaveProperty('refused', 'kid_ambiguous')
  })
})

describe('while the issuer is down', () => {
  test('the last good set counts until 24 h past its freshness and no longer', async () => {
    await find()
    turnOff()
    server.clock.now += 10 * minute + day - 1
    expect(await find()).toBe('one')
    server.clock.now += 1
    expect(await find()).toBe('issuer_keys_unavailable')
    expect(server.logLines.join()).toContain('issuer_keys_fetch_failed')
  })

  test('the set of the database counts the same after a restart', async () => {
    await find()
    const [lastKeySet] = server.kept
    server = createIssuerServer([])
    turnOff()
    const restarted = issuerRow({ lastKeySet })
    server.clock.now += 10 * minute + day - 1
    expect(await find('one', 'ES256', restarted)).toBe('one')
    server.clock.now += 1
    expect(await find('one', 'ES256', restarted)).toBe('issuer_keys_unavailable')
  })

  test('a set of the database from another source does not count', async () => {
    await find()
    const lastKeySet = { ...server.kept[0], source: 'https://elsewhere.example/keys' } as Issuer['lastKeySet']
    turnOff()
    expect(await find('one', 'ES256', issuerRow({ lastKeySet }))).toBe('issuer_keys_unavailable')
  })

  test('a damaged set of the database counts as none', async () => {
    await find()
    const lastKeySet = { ...server.kept[0], jwks: '{"keys":' } as Issuer['lastKeySet']
    turnOff()
    expect(await find('one', 'ES256', issuerRow({ lastKeySet }))).toBe('issuer_keys_unavailable')
  })

  test('it is asked once in 30 s, not once for every exchange', async () => {
    turnOff()
    for (let at = 0; at < 5; at++) expect(await find()).toBe('issuer_keys_unavailable')
    expect(server.fetched).toHaveLength(1)
    server.clock.now += 30_000
    server.answers.discovery = () => json(200, { issuer: issuerUrl, jwks_uri: `${issuerUrl}/keys` })
    server.answers.keys = () => keySetReply([one])
    expect(await find()).toBe('one')
  })
})

describe('an answer of the issuer is not trusted when', () => {
  const withIssuer = (named: unknown) => () => json(200, { issuer: named, jwks_uri: `${issuerUrl}/keys` })
  const redirect = () => new Response(null, { status: 302, headers: { location: 'https://evil.example/keys' } })
  const bad: [name: string, kind: 'discovery' | 'keys', answer: () => Response][] = [
    ['discovery names another issuer', 'discovery', withIssuer('https://evil.example')],
    ['discovery names the issuer with a slash more', 'discovery', withIssuer(`${issuerUrl}/`)],
    ['discovery names the issuer in another case', 'discovery', withIssuer('https://IDP.example.com')],
    ['discovery names the beginning of the issuer', 'discovery', withIssuer(issuerUrl.slice(0, -4))],
    ['discovery names the issuer and more', 'discovery', withIssuer(`${issuerUrl}.evil.example`)],
    ['discovery names no issuer', 'discovery', withIssuer(undefined)],
    ['discovery has no jwks_uri', 'discovery', () => json(200, { issuer: issuerUrl })],
    [
      'discovery points to http',
      'discovery',
      () => json(200, { issuer: issuerUrl, jwks_uri: 'http://idp.example.com/k' }),
    ],
    ['discovery points to a file', 'discovery', () => json(200, { issuer: issuerUrl, jwks_uri: 'file:///etc/passwd' })],
    ['discovery redirects', 'discovery', redirect],
    ['the keys redirect', 'keys', redirect],
    ['the keys are missing', 'keys', () => new Response('', { status: 404 })],
    ['the keys are no JSON', 'keys', () => new Response('<html>')],
    ['the keys are of no use', 'keys', () => json(200, { keys: [] })],
  ]
  for (const [name, kind, answer] of bad) {
    test(`${name}; the set before stays`, async () => {
      server.answers[kind] = answer
      expect(await find()).toBe('issuer_keys_unavailable')
      expect(server.kept).toEqual([])
      await expect(server.keys.refresh(issuer)).rejects.toMatchObject({ name: 'Fault' })

      server = createIssuerServer([one])
      expect(await find()).toBe('one')
      server.answers[kind] = answer
      server.clock.now += 10 * minute
      expect(await find()).toBe('one')
      expect(server.fetched.every((url) => url.startsWith(`${issuerUrl}/`))).toBe(true)
    })
  }
})

describe('a pasted set', () => {
  const pasted = () => issuerRow({ keySource: 'jwks', jwks: JSON.stringify({ keys: [one.publicJwk] }) })

  test('never grows stale and is never fetched', async () => {
    const row = pasted()
    expect(await find('one', 'ES256', row)).toBe('one')
    server.clock.now += 1_000 * day
    expect(await find('one', 'ES256', row)).toBe('one')
    expect(await find('two', 'ES256', row)).toBe('kid_unknown')
    expect(server.fetched).toEqual([])
  })

  test('cannot be refreshed', () => {
    expect(() => server.keys.refresh(pasted())).toThrow('pasted')
  })
})
