// `doctor.examine` on a running server: what happened shows up, what was repaired goes away, and nobody sees more than they administer.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync } from 'node:fs'
import type { OperationResponse } from '../../../src/admin/operations.ts'
import { nanodollarsPerDollar } from '../../../src/limits.ts'
import { turnsDuring } from '../../support/event-loop.ts'
import { type Installation, install } from '../../support/installation.ts'
import { type Federation, type Row, startFederation, temporaryFolder } from '../../support/latchkey.ts'
import { isServerKind } from '../../support/server-kind.ts'
import { hasOpenssl, makeCertificate } from '../../support/tls.ts'

type Examined = OperationResponse<'doctor.examine'>

describe('an organization', () => {
  let latchkey: Federation
  beforeEach(async () => {
    latchkey = await startFederation()
  })
  afterEach(() => latchkey.stop())

  const examine = (input: Record<string, unknown> = { organization: 'default' }) =>
    latchkey.admin<Examined>('doctor.examine', input)
  const makeOld = () => latchkey.server.context.database.client.execute('update policies set created_at = 0')
  const codes = async (input?: Record<string, unknown>) => (await examine(input)).findings.map(({ code }) => code)

  test('has a policy that never issued until it issues', async () => {
    // What is new had no time to be used.
    expect(await codes()).toEqual([])
    await makeOld()
    const [found] = (await examine()).findings
    expect(found).toMatchObject({ level: 'note', code: 'policy_never_issued', names: ['policy'], count: 1 })
    expect((await latchkey.exchange(await latchkey.mint())).status).toBe(200)
    expect(await codes()).toEqual([])
    await latchkey.server.context.lastUses.flush()
    expect(await codes()).toEqual([])
  })

  test('has policies that cannot issue, and paused ones are as their administrator wants them', async () => {
    await latchkey.admin('keys.disable', { key: 'target' })
    expect(await codes()).toEqual(['policy_key_disabled'])
    await latchkey.admin('policies.pause', { policy: 'policy' })
    expect(await codes()).toEqual([])
    await latchkey.admin('policies.resume', { policy: 'policy' })
    await latchkey.admin('keys.enable', { key: 'target' })
    await latchkey.admin('keys.delete', { key: 'target' })
    expect(await codes()).toEqual(['policy_key_deleted'])
    await latchkey.admin('issuers.delete', { issuer: 'idp' })
    expect(await codes()).toEqual(['policy_issuer_deleted'])
  })

  test('has budgets that are nearly spent, and spent', async () => {
    await latchkey.exchange(await latchkey.mint())
    const { spending } = latchkey.server.context
    const { id } = await latchkey.admin('keys.create', { name: 'team', limit: 10, limit_reset: 'monthly' })
    await latchkey.admin('keys.create', { name: 'unlimited' })
    for (const [dollars, expected] of [
      [7.9, []],
      [0.1, ['budget_nearly_spent']],
      [2, ['budget_spent']],
    ] as const) {
      spending.add(id, Date.now(), dollars * nanodollarsPerDollar)
      expect(await codes()).toEqual([...expected])
    }
  })

  test('has an issuer whose clock is ahead, known from tokens that were accepted or too early', async () => {
    const now = Math.floor(Date.now() / 1_000)
    expect((await latchkey.exchange(await latchkey.mint({ iat: now + 20 }))).status).toBe(200)
    expect((await latchkey.exchange(await latchkey.mint({ iat: now + 300 }))).status).toBe(400)
    const [found] = (await examine()).findings
    expect(found).toMatchObject({ level: 'warning', code: 'clock_behind', names: ['idp'] })
  })

  test('is all that a management key sees, and other keys see nothing', async () => {
    await latchkey.admin('organizations.create', { name: 'acme' })
    await latchkey.admin('issuers.add', { organization: 'acme', name: 'theirs', issuer_url: latchkey.issuerUrl })
    await latchkey.admin('keys.create', { organization: 'acme', name: 'app' })
    const fields = { organization: 'acme', name: 'theirs', issuer: 'theirs', key: 'app', audience: 'a', subject: 's' }
    await latchkey.admin('policies.create', fields)
    await makeOld()
    const kind = 'management_read_only'
    const { key } = await latchkey.admin<Row & { key: string }>('keys.create', {
      name: 'reader',
      kind,
      organization: 'acme',
    })
    const ask = (credential: string) =>
      fetch(`${latchkey.server.baseUrl}/workload-identity/findings`, {
        headers: { authorization: `Bearer ${credential}` },
      })
    const { data } = (await (await ask(key)).json()) as { data: Examined }
    expect(data.findings.map(({ code, names }) => [code, names])).toEqual([['policy_never_issued', ['theirs']]])
    expect(data.schema).toBeNull()
    expect((await ask(latchkey.key.key)).status).toBe(403)
    // Local users administer everything.
    const all = (await examine({})).findings
    expect(all.filter(({ area }) => area === 'policies').map(({ names }) => names)).toEqual([['policy'], ['theirs']])
    expect(all.map(({ code }) => code)).toContain(isServerKind ? 'policy_never_issued' : 'backup_not_scheduled')
  })

  test('shows when the CA of an issuer expires', async () => {
    if (!hasOpenssl) return
    const folder = temporaryFolder()
    const { certFile } = makeCertificate(folder.path, 'ca')
    const caPem = await Bun.file(certFile).text()
    folder.remove()
    const shown = await latchkey.admin('issuers.update', { issuer: 'idp', ca_pem: caPem })
    const left = Date.parse(String(shown.ca_expires_at)) - Date.now()
    expect(Math.abs(left - 10 * 24 * 60 * 60 * 1_000)).toBeLessThan(60_000)
    expect(await codes()).toEqual([])
  })
})

