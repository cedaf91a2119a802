// When the doctor speaks up, and how urgently: one fact at a time, on both sides of its bound.
import { describe, expect, test } from 'bun:test'
import { inOrder } from '../../../src/admin/doctor/findings.ts'
import {
  type IssuerFacts,
  judgeExpiry,
  judgeUpstream,
  type UpstreamFacts,
} from '../../../src/admin/doctor/issuer-rules.ts'
import { judgeOrganization, type OrganizationFacts } from '../../../src/admin/doctor/organization-rules.ts'
import { type BackupFacts, judgeSchema, judgeServer, type ServerFacts } from '../../../src/admin/doctor/server-rules.ts'

const now = Date.parse('2027-01-31T00:00:00Z')
const [hour, day] = [60 * 60 * 1_000, 24 * 60 * 60 * 1_000]
const validFor = (days: number) => ({ startsAt: now - 365 * day, expiresAt: now + days * day })

const fineIssuer: IssuerFacts = {
  name: 'idp',
  keys: { usableSeconds: 24 * 3_600, staleSeconds: 24 * 3_600 },
  fetchFailures: 0,
  ca: validFor(100),
  clockDifferences: [1, 2, 60],
  clockSkewSeconds: 30,
}
const fineOrganization: OrganizationFacts = {
  organization: undefined,
  isEntitled: true,
  issuers: [fineIssuer],
  policies: { total: 3, names: new Map() },
  exchangesSince: now - 20 * day,
  budgets: [],
}
const auditLogFine: ServerFacts['auditLog'] = {
  ...{ failure: undefined, folderFailure: undefined, completeAt: now, cosignedAt: undefined },
}
const fineServer: ServerFacts & { backup: BackupFacts } = {
  isServing: true,
  nodes: [],
  databaseWeaknesses: [],
  grace: undefined,
  disk: { folder: '/data', free: 50e9, total: 100e9, database: 5e9 },
  backup: { folder: '/backups', everyMilliseconds: day, newestAt: now - day, failure: undefined, free: 50e9 },
  isArchiveFailing: false,
  auditLog: auditLogFine,
  masterKeyFile: { path: '/data/master.key', mode: 0o100600 },
  tls: { ...validFor(100), failure: undefined },
  schema: 9,
}

const nodeOf = (name: string, facts: Partial<ServerFacts['nodes'][number]> = {}) => ({
  ...{ id: name, name, version: '1.0.0', schemaVersion: 9, revision: 1, baseUrl: 'https://a/v1', clockOffset: 0 },
  ...{ startedAt: now - 9 * day, lastSeenAt: now, lag: 0, isLive: 1, idleMilliseconds: 500 },
  ...facts,
})
const nodes = (...facts: Parameters<typeof nodeOf>[1][]) =>
  ofServer({ nodes: facts.map((each, index) => nodeOf(`node ${index}`, each)) })

const summary = (findings: ReturnType<typeof judgeServer>) => findings.map(({ level, code }) => `${level} ${code}`)
const ofIssuer = (facts: Partial<IssuerFacts>) =>
  judgeOrganization({ ...fineOrganization, issuers: [{ ...fineIssuer, ...facts }] }, now)
const ofOrganization = (facts: Partial<OrganizationFacts>) => judgeOrganization({ ...fineOrganization, ...facts }, now)
const ofServer = (facts: Partial<ServerFacts>) => judgeServer({ ...fineServer, ...facts }, now)
const ofAuditLog = (facts: Partial<ServerFacts['auditLog']>) => ofServer({ auditLog: { ...auditLogFine, ...facts } })
const backup = (facts: Partial<BackupFacts>) => ofServer({ backup: { ...fineServer.backup, ...facts } })
const grace = (facts: Partial<NonNullable<ServerFacts['grace']>>) =>
  ofServer({ grace: { path: '/data/usage', milliseconds: 30_000, waiting: 0, refused: [], ...facts } })
const disk = (facts: Partial<NonNullable<ServerFacts['disk']>>) =>
  ofServer({ disk: { folder: '/data', free: 50e9, total: 100e9, database: 5e9, ...facts } })
