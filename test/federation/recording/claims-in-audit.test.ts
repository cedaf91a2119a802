// Which claims of a verified token the audit keeps, by the setting of the organization.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createClaimHash } from '../../../src/federation/recording/claim-hash.ts'
import type { RecordedClaims } from '../../../src/federation/recording/recorded-claims.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'

const condition = 'claims.team == "a" || (has(claims.region) && claims.region == "eu")'
let latchkey: PastedIssuer
let policyId: string
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  const fields = { issuer: 'idp', key: 'target', audience: 'latchkey-tests' }
  policyId = (await latchkey.admin('policies.create', { ...fields, name: 'team', condition })).id
  await latchkey.admin('policies.create', { ...fields, name: 'tier', condition: '"gold" in claims.tiers' })
  // Recording begins to read the policies of all issuers at the first exchange.
  await latchkey.exchange(await latchkey.sign())
})
beforeEach(() => recordClaims('selected'))
afterAll(() => latchkey.stop())

const recordClaims = (record_claims: string) =>
  latchkey.admin('organizations.update', { organization: 'default', record_claims })

/** What the audit has of an exchange of these claims under the policy `team`. */
async function recordOf(
  claims: Record<string, unknown>,
  policy = policyId,
): Promise<{ reason: string | null; recorded: RecordedClaims | null }> {
  return recordOfToken(await latchkey.sign(claims), policy)
}

async function recordOfToken(token: string, policy = policyId) {
  const response = await latchkey.exchange(token, { federation_policy_id: policy })
  const request_id = response.headers.get('x-request-id')
  const { reason, recorded_claims } = await latchkey.admin<{ reason: string; recorded_claims: RecordedClaims | null }>(
    'audit.show',
    { request_id },
  )
  return { reason, recorded: recorded_claims }
}

describe('selected claims', () => {
  test.each([
    'gitlab.com/acme/app//.gitlab-ci.yml@refs/heads/main',
    'ssh://git@git.example/app',
    'heyJude.long.enough',
  ])('are recorded if they only look like a credential: %s', async (team) =>
    expect((await recordOf({ team })).recorded?.claims).toMatchObject({ team }),
  )

  test('are those that the policies of the issuer read, with the names of those that the token lacks', async () => {
    const { reason, recorded } = await recordOf({ team: 'a', secret: 'x', tiers: ['gold', 'blue'] })
    expect(reason).toBeNull()
    expect(recorded).toEqual({
      claims: { aud: 'latchkey-tests', team: 'a', tiers: ['gold', 'blue'] },
      absent: ['region'],
    })
  })

  test('are recorded of a token that the policy refuses, and of one that has expired', async () => {
    const refused = await recordOf({ team: 'b', region: 'us' })
    expect(refused.reason).toBe('condition_false')
    expect(refused.recorded?.claims).toMatchObject({ team: 'b', region: 'us' })
    const expired = await recordOf({ team: 'a', exp: 1 })
    expect(expired.reason).toBe('expired')
    expect(expired.recorded?.claims).toMatchObject({ team: 'a' })
  })

  test('are not recorded before the signature is verified', async () => {
    const [head, payload] = (await latchkey.sign({ team: 'a' })).split('.')
    const [, , signature] = (await latchkey.sign({ team: 'b' })).split('.')
    const forged = await recordOfToken(`${head}.${payload}.${signature}`)
    expect(forged).toEqual({ reason: 'signature_invalid', recorded: null })
    await latchkey.admin('policies.pause', { policy: 'team' })
    expect(await recordOf({ team: 'a' })).toEqual({ reason: 'policy_paused', recorded: null })
    await latchkey.admin('policies.resume', { policy: 'team' })
  })

  test('include what the linter looks at, and what a new policy reads from its first exchange on', async () => {
    const jwks = { keys: [latchkey.pairs.es.publicJwk] }
    const issuer_url = 'https://token.actions.githubusercontent.com'
    await latchkey.admin('issuers.add', { name: 'github', issuer_url, jwks })
    const { id } = await latchkey.admin('policies.create', {
      ...{ name: 'ci', issuer: 'github', key: 'target', audience: 'latchkey-tests' },
      condition: 'claims.repository_id == "1" && claims.ref == "refs/heads/main" && claims.run_attempt == "1"',
    })
    const token = { iss: issuer_url, repository_id: '1', ref: 'refs/heads/main', run_attempt: '1', run_id: '7' }
    const { reason, recorded } = await recordOf({ ...token, repository: 'acme/app' }, id)
    expect(reason).toBeNull()
    const { run_id: _run, iss: _iss, ...expected } = { ...token, repository: 'acme/app' }
    expect(recorded?.claims).toEqual({ aud: 'latchkey-tests', ...expected })
    expect(recorded?.absent).toContain('environment')
  })

  test('are left out, and not reported as missing, if they hold a token or do not fit', async () => {
    const jwt = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl'
    expect((await recordOf({ team: jwt, region: 'eu' })).recorded).toEqual({
      claims: { aud: 'latchkey-tests', region: 'eu' },
      absent: ['tiers'],
    })
    const password = (await recordOf({ team: 'https://me:secret@host.example', region: 'eu' })).recorded
    expect(password?.claims).toEqual({ aud: 'latchkey-tests', region: 'eu' })
    const long = await recordOf({ team: 'ä'.repeat(2_100), region: 'eu' })
    expect(long.recorded).toEqual({ claims: { aud: 'latchkey-tests', region: 'eu' }, absent: ['tiers'] })
    expect((await recordOf({ team: 'x'.repeat(5_000), region: 'eu' })).recorded).toBeNull()
  })
})

