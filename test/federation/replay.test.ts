// Replay protection (reference: Replay protection): a token's issuer and jti pass once until its exp, over restarts and however many come at once.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createReplayGuard, type ReplayGuardOptions } from '../../src/federation/replay.ts'
import { auditOf } from '../support/exchange-outcome.ts'
import { install, trust } from '../support/installation.ts'
import { type Federation, mintAt, postExchange, startFederation } from '../support/latchkey.ts'

let time = 0
const none: ReplayGuardOptions = {
  known: [],
  keep: async () => true,
  drop: async () => {},
  now: 0,
  monotonic: () => time,
}
const reasonOf = (outcome: object) => ('refused' in outcome ? outcome.refused : undefined)

describe('a token', () => {
  const rows: [name: string, first: [string, unknown], second: [string, unknown], reason: string | undefined][] = [
    ['passes once', ['i', 'a'], ['i', 'a'], 'replayed'],
    ['of another issuer passes', ['i', 'a'], ['j', 'a'], undefined],
    ['with another jti passes', ['i', 'a'], ['i', 'b'], undefined],
    ['with the jti in another case passes', ['i', 'a'], ['i', 'A'], undefined],
    ['with a jti that goes on after a NUL passes', ['i', 'a'], ['i', 'a\0b'], undefined],
    ['without a jti is refused', ['i', 'a'], ['i', undefined], 'jti_missing'],
    ['with an empty jti is refused', ['i', 'a'], ['i', ''], 'jti_missing'],
    ['with a jti that is a number is refused', ['i', 'a'], ['i', 1], 'jti_missing'],
  ]
  for (const [name, [issuer, id], [otherIssuer, otherId], reason] of rows) {
    test(name, () => {
      const guard = createReplayGuard(none)
      expect(reasonOf(guard.use({ issuerId: issuer, id, expiresAt: 10 }, 0))).toBeUndefined()
      expect(reasonOf(guard.use({ issuerId: otherIssuer, id: otherId, expiresAt: 10 }, 9))).toBe(reason)
    })
  }

  test('that has expired is forgotten, in memory and in the database, before the notes grow without end', async () => {
    let kept = 0
    let most = 0
    const keep = async () => {
      kept += 1
      return true
    }
    const drop: ReplayGuardOptions['drop'] = async (tokens) => {
      most = Math.max(most, kept)
      kept -= tokens.length
    }
    const guard = createReplayGuard({ ...none, keep, drop })
    for (time = 0; time < 20_000; time++) {
      guard.use({ issuerId: 'i', id: `t${time}`, expiresAt: time + 10 }, time)
      if (time % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(most).toBeLessThan(4_000)
  })
})

describe('over the wire', () => {
  let federation: Federation
  beforeAll(async () => {
    federation = await startFederation()
    await federation.admin('policies.update', { policy: 'policy', replay_protection: true })
  })
  afterAll(() => federation.stop())

  test('of a hundred exchanges of one token at once exactly one passes', async () => {
    const token = await federation.mint({ jti: 'once' })
    const answers = await Promise.all(Array.from({ length: 100 }, () => federation.exchange(token)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    const refused = answers.find(({ status }) => status === 400)
    if (refused === undefined) throw new Error('None was refused')
    expect(await auditOf(federation, refused)).toMatchObject([{ reason: 'replayed', detail: 'once' }])
  })

  test('a token whose exp has a long fraction passes once like any other', async () => {
    const token = await federation.mint({ jti: 'fraction', exp: Date.now() / 1_000 + 300.123_456_7 })
    expect((await federation.exchange(token)).status).toBe(200)
    expect((await federation.exchange(token)).status).toBe(400)
  })

  test('a token without jti is refused, and passes again where the protection is off', async () => {
    const token = await federation.mint({ jti: null })
    const response = await federation.exchange(token)
    expect(response.status).toBe(400)
    expect(await auditOf(federation, response)).toMatchObject([{ reason: 'jti_missing' }])
    await federation.admin('policies.update', { policy: 'policy', replay_protection: false })
    for (const _ of [1, 2]) expect((await federation.exchange(token)).status).toBe(200)
    await federation.admin('policies.update', { policy: 'policy', replay_protection: true })
  })

  test('a token that was refused for another reason is not used up', async () => {
    const token = await federation.mint({ jti: 'later' })
    await federation.admin('policies.pause', { policy: 'policy' })
    expect((await federation.exchange(token)).status).toBe(400)
    await federation.admin('policies.resume', { policy: 'policy' })
    expect((await federation.exchange(token)).status).toBe(200)
  })
})

test('a note that is not kept while signing fails is one failed exchange, and no rejection that nobody handles', async () => {
  const federation = await startFederation()
  const { context } = federation.server
  await federation.admin('policies.update', { policy: 'policy', replay_protection: true })
  context.writer.appendUsedToken = async () => {
    throw new Error('no note')
  }
  context.signingKeys.current = () => {
    throw new Error('no key')
  }
  // The runner fails a test that leaves a rejection unhandled.
  expect((await federation.exchange(await federation.mint({ jti: 'unsigned' }))).status).toBe(500)
  await federation.stop()
})

test('a killed server remembers what it has answered', async () => {
  const installation = await install()
  let served = await installation.serve()
  const issuerUrl = await installation.startIssuer()
  const { policyId } = await trust(served, issuerUrl)
  await served.ask('policies.update', { policy: 'steady', replay_protection: true })
  const token = await mintAt(issuerUrl, { jti: 'survives' })
  const exchange = () => postExchange(served.baseUrl, { federation_policy_id: policyId, subject_token: token })
  expect((await exchange()).status).toBe(200)
  await served.serving.stop('SIGKILL')
  served = await installation.serve()
  expect((await exchange()).status).toBe(400)
  const { data } = await served.ask<{ data: object[] }>('audit.list', { limit: 1 })
  expect(data).toMatchObject([{ reason: 'replayed' }])
  await served.serving.stop()
  await installation.remove()
})
