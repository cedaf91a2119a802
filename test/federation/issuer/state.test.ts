// What is known of an issuer's keys without asking it: their age, how long they are usable, and failed fetches.
import { beforeAll, beforeEach, expect, test } from 'bun:test'
import { createIssuerServer, type IssuerServer, issuerRow } from '../../support/issuer-server.ts'
import { createKeyPair, type KeyPair } from '../../support/subject-token.ts'

const minute = 60_000
const day = 24 * 60 * minute
const issuer = issuerRow()
let one: KeyPair
let server: IssuerServer
beforeAll(async () => {
  one = await createKeyPair('ES256', 'one')
})
beforeEach(() => {
  server = createIssuerServer([one])
})

const find = (of = issuer) => server.keys.find(of, { kid: 'one', algorithm: 'ES256' })

test('an issuer that was never asked has no key set and no failures, and is not asked', () => {
  expect(server.keys.stateOf(issuer)).toEqual({ failures: 0, failuresTotal: 0, fetches: 0, keySet: undefined })
  expect(server.fetched).toEqual([])
})

test('fetched keys age with time, and are usable until a day past their freshness', async () => {
  await find()
  server.clock.now += 3 * minute
  const { keySet } = server.keys.stateOf(issuer)
  expect(keySet).toEqual({ ageMilliseconds: 3 * minute, usableMilliseconds: day + 7 * minute })
})

test('stored keys have the same age after a restart, before anything asks for them', async () => {
  await find()
  server.clock.now += 3 * minute
  const [lastKeySet = null] = server.kept
  const restarted = server.keys.stateOf(issuerRow({ lastKeySet }))
  expect(restarted).toEqual({ ...server.keys.stateOf(issuer), fetches: 0 })
})

test('pasted keys have no age', async () => {
  const pasted = issuerRow({ keySource: 'jwks', jwks: JSON.stringify({ keys: [one.publicJwk] }) })
  expect(await find(pasted)).toMatchObject({ kid: 'one' })
  expect(server.keys.stateOf(pasted).keySet).toBeUndefined()
})

test('failures count until a fetch succeeds, and in total for good', async () => {
  const { discovery } = server.answers
  server.answers.discovery = () => Promise.reject(new Error('connection refused'))
  const since = server.clock.now + server.clock.ahead
  await find()
  server.clock.now += minute
  await find()
  expect(server.keys.stateOf(issuer)).toMatchObject({ failures: 2, failuresTotal: 2, failing: { since } })
  server.answers.discovery = discovery
  server.clock.now += minute
  await find()
  expect(server.keys.stateOf(issuer)).toMatchObject({ failures: 0, failuresTotal: 2, failing: undefined })
})
