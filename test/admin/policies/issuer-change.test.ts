// A change of an issuer that breaks tests of its policies, or lets strangers pass, is refused like an edit of the policy.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'

const github = 'https://token.actions.githubusercontent.com'
let latchkey: PastedIssuer
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
})
afterAll(() => latchkey.stop())

const policy = { key: 'target', audience: 'llm' }
async function addIssuer(name: string): Promise<void> {
  const jwks = { keys: [latchkey.pairs.es.publicJwk] }
  await latchkey.admin('issuers.add', { name, issuer_url: `https://${name}.example.com`, jwks, shared: false })
}
const update = (issuer: string, fields: object) => latchkey.admin('issuers.update', { issuer, ...fields })

describe('a change of an issuer', () => {
  test('is refused if a test of a policy passes before it and fails after it', async () => {
    await addIssuer('tested')
    const long = { name: 'an hour', claims: { iat: 1_795_000_000, exp: 1_795_003_600 }, expect: 'allow' }
    latchkey.clock.now = 1_795_000_000_000
    const tested = { ...policy, name: 'tested', issuer: 'tested', subject: 'test' }
    await latchkey.admin('policies.create', { ...tested, tests: [long] })
    const refused = update('tested', { max_token_age_seconds: 600 })
    await expect(refused).rejects.toThrow(
      'With this change, the policy "tested" fails a test. "an hour": expected allow, got token_age_too_long',
    )
    expect(await latchkey.admin('issuers.show', { issuer: 'tested' })).toMatchObject({ max_token_age_seconds: null })
    await update('tested', { max_token_age_seconds: 7_200 })
    latchkey.clock.now += 2 * 3_600_000
    // The test fails by now, with this change and without it.
    await update('tested', { max_token_age_seconds: 600 })
  })

  test('is refused if strangers could then pass a policy, unless that was accepted', async () => {
    await addIssuer('linted')
    const wide = { ...policy, name: 'wide', issuer: 'linted', condition: 'claims.environment == "production"' }
    await latchkey.admin('policies.create', wide)
    const change = () => update('linted', { issuer_url: github })
    await expect(change()).rejects.toThrow('the policy "wide" is too wide: github-environment-alone')
    const lint_exceptions = [{ rule: 'github-environment-alone', because: 'a demonstration' }]
    await latchkey.admin('policies.update', { policy: 'wide', lint_exceptions })
    expect(await change()).toMatchObject({ issuer_url: github })
  })

  test('of what neither tests nor the linter read is never refused', async () => {
    await addIssuer('named')
    const failing = { name: 'soon', claims: { exp: Math.floor(latchkey.clock.now / 1_000) + 60 }, expect: 'allow' }
    await latchkey.admin('policies.create', { ...policy, name: 'any', issuer: 'named', subject: 's', tests: [failing] })
    latchkey.clock.now += 3_600_000
    await update('named', { name: 'renamed', keys_stale_seconds: 60 })
    await update('renamed', { clock_skew_seconds: 5 })
  })
})
