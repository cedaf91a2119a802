// A back-test judges past exchanges by an edited policy. What it says must be what an exchange would have decided.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { OperationResponse } from '../../../src/admin/operations.ts'
import type { Row } from '../../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'

type Backtest = OperationResponse<'policies.backtest'>

let latchkey: PastedIssuer
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
})
afterAll(() => latchkey.stop())

const recordClaims = (record_claims: string) =>
  latchkey.admin('organizations.update', { organization: 'default', record_claims })
const backtest = (policy: string, fields: object = {}) =>
  latchkey.admin<Backtest>('policies.backtest', { policy, ...fields })
const exchange = async (claims: Record<string, unknown>, policy: Row) => {
  const response = await latchkey.exchange(await latchkey.sign(claims), { federation_policy_id: policy.id })
  await response.text()
  return { isAllowed: response.ok, requestId: response.headers.get('x-request-id') }
}

let issuers = 0
/** A policy with its own issuer, so that no test sees exchanges of another. */
async function createPolicy(fields: Record<string, unknown>): Promise<{ policy: Row; iss: string }> {
  issuers += 1
  const iss = `https://idp-${issuers}.example.com`
  const jwks = { keys: [latchkey.pairs.es.publicJwk] }
  await latchkey.admin('issuers.add', { name: iss, issuer_url: iss, jwks, shared: false })
  const common = { name: `of ${iss}`, issuer: iss, key: 'target', audience: 'llm' }
  return { policy: await latchkey.admin('policies.create', { ...common, ...fields }), iss }
}

const teams = ['a', 'b', 'c', undefined]
const regions = ['eu', 'us', 7, undefined]
const tokens = teams.flatMap((team, index) =>
  regions.map((region, place) => ({
    team,
    region,
    sub: (index + place) % 3 === 0 ? 'me' : 'you',
    aud: place === 3 ? ['llm', 'other'] : index === 3 ? 'other' : 'llm',
    ...(index === 2 ? { scopes: ['deploy'] } : {}),
    ...(place === 2 ? { jti: undefined } : {}),
    ...(index === 1 && place === 1 ? { exp: 1 } : {}),
  })),
)
const edits: Record<string, unknown>[] = [
  { condition: 'claims.team == "a"' },
  { condition: 'has(claims.team) && claims.team != "b" && claims.region in ["eu", 7]' },
  { condition: null, subject: 'me' },
  { audience: 'other' },
  { condition: null, subject: 'me', required_scope: 'deploy' },
  { replay_protection: true },
]
const original = { condition: 'claims.team in ["a", "b"] || claims.region == "us"' }

describe.each(['selected', 'all', 'hashed'])('with %s claims', (mode) => {
  test('the unchanged policy differs in none, and every edit decides as exchanges then do', async () => {
    await recordClaims(mode)
    const { policy, iss } = await createPolicy(original)
    const past = await Promise.all(tokens.map((claims) => exchange({ ...claims, iss }, policy)))
    const accepted = past.filter(({ isAllowed }) => isAllowed).length
    expect(accepted).toBeGreaterThan(0)
    const sums = { exchanges: tokens.length, not_judged: 0, accepted_before: accepted }
    expect(await backtest(policy.id)).toMatchObject({
      ...{ ...sums, accepted_after: accepted, gained: 0, lost: 0 },
      ...{ examples: {}, not_judged_because: [], is_limited: false },
    })
    const foreseen: Backtest[] = []
    for (const edit of edits) foreseen.push(await backtest(policy.id, edit))
    for (const [index, edit] of edits.entries()) {
      const { replay_protection = false, ...rest } = edit
      await latchkey.admin('policies.update', { policy: policy.id, ...rest, replay_protection })
      // Another id for each token, because the first exchange used up the old one.
      const now = await Promise.all(
        tokens.map((claims, place) =>
          exchange({ ...('jti' in claims ? {} : { jti: `${mode} ${index} ${place}` }), ...claims, iss }, policy),
        ),
      )
      const differs = (was: boolean) =>
        past.filter(({ isAllowed }, place) => isAllowed === was && now[place]?.isAllowed === !was).length
      expect({ edit, found: foreseen[index] }).toMatchObject({
        edit,
        found: {
          ...sums,
          accepted_after: now.filter(({ isAllowed }) => isAllowed).length,
          gained: differs(false),
          lost: differs(true),
        },
      })
      const back = { condition: null, subject: null, audience: 'llm', required_scope: null, replay_protection: false }
      await latchkey.admin('policies.update', { policy: policy.id, ...back, ...original })
    }
  })
})

