// Who gets tokens of an issuer decides which policies can be saved. Of a host that the linter does not know, somebody must say it.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { testDocuments } from '../../../src/admin/config/document-test.ts'
import { loadIssuers } from '../../../src/registry/trust-rows.ts'
import type { Row } from '../../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'

type Finding = { rule: string; level: string; detail?: string; witness?: object }
type Linted = { data: { findings: Finding[] }[] }
type Plan = { changes: object[]; blocked: string[]; findings: { policy: string; findings: Finding[] }[] }

const github = 'https://token.actions.githubusercontent.com'
let latchkey: PastedIssuer
let managementKey: string
let made = 0
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  managementKey = String((await latchkey.admin('keys.create', { name: 'admin', kind: 'management' })).key)
})
afterAll(() => latchkey.stop())

/** An issuer of a public host, answered or not. */
async function addIssuer(fields: object = {}): Promise<Row & { issuer_url: string }> {
  made += 1
  const jwks = { keys: [latchkey.pairs.es.publicJwk] }
  const issuer = { name: `sso ${made}`, issuer_url: `https://sso-${made}.example.com`, jwks, ...fields }
  return latchkey.admin('issuers.add', issuer)
}
const policyOf = (issuer: Row, fields: object) => ({
  ...{ name: `policy ${made}`, issuer: issuer.id, key: 'target', audience: 'llm' },
  ...fields,
})
const create = (issuer: Row, fields: object) =>
  latchkey.admin<Row & { findings: Finding[] }>('policies.create', policyOf(issuer, fields))
const answer = (issuer: Row, shared: boolean | null) => latchkey.admin('issuers.update', { issuer: issuer.id, shared })
const lint = async (policy: Row) =>
  (await latchkey.admin<Linted>('policies.lint', { policy: policy.id })).data[0]?.findings ?? []
const every = { condition: '"llm" in audience' }