const keys = (usableHours: number, fetchFailures: number) =>
  ofIssuer({ keys: { usableSeconds: usableHours * 3_600, staleSeconds: 24 * 3_600 }, fetchFailures })
const unfetched = (usableHours: number) =>
  ofIssuer({ keys: { usableSeconds: usableHours * 3_600, staleSeconds: 24 * 3_600 }, isUnfetched: true })
const upstream = (facts: Partial<UpstreamFacts>) =>
  judgeUpstream(
    {
      ...{ name: 'gpu', ca: undefined, failing: undefined, restsFor: undefined, probeProblem: undefined },
      ...{ hasOthers: true, ...facts },
    },
    now,
  )
const failing = (failures: number) => ({ since: now - 9_000, failures, problem: 'it responded with 502' })
const alone = { hasOthers: false }
const policies = (problem: Parameters<OrganizationFacts['policies']['names']['get']>[0], ...names: string[]) =>
  ofOrganization({ policies: { total: names.length, names: new Map([[problem, names]]) } })

const unpriced = (requests: number, ...names: string[]) => ({
  ...{ requests, models: new Set(requests === 0 ? [] : ['echo']), names: new Set(names) },
})

const cases: [what: string, found: () => ReturnType<typeof judgeServer>, expected: string[]][] = [
  ['an organization in order', () => ofOrganization({}), []],
  ['keys that failed to be fetched, but are fresh enough', () => keys(13, 9), ['warning issuer_fetch_failed']],
  ['keys that never arrived', () => ofIssuer({ keys: undefined, fetchFailures: 1 }), ['error issuer_keys_missing']],
  ['keys that nobody has asked for', () => ofIssuer({ keys: undefined }), []],
  ['keys past half of their stale time that fail to be fetched', () => keys(11, 9), ['warning issuer_fetch_failed']],
  ['keys past their stale time that fail to be fetched', () => keys(-1, 1), ['error issuer_keys_unusable']],
  ['old keys that nobody needed', () => keys(-1, 0), ['note issuer_keys_idle']],
  ['old keys that were not fetched since the start', () => unfetched(24), ['note issuer_keys_idle']],
  ['fresh keys that were not fetched since the start', () => unfetched(25), []],
  ['pasted keys', () => ofIssuer({ keys: undefined }), []],
  ['a CA of an issuer near its end', () => ofIssuer({ ca: validFor(29) }), ['warning issuer_ca_expires']],
  ['a CA of an issuer past its end', () => ofIssuer({ ca: validFor(-1) }), ['error issuer_ca_expires']],
  ['no private CA', () => ofIssuer({ ca: undefined }), []],
  ['a CA of an upstream', () => upstream({ ca: validFor(29) }), ['warning upstream_ca_expires']],
  ['an upstream without a CA', () => upstream({}), []],
  ['an upstream that fails', () => upstream({ failing: failing(1) }), ['warning upstream_failing']],
  [
    'an upstream whose probe fails',
    () => upstream({ failing: failing(9), restsFor: 0, probeProblem: 'it responds with 503' }),
    ['warning upstream_probe_failing'],
  ],
  ['an upstream that rests', () => upstream({ failing: failing(3), restsFor: 0 }), ['warning upstream_resting']],
  ['one failure of the only upstream', () => upstream({ ...alone, failing: failing(2) }), ['warning upstream_failing']],
  ['the only upstream that fails', () => upstream({ ...alone, failing: failing(3) }), ['error upstream_failing']],
  ['the only upstream that rests', () => upstream({ ...alone, restsFor: 0 }), ['error upstream_failing']],
  [
    'the only upstream whose probe fails',
    () => upstream({ ...alone, probeProblem: 'it responds with 503' }),
    ['error upstream_probe_failing'],
  ],
  ['the only upstream in order', () => upstream(alone), []],
  ['tokens from the future', () => ofIssuer({ clockDifferences: [-20, -9, -8, 4] }), ['warning clock_behind']],
  ['one token from the future', () => ofIssuer({ clockDifferences: [-20, 1, 1] }), []],
  ['old tokens, each of which may be used again', () => ofIssuer({ clockDifferences: [1_800, 1_900] }), []],
  ['only old tokens', () => ofIssuer({ clockDifferences: Array(10).fill(1_800) }), ['note tokens_old']],
  ['a policy that never issued', () => policies('never_issued', 'ci'), ['note policy_never_issued']],
  ['a policy with a deleted issuer', () => policies('issuer_deleted', 'ci'), ['error policy_issuer_deleted']],
  ['a policy with a deleted key', () => policies('key_deleted', 'ci'), ['error policy_key_deleted']],
  ['a policy with a disabled key', () => policies('key_disabled', 'ci'), ['error policy_key_disabled']],
  ['a policy with an expired key', () => policies('key_expired', 'ci'), ['error policy_key_expired']],
  ['a plan without federation', () => ofOrganization({ isEntitled: false }), ['error organization_not_entitled']],
  [
    'such a plan without policies',
    () => ofOrganization({ isEntitled: false, policies: { total: 0, names: new Map() } }),
    [],
  ],
  [
    'budgets at 79 %, 80 % and 100 %',
    () => ofOrganization({ budgets: [79, 80, 100].map((spent) => ({ name: `of ${spent}`, spent, limit: 100 })) }),
    ['error budget_spent', 'warning budget_nearly_spent'],
  ],
  [
    'a budget of several keys that refuses requests',
    () => ofOrganization({ spentBudgets: [{ name: 'teams', values: ['ci'], count: 1, resetsAt: now }] }),
    ['error budget_refuses'],
  ],
  [
    'a budget in dollars with requests of unknown cost',
    () =>
      ofOrganization({
        unpriced: { budgets: unpriced(3, 'repositories'), keys: unpriced(0) },
      }),
    ['warning budget_cost_unknown'],
  ],
  [
    'such a budget and keys with a limit in dollars',
    () => ofOrganization({ unpriced: { budgets: unpriced(3, 'repositories'), keys: unpriced(3, 'ci') } }),
    ['warning budget_cost_unknown', 'warning budget_cost_unknown'],
  ],
  ['a server in order', () => ofServer({}), []],
  [
    'a server database, whose backups are its own',
    () => ofServer({ backup: undefined, disk: undefined }),
    ['note backup_unknown'],
  ],
  [
    'a database cluster of which a node is down',
    () => ofServer({ databaseWeaknesses: [{ level: 'error', what: 'its node a:4001 does not respond' }] }),
    ['error database_weak'],
  ],
  [
    'a database server that a power loss can set back',
    () => ofServer({ databaseWeaknesses: [{ level: 'warning', what: 'its mode' }] }),
    ['warning database_weak'],
  ],
  ['a node that may serve without its database', () => grace({}), ['note database_grace']],
  ['usage that waits for the database', () => grace({ waiting: 3 }), ['note database_grace', 'warning usage_waits']],
  [
    'usage that was refused',
    () => grace({ refused: ['/data/usage.refused', '/data/usage.damaged'] }),
    ['note database_grace', 'error usage_refused', 'error usage_refused'],
  ],
  ['nodes in order', () => nodes({}, { clockOffset: 29_000 }, { clockOffset: -29_000, lag: 9 }), []],
  ['a node of a program without clock and base URL', () => nodes({}, { clockOffset: null, baseUrl: null }), []],
  ['a node whose clock is ahead', () => nodes({}, { clockOffset: 31_000 }), ['warning node_clock']],
  ['a node whose clock is behind', () => nodes({}, { clockOffset: -31_000 }), ['warning node_clock']],
  ['a node that does not keep up', () => nodes({}, { lag: 1_001 }), ['warning node_behind']],
  ['a node that is gone', () => nodes({}, { isLive: 0, clockOffset: 1e9 }), ['warning node_gone']],
  [
    'a node that came back after a crash',
    () => nodes({ name: 'a:1', isLive: 0, lastSeenAt: now - hour }, { name: 'a:1', startedAt: now - hour + 1 }),
    [],
  ],
  [
    'a node that is gone while another one runs on',
    () => nodes({ name: 'a:1', isLive: 0, lastSeenAt: now - hour }, { name: 'b:1', startedAt: now - hour + 1 }),
    ['warning node_gone'],
  ],
  ['an upgrade that has just begun', () => nodes({}, { version: '1.1.0', startedAt: now - hour }), []],
  [
    'an upgrade that was never finished',
    () => nodes({}, { version: '1.1.0', startedAt: now - 2 * day }, { version: '1.1.0', startedAt: now }),
    ['warning node_versions'],
  ],
  ['nodes with different base URLs', () => nodes({}, { baseUrl: 'https://b/v1' }), ['error node_base_urls']],
  ['no server', () => ofServer({ isServing: false }), ['warning server_stopped']],
  ['a disk with less room than the database takes', () => disk({ free: 4e9 }), ['warning disk_nearly_full']],
  ['a disk with less than a gigabyte', () => disk({ free: 0.9e9, database: 1 }), ['warning disk_nearly_full']],
  ['a disk with next to nothing', () => disk({ free: 1e6 }), ['error disk_nearly_full']],
  ['a system that does not know its disks', () => ofServer({ disk: undefined }), []],
  [
    'no schedule and no backup',
    () => backup({ folder: undefined, newestAt: undefined }),
    ['note backup_not_scheduled'],
  ],
  ['no schedule, but a backup', () => backup({ folder: undefined }), []],
  ['a schedule without a backup', () => backup({ newestAt: undefined }), ['warning backup_missing']],
  ['a backup that was skipped once', () => backup({ newestAt: now - 47 * hour }), []],
  ['an old backup', () => backup({ newestAt: now - 49 * hour }), ['warning backup_old']],
  ['a failed backup', () => backup({ failure: 'no space' }), ['error backup_failed']],
  ['a full disk for backups', () => backup({ free: 4e9 }), ['warning backup_disk_nearly_full']],
  ['a failed archive run', () => ofServer({ isArchiveFailing: true }), ['error archive_failed']],
  [
    'an audit log that cannot be signed',
    () => ofAuditLog({ failure: 'no key', folderFailure: 'EACCES', completeAt: 0 }),
    ['error audit_log_failed'],
  ],
  [
    'an audit log that cannot be published',
    () => ofAuditLog({ folderFailure: 'EACCES' }),
    ['warning audit_log_not_published'],
  ],
  [
    'a checkpoint eleven minutes ago',
    () => ofAuditLog({ completeAt: now - 11 * 60_000 }),
    ['warning audit_checkpoint_old'],
  ],
  ['a checkpoint nine minutes ago', () => ofAuditLog({ completeAt: now - 9 * 60_000 }), []],
  [
    'a checkpoint that a witness signed nine days ago, and a folder that is out of reach',
    () => ofAuditLog({ folderFailure: 'EACCES', cosignedAt: now - 9 * 24 * hour }),
    ['warning audit_log_not_published', 'warning audit_cosignature_old'],
  ],
  ['a checkpoint that a witness signed a week ago', () => ofAuditLog({ cosignedAt: now - 7 * 24 * hour }), []],
  [
    'a master key that others can read',
    () => ofServer({ masterKeyFile: { path: '/k', mode: 0o100640 } }),
    ['error master_key_mode'],
  ],
  [
    'a master key file that is gone',
    () => ofServer({ masterKeyFile: { path: '/k', mode: undefined } }),
    ['error master_key_missing'],
  ],
  ['a master key as a value', () => ofServer({ masterKeyFile: undefined }), []],
  [
    'a certificate near its end',
    () => ofServer({ tls: { ...validFor(9), failure: undefined } }),
    ['warning tls_expires'],
  ],
  ['new TLS files that fail', () => ofServer({ tls: { ...validFor(9), failure: 'no' } }), ['error tls_files_unusable']],
  ['no TLS', () => ofServer({ tls: undefined }), []],
  ['the schema of this program', () => judgeSchema(9, 9), []],
  ['an older schema', () => judgeSchema(8, 9), ['note schema_older']],
  ['a newer schema', () => judgeSchema(10, 9), ['error schema_newer']],
]