describe('a back-test', () => {
  test('names the newest exchange of each kind, under whatever policy of the issuer it was made', async () => {
    await recordClaims('selected')
    const { policy, iss } = await createPolicy({ condition: 'claims.team == "a"' })
    const { issuer_id: issuer } = await latchkey.admin('policies.show', { policy: policy.id })
    const other = { name: 'another of it', issuer, key: 'target', audience: 'llm', condition: 'claims.team == "b"' }
    const another = await latchkey.admin('policies.create', other)
    const [old, lost, gained] = [
      await exchange({ team: 'a', iss }, policy),
      await exchange({ team: 'a', iss, sub: 'x', aud: 'llm' }, policy),
      await exchange({ team: 'b', iss, sub: 'y', aud: 'llm' }, another),
    ]
    expect(old.isAllowed).toBe(false)
    const found = await backtest(policy.id, { condition: 'claims.team == "b"' })
    expect(found).toMatchObject({ exchanges: 3, accepted_before: 1, accepted_after: 1, gained: 1, lost: 1 })
    expect(found.examples).toEqual({
      lost: {
        ...{ request_id: String(lost.requestId), subject: 'x', policy_name: String(policy.name) },
        ...{ at: expect.any(String), before: 'allow', after: 'condition_false' },
      },
      gained: {
        ...{ request_id: String(gained.requestId), subject: 'y', policy_name: 'another of it' },
        ...{ at: expect.any(String), before: 'condition_false', after: 'allow' },
      },
    })
  })

  test('says which exchanges it cannot judge, and why', async () => {
    await recordClaims('selected')
    const { policy, iss } = await createPolicy({ condition: 'claims.team == "a"' })
    const good = { team: 'a', region: 'eu', iss, sub: 's', aud: 'llm' }
    await exchange(good, policy)
    await exchange({ ...good, aud: 'wrong' }, policy)
    await recordClaims('off')
    await exchange(good, policy)
    await recordClaims('hashed')
    await exchange(good, policy)
    // Refused for its audience before its condition is asked.
    expect(await backtest(policy.id, { condition: 'claims.region == "eu"' })).toMatchObject({
      ...{ exchanges: 4, not_judged: 3, accepted_before: 0, accepted_after: 0, gained: 0, lost: 0 },
      not_judged_because: [
        { because: 'claim_not_recorded', claim: 'region', exchanges: 2 },
        { because: 'nothing_recorded', exchanges: 1 },
      ],
    })
    const hashed = await backtest(policy.id, { condition: 'claims.team.startsWith("a")' })
    expect(hashed).toMatchObject({ accepted_before: 1, accepted_after: 1, not_judged: 2 })
    expect(hashed.not_judged_because).toContainEqual({ because: 'hashed', exchanges: 1 })
    const whole = await backtest(policy.id, { condition: 'size(claims) > 3' })
    expect(whole.not_judged_because).toContainEqual({ because: 'claim_not_recorded', exchanges: 2 })
  })

  test('judges the newest exchanges up to a limit and since a time', async () => {
    await recordClaims('selected')
    const { policy, iss } = await createPolicy({ condition: 'claims.team == "a"' })
    const good = { team: 'a', iss, sub: 's', aud: 'llm' }
    for (let day = 0; day < 5; day++) {
      await exchange(good, policy)
      latchkey.clock.now += 24 * 60 * 60 * 1_000
    }
    expect(await backtest(policy.id, { limit: 2 })).toMatchObject({ exchanges: 2, is_limited: true })
    expect(await backtest(policy.id, { limit: 5 })).toMatchObject({ exchanges: 5, is_limited: false })
    const since = new Date(latchkey.clock.now - 2.5 * 24 * 60 * 60 * 1_000).toISOString()
    expect(await backtest(policy.id, { since })).toMatchObject({ exchanges: 2, since, is_limited: false })
  })

  test('refuses an edit that could not be saved', async () => {
    const { policy } = await createPolicy({ condition: 'claims.team == "a"' })
    await expect(backtest(policy.id, { condition: 'claims.team' })).rejects.toThrow('cannot be saved')
    await expect(backtest(policy.id, { condition: null })).rejects.toThrow('subject, condition or both')
  })
})

describe('over HTTP', () => {
  const post = async (policy: Row, key: string, fields: object = {}) => {
    const url = `${latchkey.server.baseUrl}/workload-identity/policies/${policy.id}/backtest`
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    return fetch(url, { method: 'POST', headers, body: JSON.stringify(fields) })
  }
  const keyOf = async (fields: Record<string, unknown>) => String((await latchkey.admin('keys.create', fields)).key)

  test('a read-only management key of the organization gets the counts', async () => {
    await recordClaims('selected')
    const { policy, iss } = await createPolicy({ condition: 'claims.team == "a"' })
    await exchange({ team: 'a', iss, sub: 's', aud: 'llm' }, policy)
    const key = await keyOf({ name: 'reader', kind: 'management_read_only' })
    const response = await post(policy, key, { condition: 'claims.team == "b"' })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ data: { exchanges: 1, lost: 1 } })
  })

  test('a key of another organization does not find the policy, and an inference key may not ask', async () => {
    const { policy } = await createPolicy({ condition: 'claims.team == "a"' })
    await latchkey.admin('organizations.create', { name: 'elsewhere' })
    const foreign = { name: 'foreign', kind: 'management', organization: 'elsewhere', owner: 'somebody' }
    expect((await post(policy, await keyOf(foreign))).status).toBe(404)
    expect((await post(policy, String(latchkey.key.key))).status).toBe(403)
  })
})