describe('a policy of an issuer of which nobody has said who gets its tokens', () => {
  test.each([{}, { dry_run: true }])('is refused with %p if it would be too wide on a shared one', async (more) => {
    const issuer = await addIssuer()
    const refused = create(issuer, { ...every, ...more })
    await expect(refused).rejects.toMatchObject({
      code: 'invalid',
      reason: 'shared_unknown',
      hint: ` (latchkey issuers update 'sso ${made}' --shared no, or yes)`,
    })
    await expect(refused).rejects.toThrow(
      `Nobody has answered whether strangers can get tokens of the issuer "sso ${made}" (https://sso-${made}.example.com). If they can, the policy may be too wide: vacuous. This token would pass: {"aud":"llm","sub":`,
    )
    await expect(refused).rejects.toThrow('Answer first: set shared of the issuer to false or true')
    await expect(latchkey.admin('policies.show', { policy: `policy ${made}` })).rejects.toThrow(`policy ${made}`)
  })

  test('is saved once the answer is no, with a warning', async () => {
    const issuer = await addIssuer()
    await answer(issuer, false)
    expect((await create(issuer, every)).findings).toMatchObject([{ rule: 'vacuous', level: 'warning' }])
  })

  test('is too wide once the answer is yes', async () => {
    const issuer = await addIssuer()
    await answer(issuer, true)
    await expect(create(issuer, every)).rejects.toThrow('The policy is too wide: vacuous. ')
    const stated = { condition: 'claims.team == "ml"' }
    await expect(create(issuer, stated)).rejects.toThrow('The policy is too wide: not-decided. ')
    const lint_exceptions = [{ rule: 'not-decided', because: 'The issuer alone sets the team' }]
    expect((await create(issuer, { ...stated, lint_exceptions })).findings).toMatchObject([{ rule: 'not-decided' }])
  })

  test('is saved without a question if it names the whole subject, or if what would block is allowed', async () => {
    const issuer = await addIssuer()
    expect((await create(issuer, { subject: 'batch' })).findings).toEqual([])
    const lint_exceptions = [{ rule: 'vacuous', because: 'A demonstration' }]
    const allowed = await create(issuer, { ...every, name: 'allowed', lint_exceptions })
    expect(allowed.findings).toMatchObject([{ rule: 'vacuous', allowed_because: 'A demonstration' }])
    expect(await latchkey.admin('issuers.show', { issuer: issuer.id })).toMatchObject({ shared: null })
  })

  test('that was saved before keeps working, and shows the question when it is linted', async () => {
    const issuer = await addIssuer({ shared: false })
    const policy = await create(issuer, { condition: 'claims.team == "ml"' })
    const { database, registry } = latchkey.server.context
    await database.client.batch([{ sql: 'update issuers set shared = null where id = ?', args: [issuer.id] }], 'write')
    await loadIssuers(registry, database.orm)
    expect(await lint(policy)).toMatchObject([{ rule: 'shared-unknown', level: 'blocking', detail: 'not-decided' }])
    const token = await latchkey.sign({ iss: issuer.issuer_url, aud: 'llm', team: 'ml' })
    expect((await latchkey.exchange(token, { federation_policy_id: policy.id })).status).toBe(200)
    await latchkey.admin('policies.pause', { policy: policy.id })
    await latchkey.admin('policies.resume', { policy: policy.id })
    await latchkey.admin('policies.update', { policy: policy.id, name: `renamed ${made}`, max_lifetime_seconds: 60 })
    await latchkey.admin('issuers.update', { issuer: issuer.id, clock_skew_seconds: 5 })
    const edit = { policy: policy.id, audience: 'other' }
    await expect(latchkey.admin('policies.update', edit)).rejects.toThrow('Nobody has answered')
    await answer(issuer, false)
    expect(await lint(policy)).toEqual([])
  })

  test('shows the question over HTTP, and is saved when it is answered there', async () => {
    const issuer = await addIssuer()
    const ask = async (method: string, path: string, body: object) => {
      const headers = { authorization: `Bearer ${managementKey}`, 'content-type': 'application/json' }
      const url = `${latchkey.server.baseUrl}/workload-identity${path}`
      const response = await fetch(url, { method, headers, body: JSON.stringify(body) })
      return { status: response.status, body: (await response.json()) as object }
    }
    const policy = policyOf(issuer, every)
    const refused = await ask('POST', '/policies', policy)
    expect(refused).toMatchObject({ status: 400, body: { error: { message: expect.stringContaining('Nobody has') } } })
    expect(JSON.stringify(refused)).not.toContain('latchkey issuers')
    const { name: _name, key: _key, ...draft } = policy
    expect(await ask('POST', '/policies/lint', { drafts: [draft] })).toMatchObject({
      status: 200,
      body: {
        data: [
          {
            findings: [
              { rule: 'shared-unknown', level: 'blocking' },
              { rule: 'vacuous', level: 'warning' },
            ],
          },
        ],
      },
    })
    expect(await ask('PATCH', `/issuers/${issuer.id}`, { shared: false })).toMatchObject({ status: 200 })
    expect(await ask('POST', '/policies', policy)).toMatchObject({ status: 201 })
  })
})

test('a draft of a saved issuer’s URL has its answer', async () => {
  const issuer = await addIssuer({ shared: false })
  const drafts = [issuer.issuer_url, 'https://unsaved.example.com'].map((issuer_url) => ({
    ...{ issuer_url, audience: 'llm', ...every },
  }))
  const { data } = await latchkey.admin<Linted>('policies.lint', { drafts })
  expect(data.map(({ findings }) => findings.map(({ rule }) => rule))).toEqual([
    ['vacuous'],
    ['shared-unknown', 'vacuous'],
  ])
})

