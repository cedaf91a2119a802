// A policy that a stranger could pass is refused when it is saved, unless an administrator says why it is right.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { compareSides } from '../../../src/admin/policies/policy-lint.ts'
import { conditionEnvironment } from '../../../src/federation/condition/compile.ts'
import { loadIssuers } from '../../../src/registry/trust-rows.ts'
import { worstConditions } from '../../federation/lint/worst-conditions.ts'
import type { Row } from '../../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'

type Finding = { rule: string; level: string; witness?: object; allowed_because?: string }
type Saved = Row & { findings: Finding[]; lint_exceptions: object[] | null }
type Linted = { policy_name: string | null; findings: Finding[] }

const github = 'https://token.actions.githubusercontent.com'
let latchkey: PastedIssuer
let managementKey: string
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  const { jwks } = latchkey.issuer
  await latchkey.admin('issuers.add', { name: 'github', issuer_url: github, jwks })
  const made = await latchkey.admin('keys.create', { name: 'reader', kind: 'management_read_only' })
  managementKey = String(made.key)
})
afterAll(() => latchkey.stop())

const create = (name: string, fields: object) =>
  latchkey.admin<Saved>('policies.create', { name, issuer: 'github', key: 'target', audience: 'llm', ...fields })
const lint = async (input: Record<string, unknown>) =>
  (await latchkey.admin<{ data: Linted[] }>('policies.lint', input)).data
const rulesOf = ({ findings }: { findings: Finding[] }) => findings.map(({ rule }) => rule)
const wide = { condition: 'claims.environment == "production"' }
const lint_exceptions = [{ rule: 'github-environment-alone', because: 'a demonstration' }]

describe('a policy that is too wide', () => {
  test.each([{}, { dry_run: true }])('is refused with an example, when it is made with %p', async (more) => {
    const refused = create('wide', { ...wide, ...more })
    await expect(refused).rejects.toThrow('The policy is too wide: github-environment-alone. ')
    await expect(refused).rejects.toThrow(
      '{"sub":"repo:mallory/lab:environment:production","repository_id":"900000001","repository_owner_id":"900000002","environment":"production"}',
    )
    await expect(latchkey.admin('policies.show', { policy: 'wide' })).rejects.toThrow('wide')
  })

  test('is saved with an exception, which is stored, listed and recorded', async () => {
    const saved = await create('allowed', { ...wide, lint_exceptions })
    expect(saved.lint_exceptions).toEqual(lint_exceptions)
    expect(saved.findings[0]).toMatchObject({ level: 'blocking', allowed_because: 'a demonstration' })
    const { data } = await latchkey.admin<{ data: Saved[] }>('policies.list')
    expect(data.find(({ name }) => name === 'allowed')).toMatchObject({ lint_exceptions })
    const { data: changes } = await latchkey.admin<{ data: { after: object }[] }>('audit.changes', { limit: 1 })
    expect(changes[0]?.after).toMatchObject({ lint_exceptions })
  })

  const invisible = [' ', '\u00a0\u2003', '\u2060', '\u200b\u{e0020}', '\u3164\uffa0', '\u2800', '\u{13441}']
  test.each([...invisible, '...', '— 1'])(
    'is not saved with the reason %j, which has no letters to see',
    async (because) => {
      const rule = 'github-environment-alone'
      await expect(create('blank', { ...wide, lint_exceptions: [{ rule, because }] })).rejects.toThrow(
        'because must be a reason in words, with visible letters',
      )
    },
  )

  test.each(['演示', 'Ein Grund: #4711', 'موقت', '\u2060a'])('is saved with the reason %p', async (because) => {
    const named = `reason ${because.codePointAt(0)}`
    const rule = 'github-environment-alone'
    expect(await create(named, { ...wide, lint_exceptions: [{ rule, because }] })).toMatchObject({ name: named })
  })

  test('is refused if the exception is for another rule, and when its exception is removed', async () => {
    const other = [{ rule: 'vacuous', because: 'no reason' }]
    await expect(create('other', { ...wide, lint_exceptions: other })).rejects.toThrow('too wide')
    await create('removed', { ...wide, lint_exceptions })
    const removal = latchkey.admin('policies.update', { policy: 'removed', lint_exceptions: null })
    await expect(removal).rejects.toThrow('too wide')
    expect(await latchkey.admin<Saved>('policies.show', { policy: 'removed' })).toMatchObject({ lint_exceptions })
  })

  test.each([
    ['a rule that does not exist', [{ rule: 'none', because: 'x' }]],
    ['no reason', [{ rule: 'vacuous', because: '' }]],
    ['a reason that is too long', [{ rule: 'vacuous', because: 'x'.repeat(501) }]],
    ['another field', [{ rule: 'vacuous', because: 'x', until: 'y' }]],
  ])('is not saved with an exception for %s', async (_, given) => {
    await expect(create('invalid', { ...wide, lint_exceptions: given })).rejects.toMatchObject({ code: 'invalid' })
  })

  test('is not saved by an update', async () => {
    await create('narrow', { subject: 'repo:acme/app:ref:refs/heads/main' })
    const widened = { policy: 'narrow', subject: null, condition: 'subject.startsWith("repo:acme")' }
    await expect(latchkey.admin('policies.update', widened)).rejects.toThrow('too wide: prefix-open')
    expect(await latchkey.admin('policies.show', { policy: 'narrow' })).toMatchObject({ condition: null })
  })
})

