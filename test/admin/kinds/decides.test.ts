// An edit is judged again by anyone who looks at what it changes: the linter, the stored tests, a back-test. The table of fields says who.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Policy } from '../../../db/schema/schema.ts'
import { everyJudge, type Field, type Judge, judgedBy } from '../../../src/admin/kinds/fields.ts'
import { kinds, recordOf } from '../../../src/admin/kinds/kinds.ts'
import { policyFields } from '../../../src/admin/kinds/policy.ts'
import { lintAgainst } from '../../../src/admin/policies/policy-lint.ts'
import { conditionEnvironment } from '../../../src/federation/condition/compile.ts'
import { runPolicyTest } from '../../../src/federation/policy-test.ts'
import { createRecordJudge } from '../../../src/federation/recording/record-judge.ts'
import { loadIssuers } from '../../../src/registry/trust-rows.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'

let latchkey: PastedIssuer
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  const { jwks } = latchkey.issuer
  await latchkey.admin('keys.create', { name: 'spare' })
  for (const name of ['aging', 'other'])
    await latchkey.admin('issuers.add', { name, issuer_url: `https://${name}.example.com`, jwks, shared: false })
})
afterAll(() => latchkey.stop())

const settable = Object.entries<Field>(policyFields).flatMap(([name, field]) =>
  field.shape === undefined ? [] : [[name, field] as const],
)
const byJudge = (judge: Judge) => settable.map(([name, { decides = [] }]) => [name, decides.includes(judge)] as const)

const accepted = 'claims.environment == "production"'
/** What a policy has before the edit, beside what every one has, and the edit. Each policy is too wide afterward, and fails a test. */
const edits: Record<string, { before?: object; edit: unknown }> = {
  name: { edit: 'renamed' },
  description: { edit: 'for the night' },
  issuer: { edit: 'aged' },
  key: { edit: 'spare' },
  audience: { edit: 'gpu' },
  subject: { before: { subject: 'repo:acme/app:environment:production' }, edit: null },
  condition: { edit: `${accepted} && true` },
  attribute_to: { edit: 'claims.environment' },
  required_scope: { before: { required_scope: 'deploy' }, edit: null },
  required_token_type: { before: { required_token_type: 'id' }, edit: null },
  enabled: { edit: false },
  replay_protection: { edit: true },
  allowed_models: { edit: ['meta/*'] },
  allowed_presets: { edit: ['support'] },
  max_lifetime_seconds: { edit: 60 },
  tests: { edit: [{ name: 'edited', claims: { environment: 'other' }, expect: 'allow' }] },
  lint_exceptions: { edit: [{ rule: 'dead', because: 'another rule' }] },
}

/** The issuers become ones that strangers use, as if that had not been refused. */
async function age(): Promise<void> {
  const { database, registry } = latchkey.server.context
  const url = "'https://' || name || '.github.example/_services/token'"
  const change = `update issuers set issuer_url = ${url}, shared = 1, name = 'aged' where name = 'aging'`
  const other = `update issuers set issuer_url = ${url}, shared = 1 where name = 'other'`
  await database.client.batch([change, other], 'write')
  await loadIssuers(registry, database.orm)
}

test('every field that can be set has an edit here, and says why not everybody looks at it', () => {
  expect(Object.keys(edits).toSorted()).toEqual(settable.map(([name]) => name).toSorted())
  for (const kind of kinds)
    for (const [name, { decides = [], why = recordOf(kind).why ?? '' }] of Object.entries(recordOf(kind).fields).filter(
      ([, { shape }]) => shape !== undefined,
    ))
      expect([kind, name, decides.length === everyJudge.length || why.length > 10]).toEqual([kind, name, true])
})

