// Keys change while work goes on: a real identity provider rotates its keys and fails, Latchkey rotates its own and is killed, and no valid
// exchange is refused nor any access token left unverified. Provider, server and verifiers share one clock, which the test moves.
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'bun:test'
import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, type JWTVerifyGetKey, jwtVerify } from 'jose'
import { type Clock, startClock } from '../support/clock.ts'
import { type IdentityProvider, startIdentityProvider, type Workload } from '../support/identity-provider.ts'
import { type Installation, install, publicUrl, type Served } from '../support/installation.ts'
import { postExchange, type Row } from '../support/latchkey.ts'
import { keepBusy } from '../support/load.ts'
import { isServerKind } from '../support/server-kind.ts'
import { latchkeyAudience } from '../support/workload-federation.ts'

const clients = 32
const cooldownSeconds = 30
const freshSeconds = 600
const staleSeconds = 120
/** Exchanges take their time, which the monotonic clock counts. */
const spareSeconds = 10
const cacheSeconds = 300
const publicationSeconds = cacheSeconds + 10
const lifetimeSeconds = 900
const issued = '200 issued'
const refused = '400 invalid_grant'
const unavailable = '503 temporarily_unavailable'

let installation: Installation
let clock: Clock
let provider: IdentityProvider
let served: Served
let policyId: string
beforeAll(async () => {
  installation = await install()
  clock = startClock(installation.folder)
  provider = await startIdentityProvider()
  served = await installation.serve(clock.program)
  const { issuerUrl: issuer_url } = provider
  await served.ask('keys.create', { name: 'target' })
  await served.ask('issuers.add', { name: 'provider', issuer_url, keys_stale_seconds: staleSeconds })
  const rules = { audience: latchkeyAudience, condition: 'subject in ["workload-rs256", "workload-es256"]' }
  policyId = (await served.ask('policies.create', { name: 'any', issuer: 'provider', key: 'target', ...rules })).id
})
// No fetch of the test before makes an unknown kid wait.
beforeEach(() => clock.moveSeconds(freshSeconds + staleSeconds))
afterAll(async () => {
  clock.release()
  await served.serving.stop('SIGKILL')
  await provider.stop()
  await installation.remove()
})

const kidOf = (token: string) => decodeProtectedHeader(token).kid ?? ''
const getToken = (workload: Workload = 'workload-rs256') => provider.getToken(workload, latchkeyAudience)
const exchange = (subjectToken: string) =>
  postExchange(served.baseUrl, { federation_policy_id: policyId, subject_token: subjectToken })

async function tell(response: Response): Promise<{ told: string; accessToken: string }> {
  const { error = 'issued', access_token = '' } = (await response.json()) as { error?: string; access_token?: string }
  return { told: `${response.status} ${error}`, accessToken: access_token }
}

/** What all clients receive that exchange one token at once: the same, if all is well. */
async function exchangeAtOnce(subjectToken: string): Promise<string> {
  const tellOne = async () => (await tell(await exchange(subjectToken))).told
  return [...new Set(await Promise.all(Array.from({ length: clients }, tellOne)))].join(', ')
}

const lastReason = async () => (await served.ask<{ data: Row[] }>('audit.list', { limit: 1 })).data[0]?.reason