test('an update that removes the required scope is judged without it', async () => {
  const reason = [{ rule: 'shared-no-tenant', because: 'only our tokens have this scope' }]
  await create('scoped', { condition: 'true', required_scope: 'llm', lint_exceptions: reason })
  const removal = latchkey.admin('policies.update', { policy: 'scoped', required_scope: null })
  await expect(removal).rejects.toThrow('too wide: vacuous')
  expect(await latchkey.admin<Saved>('policies.show', { policy: 'scoped' })).toMatchObject({ required_scope: 'llm' })
})

test('a policy that was saved before stays usable: it can be renamed, paused, resumed and deleted', async () => {
  const { jwks } = latchkey.issuer
  await latchkey.admin('issuers.add', { name: 'moved', issuer_url: 'https://old.example.com', jwks, shared: false })
  await create('old', { issuer: 'moved', ...wide })
  // Its issuer changed before such changes were refused, and with it what its condition admits.
  const { database, registry } = latchkey.server.context
  await database.client.batch(
    ["update issuers set issuer_url = 'https://github.acme.example/_services/token', shared = 1 where name = 'moved'"],
    'write',
  )
  await loadIssuers(registry, database.orm)
  expect((await lint({ policy: 'old' })).map(rulesOf)).toEqual([['github-environment-alone']])
  expect(await latchkey.admin<Saved>('policies.update', { policy: 'old', name: 'older', enabled: true })).toMatchObject(
    {
      findings: [{ rule: 'github-environment-alone' }],
    },
  )
  await expect(latchkey.admin('policies.update', { policy: 'older', audience: 'b' })).rejects.toThrow('too wide')
  await latchkey.admin('policies.pause', { policy: 'older' })
  await latchkey.admin('policies.resume', { policy: 'older' })
  expect(await latchkey.admin('policies.delete', { policy: 'older' })).toMatchObject({ deleted: true })
})