describe('what is read of a policy is what the table says:', () => {
  const row: Policy = {
    ...{
      id: 'p',
      organizationId: 'o',
      issuerId: 'i',
      keyId: 'k',
      name: 'n',
      description: 'd',
      enabled: true,
      managedBy: null,
    },
    ...{ audience: 'llm', subject: 'workload', condition: 'claims.team == "a"', conditionEnvironment },
    ...{ attributeTo: 'claims.team', attributeEnvironment: conditionEnvironment },
    ...{ requiredScope: 'deploy', requiredTokenType: 'id', replayProtection: true, maxLifetimeSeconds: 60 },
    ...{ allowedModels: ['m'], allowedPresets: ['p'], tests: [], lintExceptions: [{ rule: 'dead', because: 'so' }] },
    ...{ createdAt: 0, updatedAt: 0, deletedAt: null },
  }
  const claims = { sub: 'workload', team: 'a', scopes: ['deploy'], token_type: 'id', jti: 'j' }
  const expectRead = async (judge: Judge, read: (policy: Policy) => unknown, more: string[] = []) => {
    const seen = new Set<string>(more)
    // A copy of the whole row asks for the descriptor of each column before it reads it.
    const copied = new Set<PropertyKey>()
    const getOwnPropertyDescriptor = (target: Policy, name: PropertyKey) => {
      copied.add(name)
      return Object.getOwnPropertyDescriptor(target, name)
    }
    const get = (target: Policy, name: string) => {
      if (!copied.delete(name)) seen.add(name)
      return Reflect.get(target, name) as unknown
    }
    await read(new Proxy(row, { get, getOwnPropertyDescriptor }))
    // The environment belongs to the expression.
    seen.delete('conditionEnvironment')
    seen.delete('attributeEnvironment')
    const columns = Object.values<Field>(judgedBy(judge, policyFields)).map(({ column }) => String(column))
    expect([...seen].toSorted()).toEqual(columns.toSorted())
  }

  test('the linter', async () => {
    // A wide one and one that nothing passes: findings, and their exceptions.
    const issuer = { issuerUrl: 'https://idp.example.com', maxTokenAgeSeconds: null, shared: true }
    await expectRead('linter', (policy) => lintAgainst(policy, issuer), ['issuerId', 'lintExceptions'])
  })

  test('the stored tests', async () => {
    const issuer = { issuerUrl: 'https://idp.example.com', maxTokenAgeSeconds: null, clockSkewSeconds: 0 }
    const read = (policy: Policy) => runPolicyTest(policy, issuer, { name: 't', claims, expect: 'allow' }, 0)
    await expectRead('tests', read, ['issuerId', 'tests'])
  })

  test('a back-test', async () => {
    const { sub: subject, jti: tokenId, ...recorded } = claims
    const record = { claims: { ...recorded, aud: 'llm' } }
    await expectRead('backtest', (policy) =>
      createRecordJudge(policy, () => undefined)({ subject, tokenId, reason: null, record }),
    )
  })
})

describe('an edit of a field', () => {
  beforeAll(async () => {
    for (const [name, { before }] of Object.entries(edits)) {
      const rules = { issuer: 'other', key: 'target', audience: 'llm', condition: accepted, ...before }
      await latchkey.admin('policies.create', { name: `wide-${name}`, ...rules })
      const exp = Math.floor(latchkey.clock.now / 1_000) + 60
      const claims = { sub: 'repo:acme/app:environment:production', environment: 'production', scopes: ['deploy'] }
      const tests = [{ name: 'soon over', claims: { ...claims, token_type: 'id', exp }, expect: 'allow' }]
      const tested = { issuer: 'idp', key: 'target', audience: 'llm', condition: accepted, ...before, tests }
      await latchkey.admin('policies.create', { name: `failing-${name}`, ...tested })
    }
    await age()
    latchkey.clock.now += 120_000
  })

  const judged = (policy: string, field: string, edit: unknown) =>
    latchkey.admin('policies.update', { policy, [field]: edit }).then(
      () => undefined,
      (refusal: Error) => refusal.message,
    )

  test.each(byJudge('linter'))('%s, which is linted again: %p', async (name, decides) => {
    const refusal = await judged(`wide-${name}`, name, edits[name]?.edit)
    expect(refusal ?? 'saved').toMatch(decides ? /too wide/ : name === 'tests' ? /fails 1 of 1 tests/ : /saved/)
  })

  test.each(byJudge('tests'))('%s, whose tests run again: %p', async (name, decides) => {
    const edit = { name: 'renamed too', issuer: 'other' }[name] ?? edits[name]?.edit
    const refusal = await judged(`failing-${name}`, name, edit)
    expect(refusal ?? 'saved').toMatch(decides ? /fails 1 of 1 tests/ : /saved/)
  })

  test.each(byJudge('backtest'))('%s, which a back-test takes: %p', async (name, decides) => {
    const edit = name === 'condition' || name === 'subject' ? 'subject' : edits[name]?.edit
    const input = { policy: `wide-${name}`, [name]: name === 'condition' ? 'subject == "a"' : edit }
    const refusal = await latchkey.admin('policies.backtest', input).then(
      () => undefined,
      ({ message }: Error) => message,
    )
    expect(refusal ?? 'judged').toMatch(decides ? /judged/ : new RegExp(`${name} must be removed`))
  })
})