test('rotations of the issuer and of our own key under load fail no exchange and no verifier', async () => {
  const jwksUrl = new URL(`${served.baseUrl}/oauth/jwks`)
  const asking = createRemoteJWKSet(jwksUrl)
  // Keeps the set for as long as it may, and asks for no kid sooner.
  const patient = createRemoteJWKSet(jwksUrl, { cacheMaxAge: cacheSeconds * 1_000, cooldownDuration: Infinity })
  let verifiers: JWTVerifyGetKey[] = [asking, patient]
  const accessTokens: string[] = []
  const issuerKids = new Set<string>()

  // One token after the other, so that a verifier fetches for one alone.
  let verified: Promise<unknown> = Promise.resolve()
  const verify = (token: string) => {
    const checks = { issuer: publicUrl, audience: publicUrl, algorithms: ['ES256'], typ: 'at+jwt' }
    verified = verified.then(() => Promise.all(verifiers.map((keys) => jwtVerify(token, keys, checks))))
    return verified
  }
  const busy = keepBusy(clients, async (client) => {
    const subjectToken = await getToken(client % 2 === 0 ? 'workload-rs256' : 'workload-es256')
    let answered = await tell(await exchange(subjectToken))
    // On a server database, a commit that runs while the clock jumps counts as late.
    if (isServerKind && answered.told === unavailable) answered = await tell(await exchange(subjectToken))
    const { told, accessToken } = answered
    expect(told).toBe(issued)
    issuerKids.add(kidOf(subjectToken))
    accessTokens.push(accessToken)
    await verify(accessToken)
  })
  onTestFinished(busy.stop)
  /** Answers which of our keys have signed meanwhile. Whatever was issued before and has not expired verifies still. */
  const turn = async () => {
    const before = accessTokens.length
    await busy.turn()
    await Promise.all(accessTokens.filter((token) => Number(decodeJwt(token).exp) * 1_000 > Date.now()).map(verify))
    return [...new Set(accessTokens.slice(before).map(kidOf))]
  }
  /** Both rotate at the same moment. */
  const rotate = async (how: { at_once?: true } = {}) => {
    const [{ id }] = await Promise.all([served.ask('signing_keys.rotate', how), provider.rotateKeys({ keepOld: true })])
    return id
  }

  const signed = await turn()
  for (let round = 0; round < 3; round++) {
    const next = await rotate()
    expect(await turn()).toEqual(signed.slice(-1))
    clock.moveSeconds(publicationSeconds - 1)
    expect(await turn()).toEqual(signed.slice(-1))
    clock.moveSeconds(1)
    expect(await turn()).toContain(next)
    provider.withdrawKeys()
    signed.push(next)
  }

  await provider.announceKeys()
  clock.moveSeconds(freshSeconds)
  await turn()
  await provider.rotateKeys({ keepOld: true })
  await turn()

  for (let round = 0; round < 2; round++) {
    // Who keeps the set for five minutes cannot know a key that signs at once; who asks for its kid does.
    verifiers = [asking]
    await asking.reload()
    // A key that waits meanwhile never signs.
    await served.ask('signing_keys.rotate')
    clock.moveSeconds(cooldownSeconds)
    const next = await rotate({ at_once: true })
    expect(await turn()).toContain(next)
    expect(await turn()).toEqual([next])
    clock.moveSeconds(publicationSeconds)
    verifiers = [asking, patient]
    await turn()
    signed.push(next)
  }
  // The last second of what the key before has signed.
  clock.moveSeconds(lifetimeSeconds - publicationSeconds - 1)
  await turn()
  await busy.stop()
  expect([...new Set(accessTokens.map(kidOf))]).toEqual(signed)
  // Two algorithms, and six rotations.
  expect(issuerKids.size).toBe(2 * (1 + 6))
  expect(accessTokens.length).toBeGreaterThan(500)
}, 60_000)

test('a second rotation within the cool-down is followed after it, or at once when its keys were published before', async () => {
  expect(await exchangeAtOnce(await getToken())).toBe(issued)
  await provider.rotateKeys({ keepOld: true })
  const first = await getToken()
  expect(await exchangeAtOnce(first)).toBe(issued)

  // New keys take a busy machine more than a second, which the monotonic clock counts.
  clock.moveSeconds(cooldownSeconds - spareSeconds)
  await provider.rotateKeys({ keepOld: true })
  await provider.announceKeys()
  const second = await getToken()
  expect(await exchangeAtOnce(second)).toBe(refused)
  expect(await lastReason()).toBe('kid_unknown')
  expect(await exchangeAtOnce(first)).toBe(issued)
  clock.moveSeconds(spareSeconds)
  expect(await exchangeAtOnce(second)).toBe(issued)

  await provider.rotateKeys({ keepOld: true })
  for (const token of [await getToken(), second, first]) expect(await exchangeAtOnce(token)).toBe(issued)
})

test('a server killed while the issuer is out goes on with the last good keys, then says when to come again', async () => {
  const old = await getToken()
  expect(await exchangeAtOnce(old)).toBe(issued)
  await provider.rotateKeys({ keepOld: true })
  const newer = await getToken()
  const killAndRestart = async () => {
    await served.serving.stop('SIGKILL')
    served = await installation.serve(clock.program)
  }

  provider.setOut(true)
  // The kept keys are fresh initially and stale then; after a restart there are only those of the database.
  for (const seconds of [0, freshSeconds + staleSeconds - spareSeconds]) {
    await killAndRestart()
    clock.moveSeconds(seconds)
    expect(await exchangeAtOnce(old)).toBe(issued)
    expect(await exchangeAtOnce(newer)).toBe(refused)
    expect(await lastReason()).toBe('kid_unknown')
  }
  clock.moveSeconds(spareSeconds)
  for (const token of [old, newer]) expect(await exchangeAtOnce(token)).toBe(unavailable)
  const retryAfterSeconds = Number((await exchange(newer)).headers.get('retry-after'))
  expect(retryAfterSeconds).toBeGreaterThan(0)
  expect(await lastReason()).toBe('issuer_keys_unavailable')

  provider.setOut(false)
  clock.moveSeconds(retryAfterSeconds)
  for (const token of [newer, old]) expect(await exchangeAtOnce(token)).toBe(issued)
  provider.setOut(true)
  await killAndRestart()
  for (const token of [newer, old]) expect(await exchangeAtOnce(token)).toBe(issued)
}, 60_000)
