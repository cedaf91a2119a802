// When a token's `kid` makes us ask its issuer for new keys (reference: Issuer keys), with the clock and the network in the test's hand.
import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Issuer } from '../../../src/federation/issuer/issuer.ts'
import { createIssuerServer, type IssuerServer, issuerRow, keySetReply } from '../../support/issuer-server.ts'
import { createKeyPair, type KeyPair } from '../../support/subject-token.ts'

const minute = 60_000
let one: KeyPair
let two: KeyPair
beforeAll(async () => {
  ;[one, two] = await Promise.all([createKeyPair('ES256', 'one'), createKeyPair('ES256', 'two')])
})

let server: IssuerServer
let issuer: Issuer
beforeEach(() => {
  server = createIssuerServer([one])
  issuer = issuerRow()
})

/** The kid of the key that was found, or the reason why no key was found. */
async function find(kid = 'one') {
  const found = await server.keys.find(issuer, { kid, algorithm: 'ES256' })
  return 'refused' in found ? found.refused : found.kid
}

/** The next answer with keys is decided now and waits; those asked for after it are what the test sets them to. */
function holdKeys(reply: Response) {
  const asked = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  server.answers.keys = async () => {
    asked.resolve()
    await held.promise
    return reply
  }
  return { asked: asked.promise, answer: held.resolve }
}
describe('an unknown kid', () => {
  test('refreshes at once, and then not again for 30 s', async () => {
    await find()
    server.answers.keys = () => keySetReply([one, two])
    expect(await find('two')).toBe('two')
    expect(server.fetchesOf('keys')).toBe(2)
    server.clock.now += 29_999
    for (const kid of ['three', 'four']) expect(await find(kid)).toBe('kid_unknown')
    expect(server.fetchesOf('keys')).toBe(2)
    server.clock.now += 1
    expect(await find('five')).toBe('kid_unknown')
    expect(server.fetchesOf('keys')).toBe(3)
  })

  test('of which ten thousand come, in an hour of them, causes at most one fetch in 30 s', async () => {
    await find()
    const before = server.fetchesOf('keys')
    const hour = 60 * 60_000
    const startedAt = server.clock.now
    for (let index = 0; index < 10_000; index++) {
      server.clock.now = startedAt + Math.floor((index * hour) / 10_000)
      expect(await find(`kid-${index}`)).toBe('kid_unknown')
    }
    // In addition to those for unknown kids there are those of a set that has aged, one in ten minutes.
    expect(server.fetchesOf('keys') - before).toBeLessThanOrEqual(hour / 30_000 + 6)
  })

  test('does not fetch twice for the first token of all', async () => {
    expect(await find('two')).toBe('kid_unknown')
    expect(server.fetchesOf('keys')).toBe(1)
  })

  test('shares one fetch with all others of the moment', async () => {
    await find()
    const found = await Promise.all(Array.from({ length: 50 }, (_, at) => find(`unknown-${at}`)))
    expect(new Set(found)).toEqual(new Set(['kid_unknown']))
    expect(server.fetchesOf('keys')).toBe(2)
  })

  test('that meets a fetch begun before its token came is asked for again, in one fetch for all that wait', async () => {
    await find()
    server.clock.now += 10 * minute
    const { asked, answer } = holdKeys(keySetReply([one]))
    const ordinary = find()
    await asked
    server.answers.keys = () => keySetReply([one, two])
    const joined = Array.from({ length: 50 }, (_, at) => find(at % 2 === 0 ? 'two' : `junk-${at}`))
    answer()
    expect(await ordinary).toBe('one')
    expect(new Set(await Promise.all(joined))).toEqual(new Set(['two', 'kid_unknown']))
    expect(server.fetchesOf('keys')).toBe(3)
    expect(await find('three')).toBe('kid_unknown')
    expect(server.fetchesOf('keys')).toBe(3)
  })

  test('that meets a fetch for another one is found in it, or waits for the cool-down', async () => {
    await find()
    const { asked, answer } = holdKeys(keySetReply([one, two]))
    const first = find('junk')
    await asked
    const joined = ['two', 'three'].map((kid) => find(kid))
    answer()
    expect(await first).toBe('kid_unknown')
    expect(await Promise.all(joined)).toEqual(['two', 'kid_unknown'])
    expect(server.fetchesOf('keys')).toBe(2)
  })

  test('that waits for the set in the database is found in a fetch that ends meanwhile', async () => {
    const reading = Promise.withResolvers<void>()
    const reads = [Promise.resolve(), Promise.resolve(), reading.promise]
    server = createIssuerServer([one], { adopt: async () => reads.shift() })
    await find()
    server.answers.keys = () => keySetReply([one, two])
    const first = find('two')
    const second = find('two')
    expect(await first).toBe('two')
    reading.resolve()
    expect(await second).toBe('two')
    expect(server.fetchesOf('keys')).toBe(2)
  })

  test('costs no cool-down where nothing was fetched for it', async () => {
    await find()
    const { keys } = server.answers
    server.clock.now += 10 * minute
    server.answers.keys = () => Promise.reject(new Error('connection refused'))
    expect(await find()).toBe('one')
    server.clock.now += 29_000
    expect(await find('junk')).toBe('kid_unknown')
    server.answers.keys = keys
    server.clock.now += 1_000
    expect(await find()).toBe('one')
    server.answers.keys = () => keySetReply([one, two])
    expect(await find('two')).toBe('two')
  })

  test('leaves the good keys in force when the refresh fails', async () => {
    await find()
    server.clock.now += 30_000
    server.answers.keys = () => Promise.reject(new Error('connection refused'))
    expect(await find('two')).toBe('kid_unknown')
    expect(await find()).toBe('one')
  })

  test('drops a key that the issuer has withdrawn', async () => {
    await find()
    server.clock.now += 30_000
    server.answers.keys = () => keySetReply([two])
    expect(await find('two')).toBe('two')
    expect(await find('one')).toBe('kid_unknown')
  })
})