describe('an answer', () => {
  test.each([
    [github, 'GitHub Actions'],
    ['https://gitlab.com', 'GitLab.com'],
    ['https://accounts.google.com', 'Google'],
  ])('that only the organization gets tokens of %s is refused', async (issuer_url, title) => {
    const text = `Everyone can get tokens of "${issuer_url}" (${title}), so shared may not be false: leave it out`
    await expect(addIssuer({ issuer_url, shared: false })).rejects.toThrow(text)
    const document = { latchkey: 1, issuers: [{ name: 'service', issuer_url, shared: false }] }
    await expect(latchkey.admin('config.apply', { document })).rejects.toThrow(`issuers "service": ${text}`)
    const moved = await addIssuer({ shared: false })
    const update = { issuer: moved.id, issuer_url, shared: false }
    await expect(latchkey.admin('issuers.update', update)).rejects.toThrow(text)
    const { id } = await addIssuer({ issuer_url, shared: true })
    await latchkey.admin('issuers.delete', { issuer: id })
  })

  test('that makes a policy too wide is refused, until the policy is narrow or allowed', async () => {
    const issuer = await addIssuer({ shared: false })
    const policy = await create(issuer, every)
    const tooWide = `With this change, the policy "policy ${made}" is too wide: vacuous. `
    await expect(answer(issuer, true)).rejects.toThrow(tooWide)
    await expect(answer(issuer, null)).rejects.toThrow(
      `the policy "policy ${made}" is too wide: shared-unknown. Nobody has answered`,
    )
    expect(await latchkey.admin('issuers.show', { issuer: issuer.id })).toMatchObject({ shared: false })
    const lint_exceptions = [{ rule: 'vacuous', because: 'A demonstration' }]
    await latchkey.admin('policies.update', { policy: policy.id, lint_exceptions })
    expect(await answer(issuer, true)).toMatchObject({ shared: true })
    await answer(issuer, false)
    await latchkey.admin('policies.update', { policy: policy.id, lint_exceptions: null })
    await latchkey.admin('policies.update', { policy: policy.id, condition: null, subject: 'batch' })
    expect(await answer(issuer, true)).toMatchObject({ shared: true })
  })

  test('is asked for with another URL', async () => {
    const issuer = await addIssuer({ shared: false })
    await create(issuer, every)
    const move = (fields: object) => {
      made += 1
      const issuer_url = `https://sso-${made}.example.com`
      return latchkey.admin('issuers.update', { issuer: issuer.id, issuer_url, ...fields })
    }
    await expect(move({})).rejects.toThrow('Answer it with this change: set shared to false or true')
    expect(await move({ shared: false })).toMatchObject({ shared: false })
  })
})

describe('a configuration document', () => {
  const documentOf = (more: object) => {
    made += 1
    const issuer = { name: `document ${made}`, issuer_url: `https://document-${made}.example.com`, ...more }
    const policy = { name: `of document ${made}`, issuer: issuer.name, key: 'target', audience: 'llm', ...every }
    return { latchkey: 1, owner: `owner ${made}`, issuers: [issuer], policies: [policy] }
  }
  const planOf = (document: object) => latchkey.admin<Plan>('config.plan', { document })

  test('asks in its plan, and answers with shared', async () => {
    const { blocked, findings } = await planOf(documentOf({}))
    expect(blocked).toEqual([`of document ${made}`])
    expect(findings[0]?.findings.map(({ rule, level }) => `${level} ${rule}`)).toEqual([
      ...['blocking shared-unknown', 'warning vacuous'],
    ])
    await expect(latchkey.admin('config.apply', { document: documentOf({}) })).rejects.toThrow(
      'too wide (shared-unknown). Nobody has answered',
    )
    expect(await planOf(documentOf({ shared: true }))).toMatchObject({ blocked: [`of document ${made}`] })
    const document = documentOf({ shared: false })
    await latchkey.admin('config.apply', { document })
    expect(await planOf(document)).toMatchObject({ changes: [], blocked: [] })
  })

  test('that no longer answers is refused', async () => {
    const document = documentOf({ shared: false })
    await latchkey.admin('config.apply', { document })
    const [{ shared: _shared, ...issuer } = { shared: false }] = document.issuers as { shared?: boolean }[]
    const unanswered = planOf({ ...document, issuers: [issuer] })
    await expect(unanswered).rejects.toThrow('too wide: shared-unknown')
  })

  test('is tested with its answers, without a server', async () => {
    const blockedOf = async (more: object) => (await testDocuments([documentOf(more)], 1)).blocked.length
    expect(await Promise.all([{}, { shared: true }, { shared: false }].map(blockedOf))).toEqual([1, 1, 0])
  })
})