test.each([
  ['cuts', 'x'.repeat(513), 'claim_too_long'],
  ['masks', `sk-lk-v1-${'ab'.repeat(32)}`, null],
])(
  'no claims are recorded beside a subject that the audit %s, since a back-test would judge another one',
  async (_, sub, reason) => {
    expect(await recordOf({ sub, team: 'a' })).toEqual({ reason, recorded: null })
  },
)

test('all claims are recorded up to 4 KB, and the record says whether they are all', async () => {
  await recordClaims('all')
  const { recorded } = await recordOf({ team: 'a', nested: { deep: [1, null, true] } })
  expect(recorded?.claims).toMatchObject({
    team: 'a',
    nested: { deep: [1, null, true] },
    iss: 'https://idp.example.com',
  })
  expect(recorded?.complete).toBe(true)
  expect(recorded?.claims).not.toHaveProperty('sub')
  const large = await recordOf({ team: 'a', first: 'x'.repeat(3_000), second: 'y'.repeat(3_000) })
  expect(Object.keys(large.recorded?.claims ?? {})).toContain('first')
  expect(Object.keys(large.recorded?.claims ?? {})).not.toContain('second')
  expect(large.recorded?.complete).toBeUndefined()
  expect(Buffer.byteLength(JSON.stringify(large.recorded))).toBeLessThanOrEqual(4_096)
})

test('the same claim has different hashes in two organizations', () => {
  const [one, other] = ['one', 'other'].map((id) => createClaimHash('ab'.repeat(32), id))
  expect(one?.hashOf('acme/app')).not.toBe(other?.hashOf('acme/app'))
  expect(one?.key).not.toBe(other?.key)
})

test('hashed claims show neither texts nor numbers, and equal values have equal hashes', async () => {
  await recordClaims('hashed')
  const [one, other, different] = [
    await recordOf({ team: 'b', region: 7 }),
    await recordOf({ team: 'b', region: 7 }),
    await recordOf({ team: 'c', region: '7' }),
  ].map(({ recorded }) => recorded)
  expect(one?.claims).toEqual(other?.claims)
  expect(one?.claims.team).not.toBe(different?.claims.team)
  expect(one?.claims.region).not.toBe(different?.claims.region)
  expect(one?.claims.aud).toBe('latchkey-tests')
  expect(JSON.stringify(one)).not.toMatch(/"b"|7[,}]/)
  expect(one?.key).toHaveLength(8)
})

test('nothing is recorded after recording is switched off', async () => {
  await recordClaims('off')
  expect(await recordOf({ team: 'a' })).toEqual({ reason: null, recorded: null })
})