test('40,000 policies are examined while other requests go on', async () => {
  const policies = 40_000
  const latchkey = await startFederation()
  const { client } = latchkey.server.context.database
  // A database server has five seconds for a statement.
  for (let after = 0; after < policies; after += 10_000)
    await client.execute({
      sql: `with recursive numbers(n) as (select ${after + 1} union all select n + 1 from numbers where n < ${after + 10_000})
      insert into policies (id, organization_id, issuer_id, key_id, name, audience, subject, enabled, max_lifetime_seconds, created_at, updated_at, replay_protection)
      select 'id-' || n, p.organization_id, p.issuer_id, p.key_id, 'policy-' || n, 'a', 's', 1, 900, 0, 0, 0 from numbers, policies p where p.id = ?`,
      args: [latchkey.policy.id],
    })
  let found: Examined['findings'] = []
  const turns = await turnsDuring(async () => {
    found = (await latchkey.admin<Examined>('doctor.examine', { organization: 'default' })).findings
  })
  expect(found).toMatchObject([{ code: 'policy_never_issued', count: policies }])
  // It examines a hundred at most in each turn.
  expect(turns).toBeGreaterThan(policies / 100)
  await latchkey.stop()
})

describe('the command', () => {
  let installation: Installation
  beforeAll(async () => {
    installation = await install()
  })
  afterAll(() => installation.remove())

  test('ends with 1 for what is urgent, says what to do, and with 0 once it is done', async () => {
    const served = await installation.serve()
    const keyFile = `${installation.folder}/master.key`
    chmodSync(keyFile, 0o644)
    const urgent = await installation.run('doctor')
    expect(urgent).toMatchObject({ code: 1, stderr: '' })
    expect(urgent.stdout).toContain(`error    master_key: Other users can read the master key`)
    expect(urgent.stdout).toContain(`chmod 600 ${keyFile}`)
    chmodSync(keyFile, 0o600)
    const { code, stdout } = await installation.run('doctor', '--json')
    const { findings } = JSON.parse(stdout) as Examined
    // The disk of the machine that runs this may be nearly full.
    const others = findings.filter(({ area }) => area !== 'disk')
    const notes = [['note', isServerKind ? 'backup_unknown' : 'backup_not_scheduled']]
    expect(others.map(({ level, code }) => [level, code])).toEqual(notes)
    expect(code).toBe(findings.every(({ level }) => level === 'note') ? 0 : 1)
    await served.serving.stop()
    expect((await installation.run('doctor')).stdout).toContain('No server runs on this database')
  })
})