describe('the doctor finds', () => {
  for (const [what, found, expected] of cases)
    test(`${what}: ${expected.join(', ') || 'nothing'}`, () => {
      expect(summary(found())).toEqual(expected)
    })
})

test('a certificate that lives for days is near its end in its last quarter', () => {
  const startsAt = now - 6 * day
  expect(judgeExpiry({ startsAt, expiresAt: now + 2.1 * day }, now)).toBeUndefined()
  expect(judgeExpiry({ startsAt, expiresAt: now + 1.9 * day }, now)).toMatchObject({ level: 'warning' })
})

test('a finding names what it is about: a few in its sentence, a hundred beside it, and all in its count', () => {
  const names = Array.from({ length: 250 }, (_, index) => `policy-${index}`)
  const [found] = ofOrganization({
    organization: 'acme',
    policies: { total: 250, names: new Map([['key_disabled', names]]) },
  })
  expect(found).toMatchObject({
    message:
      '250 policies in the organization "acme" cannot issue tokens because the key is disabled: "policy-0", "policy-1", "policy-2", "policy-3", "policy-4" and 245 more',
    names: names.slice(0, 100),
    count: 250,
  })
})

test('a spent budget is named with its values, some of many, and with the time of its reset', () => {
  const values = ['', 'a', 'b', 'c', 'd', 'e']
  const [found] = ofOrganization({
    spentBudgets: [
      { name: 'teams', values, count: 120, resetsAt: now },
      { name: 'all', values: [], count: 1, resetsAt: Number.POSITIVE_INFINITY },
    ],
  })
  expect(found).toMatchObject({
    message:
      '2 budgets are spent, so requests are refused: "teams" for requests without a value, "a", "b", "c", "d" and 115 more, until 2027-01-31T00:00Z; "all", for good',
    names: ['teams', 'all'],
  })
})