test('a dry run of an update shows what it would change, and saves nothing', async () => {
  await create('edited', { subject: 'repo:acme/app:ref:refs/heads/main' })
  const edit = { policy: 'edited', subject: null, condition: 'subject.startsWith("repo:acme/app")', dry_run: true }
  expect(await latchkey.admin('policies.update', edit)).toMatchObject({
    dry_run: true,
    condition: edit.condition,
    difference: { gains: { sub: 'repo:acme/app-evil:pull_request' } },
    findings: [{ rule: 'prefix-within' }, {}, {}],
  })
  expect(await latchkey.admin('policies.show', { policy: 'edited' })).toMatchObject({ condition: null })
  expect(await latchkey.admin('policies.update', { policy: 'edited', name: 'same', dry_run: true })).toMatchObject({
    name: 'same',
    difference: {},
  })
  await expect(latchkey.admin('policies.update', { policy: 'edited', dry_run: true })).rejects.toThrow('change')
})

test('warnings do not refuse a policy and are shown with it', async () => {
  const saved = await create('warned', { subject: 'repo:acme/app:ref:refs/heads/main' })
  expect(rulesOf(saved)).toEqual(['github-name-only', 'github-old-subject'])
  expect(saved.findings[0]?.witness).toMatchObject({ sub: 'repo:acme/app:ref:refs/heads/main', iss: github })
})

describe('policies.lint', () => {
  test('lints one policy, all of the organization, or drafts', async () => {
    expect(await lint({ policy: 'warned' })).toMatchObject([{ policy_name: 'warned', issuer_url: github }])
    expect((await lint({})).map(({ policy_name }) => policy_name)).toContain('policy')
    const audience = 'llm'
    const drafts = [
      { issuer: 'github', audience, condition: 'true' },
      { name: 'b', issuer_url: 'https://gitlab.com', audience, condition: 'claims.project_id == "20"' },
    ]
    const [first, second] = await lint({ drafts })
    expect(rulesOf(first as Linted)).toEqual(['vacuous'])
    expect(rulesOf(second as Linted)).toEqual(['gitlab-unprotected', 'long-token'])
  })

  test.each([
    ['a draft without an issuer', { drafts: [{ audience: 'a', subject: 's' }] }, 'must name its issuer'],
    [
      'a draft without subject and condition',
      { drafts: [{ issuer: 'github', audience: 'a' }] },
      'restrict its subjects',
    ],
    ['a condition that does not compile', { drafts: [{ issuer: 'github', audience: 'a', condition: 'x' }] }, 'line 1'],
    ['a policy and drafts at once', { policy: 'warned', drafts: [] }, 'only one of them'],
    ['an unknown policy', { policy: 'none' }, 'none'],
    [
      'more policies than a file may have',
      { drafts: Array.from({ length: 101 }, () => ({ issuer: 'github', audience: 'a', subject: 's' })) },
      'must be at most 100 policies in a file: split it (was 101)',
    ],
  ])('refuses %s', async (_, input, text) => {
    await expect(lint(input)).rejects.toThrow(text)
  })

  test('can be asked over HTTP with a read-only key', async () => {
    const response = await fetch(`${latchkey.server.baseUrl}/workload-identity/policies/lint`, {
      method: 'POST',
      headers: { authorization: `Bearer ${managementKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ drafts: [{ issuer: 'github', audience: 'a', condition: 'true' }] }),
    })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ data: [{ policy_id: null, findings: [{ rule: 'vacuous' }] }] })
  })
})

test('other work comes in between the two searches of a review', async () => {
  const { 'alternatives joined by and': one, 'conditional expressions': other } = worstConditions
  const sideOf = (condition: string | undefined): Parameters<typeof compareSides>[0] => [
    {
      ...{
        audience: 'a',
        subject: null,
        condition: condition ?? '',
        conditionEnvironment,
        issuerId: '',
        enabled: true,
      },
      ...{ requiredScope: null, requiredTokenType: null, lintExceptions: null },
    },
    { issuerUrl: 'https://idp.example.com', maxTokenAgeSeconds: null, shared: null },
  ]
  // The first comparison loads what it needs.
  await compareSides(sideOf('true'), sideOf('false'))
  let hasTurned = false
  setImmediate(() => {
    hasTurned = true
  })
  await compareSides(sideOf(one), sideOf(other))
  expect(hasTurned).toBe(true)
})