test('an issuer whose keys cannot be fetched says since when, why if it may, and when its tokens begin to fail', () => {
  const since = now - hour
  const says = (facts: Partial<IssuerFacts>) => ofIssuer({ fetchFailures: 1, ...facts })[0]?.message
  const cause = '"https://idp/keys" could not be fetched: nothing listens there'
  expect(says({ failing: { since, cause } })).toBe(
    `The tokens of the issuer "idp" are refused from 2027-02-01T00:00Z on, in 24 hours, if its keys cannot be fetched: the last fetch failed at 2027-01-30T23:00Z: ${cause}`,
  )
  expect(says({ keys: undefined, fetchFailures: 3, failing: { since, cause: undefined } })).toBe(
    'The keys of the issuer "idp" never arrived, so its tokens are refused: the last 3 fetches failed, the first of them at 2027-01-30T23:00Z',
  )
})

test('an upstream says since when its requests fail, what came instead, and whether they have nowhere else to go', () => {
  const messages = [
    { failing: failing(3), restsFor: 2_000 },
    { ...alone, failing: failing(3) },
    { failing: failing(1) },
  ]
  expect(messages.flatMap(upstream).map(({ message }) => message)).toEqual([
    'Requests avoid the upstream "gpu", which has failed for 9 seconds: at the last request, it responded with 502',
    'Requests to the upstream "gpu" have failed for 9 seconds: at the last request, it responded with 502. Its requests have nowhere else to go',
    'The last request to the upstream "gpu" failed 9 seconds ago: it responded with 502',
  ])
})

test('the most urgent comes first', () => {
  const found = inOrder([...policies('never_issued', 'ci'), ...keys(11, 1), ...policies('key_deleted', 'ci')])
  expect(found.map(({ level }) => level)).toEqual(['error', 'warning', 'note'])
})

test('commands quote the names that someone else chose', () => {
  const name = "$(reboot); 'x"
  const { keys: _keys, ...issuer } = fineIssuer
  const stale = { usableSeconds: -1, staleSeconds: 60 }
  const found = [
    ...ofIssuer({ ...issuer, name, keys: stale, fetchFailures: 1 }),
    ...ofOrganization({ organization: name, isEntitled: false }),
    ...upstream({ name, ca: validFor(1), failing: failing(1) }),
  ]
  expect(found).toHaveLength(4)
  for (const { action } of found) expect(action).toContain(String.raw`'$(reboot); '\''x'`)
})
