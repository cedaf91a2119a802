// A database that an older program has made and filled is brought up to date: every row stays as it was, and new ones can be made.
import { Database as OtherSqlite } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { getTableColumns, getTableName } from 'drizzle-orm'
import { openDatabase } from '../../../db/file/open.ts'
import { migrations } from '../../../db/schema/migrate.ts'
import { exchangeAudit, usage } from '../../../db/schema/record-schema.ts'
import { apiKeys, issuers, organizations, policies, users, workspaces } from '../../../db/schema/schema.ts'
import { insertPresetVersions } from '../../../db/tables/presets.ts'
import { createWriter } from '../../../db/write/write.ts'
import { readDatabaseFile } from '../../support/database-file.ts'
import { temporaryFolder } from '../../support/latchkey.ts'
import { auditRow, organizationRows, usageRow } from '../../support/rows.ts'

const acme = organizationRows('acme')
const filled = [
  { table: organizations, row: acme.organization },
  { table: workspaces, row: acme.workspace },
  { table: users, row: acme.user },
  { table: apiKeys, row: acme.key },
  { table: issuers, row: acme.issuer },
  { table: policies, row: acme.policy },
  { table: exchangeAudit, row: auditRow('old') },
  { table: usage, row: usageRow('old', acme) },
].map(({ table, row }) => ({
  name: getTableName(table),
  values: Object.entries(getTableColumns(table))
    .filter(([field]) => field in row)
    .map(([field, { name }]) => [name, (row as Record<string, unknown>)[field]] as const),
}))

/** A file as the program had it when `version` was its latest migration, with a row in each table that it had. Gives the columns of each. */
function createOldFile(path: string, version: number): Map<string, string[]> {
  const database = new OtherSqlite(path, { create: true, strict: true })
  database.run('pragma journal_mode = wal')
  database.run(
    'create table schema_migrations (version integer primary key, name text not null, applied_at integer not null) strict',
  )
  for (const migration of migrations.filter((migration) => migration.version <= version)) {
    for (const statement of migration.statements) database.run(statement)
    database.run('insert into schema_migrations values (?, ?, 1)', [migration.version, migration.name])
  }
  const columnsOf = new Map<string, string[]>()
  for (const { name, values } of filled) {
    const columns = (database.query(`select name from pragma_table_info('${name}')`).all() as { name: string }[]).map(
      (column) => column.name,
    )
    columnsOf.set(name, columns)
    const known = values.filter(([column]) => columns.includes(column))
    const places = known.map(() => '?').join(', ')
    database.run(
      `insert into ${name} (${known.map(([column]) => column).join(', ')}) values (${places})`,
      known.map(([, value]) => (typeof value === 'boolean' ? Number(value) : (value as string | number | null))),
    )
  }
  database.close()
  return columnsOf
}

test.each(migrations.slice(0, -1).map(({ version, name }) => [version, name] as const))(
  'a file of version %i (%s) keeps its rows',
  async (version) => {
    const folder = temporaryFolder()
    const path = join(folder.path, 'latchkey.db')
    const columnsOf = createOldFile(path, version)
    const queries = [...columnsOf].map(([name, columns]) => `select ${columns.join(', ')} from ${name}`)
    const before = readDatabaseFile(path, ...queries)
    expect(before.map((rows) => rows.length)).toEqual(filled.map(() => 1))

    const database = await openDatabase({ path, create: false, synchronous: 'normal' })
    if ('refused' in database) throw new Error(database.message)
    expect(database.migratedFrom).toBe(version)
    const writer = createWriter(database, () => {})
    const [preset, presetVersion] = [{ id: 'preset', slug: 'new', name: 'new' }, { id: 'version' }]
    const common = { creatorId: acme.user.id, createdAt: 1 }
    const numbers = { designatedVersion: 1, latestVersion: 1, updatedAt: 1 }
    const within = { organizationId: acme.organization.id, workspaceId: acme.workspace.id }
    const status = { description: null, status: 'active', statusUpdatedAt: null } as const
    await writer.write(
      insertPresetVersions(
        [{ ...preset, ...within, ...status, ...common, ...numbers, managedBy: null }],
        { at: 1, versionsMore: new Map() },
        [{ ...presetVersion, presetId: preset.id, version: 1, config: '{}', systemPrompt: null, ...common }],
      ),
    )
    await writer.appendUsage(usageRow('new', acme))
    const [applied, foreign, unbounded, ...after] = readDatabaseFile(
      path,
      'select version, name from schema_migrations order by version',
      'pragma foreign_key_check',
      `select api_keys.allowed_presets as of_key, policies.allowed_models as models, policies.allowed_presets as presets
        from api_keys join policies on key_id = api_keys.id`,
      ...queries.map((query) => (query.endsWith(' usage') ? `${query} where request_id = 'old'` : query)),
    )
    expect(applied).toEqual(migrations.map(({ version, name }) => ({ version, name })))
    expect(foreign).toEqual([])
    // Who could use every model and preset still can.
    expect(unbounded).toEqual([{ of_key: null, models: null, presets: null }])
    expect(after).toEqual(before)
    await writer.close()
    await database.close()
    folder.remove()
  },
)

/** When each was last used, after a file of this version with an exchange and a request was brought up to date. */
const readLastUses = (version: number, more: string[] = []) =>
  readUpdated(version, more, 'select id, used_at from last_uses order by used_at, id')

async function readUpdated(version: number, more: string[], query: string): Promise<unknown> {
  const folder = temporaryFolder()
  const path = join(folder.path, 'latchkey.db')
  createOldFile(path, version)
  const old = new OtherSqlite(path)
  for (const statement of more) old.run(statement)
  old.close()
  const database = await openDatabase({ path, create: false, synchronous: 'normal' })
  if ('refused' in database) throw new Error(database.message)
  const [rows] = readDatabaseFile(path, query)
  await database.close()
  folder.remove()
  return rows
}

const { id: policyId } = acme.policy
const used = (id: string, usedAt: number) => ({ id, used_at: usedAt })
const exchangeOf = (ids: string, at: number, outcome = 'issued') => `insert into exchange_audit
  (at, request_id, outcome, policy_id, issuer_id, key_id) select ${at}, 'r', '${outcome}', ${ids}`

test('what was used before last uses were recorded has its last use from audit and ledger', async () => {
  const ids = `'${policyId}', '${acme.issuer.id}', '${acme.key.id}'`
  const requestAt = usageRow('old', acme).at
  const rows = await readLastUses(4, [exchangeOf(ids, 5), exchangeOf(ids, 9), exchangeOf(ids, 10, 'refused')])
  expect(rows).toEqual(
    [used(policyId, 9), used(acme.issuer.id, 9), used(acme.key.id, Math.max(9, requestAt))].toSorted(
      (one, other) => one.used_at - other.used_at || (one.id < other.id ? -1 : 1),
    ),
  )
})

test('a newer use that was recorded stays, and what was deleted gets none', async () => {
  const ids = `'${policyId}', '${acme.issuer.id}', 'gone'`
  const recorded = `insert into last_uses (id, used_at) values ('${policyId}', 20), ('${acme.key.id}', 1e15)`
  const deleted = `update issuers set deleted_at = 1 where id = '${acme.issuer.id}'`
  const rows = await readLastUses(20, [exchangeOf(ids, 9), recorded, deleted])
  expect(rows).toEqual([used(policyId, 20), used(acme.key.id, 1e15)])
})

test('management keys of a file without roles become admins, and read-only ones viewers', async () => {
  const folder = temporaryFolder()
  const path = join(folder.path, 'latchkey.db')
  createOldFile(path, 31)
  const database = new OtherSqlite(path, { strict: true })
  for (const kind of ['management', 'management_read_only'])
    database.run(
      `insert into api_keys (id, organization_id, workspace_id, owner_id, name, kind, hash, label, created_at, updated_at)
        select ?1, organization_id, workspace_id, owner_id, ?1, ?1, substr(?1 || hash, 1, 64), label, 1, 1 from api_keys limit 1`,
      [kind],
    )
  database.close()
  const opened = await openDatabase({ path, create: false, synchronous: 'normal' })
  if ('refused' in opened) throw new Error(opened.message)
  await opened.close()
  expect(readDatabaseFile(path, 'select kind, role from api_keys order by kind')).toEqual([
    [
      { kind: 'inference', role: null },
      { kind: 'management', role: 'admin' },
      { kind: 'management_read_only', role: 'viewer' },
    ],
  ])
  folder.remove()
})

test('the totals of hours get the requests whose cost is unknown, without those that failed', async () => {
  const changed = ['request_id', 'status', 'cost_nanodollars', 'model']
  const names = (filled.find(({ name }) => name === 'usage')?.values ?? [])
    .map(([name]) => name)
    .filter((name) => !changed.includes(name))
    .join(', ')
  const rowLike = (id: string, status: number, cost: string, model: string) =>
    `insert into usage (request_id, status, cost_nanodollars, model, ${names}) select '${id}', ${status}, ${cost}, ${model}, ${names} from usage where id = 1`
  const hours = `insert into usage_hours select at / 3600000, key_id, '', '', coalesce(model, ''), count(*), 0, 0 from usage group by 1, 2, 5`
  const rows = [
    rowLike('a', 200, 'null', 'model'),
    rowLike('b', 500, 'null', 'model'),
    rowLike('c', 200, '7', "'other'"),
  ]
  const query = 'select model, requests, requests_without_cost as unknown from hour_totals order by model'
  expect(await readUpdated(46, [...rows, hours], query)).toEqual([
    { model: 'echo', requests: 3, unknown: 2 },
    { model: 'other', requests: 1, unknown: 0 },
  ])
})

test('the totals of hours get their tokens, unless a request of the hour is no longer in the ledger', async () => {
  const sum = `insert into hour_totals (hour, key_id, policy_id, attribution, model, requests, total_tokens, cost_nanodollars)
    select at / 3600000, key_id, '', '', 'echo', count(*), 0, 0 from usage group by 1, 2`
  const gone = `insert into hour_totals (hour, key_id, policy_id, attribution, model, requests, total_tokens, cost_nanodollars)
    select at / 3600000, key_id, '', '', 'gone', 2, 0, 0 from usage`
  const summed = 'insert into usage_summed (id, usage_id) select 1, max(id) from usage'
  const query = 'select model, prompt_tokens as prompt, completion_tokens as completion from hour_totals order by model'
  expect(await readUpdated(50, [`update usage set model = 'echo'`, sum, gone, summed], query)).toEqual([
    { model: 'echo', prompt: 1, completion: 2 },
    { model: 'gone', prompt: null, completion: null },
  ])
})

test('the totals of days get the requests whose cost is unknown from those of their hours', async () => {
  const days = `insert into day_totals (key_id, day, requests, prompt_tokens, completion_tokens, total_tokens, cost_nanodollars)
    values ('one', 1, 9, 0, 0, 0, 0), ('one', 2, 9, 0, 0, 0, 0), ('two', 1, 9, 0, 0, 0, 0)`
  const hours = `insert into hour_totals (hour, key_id, policy_id, attribution, model, requests, total_tokens, cost_nanodollars, requests_without_cost)
    values (24, 'one', '', '', 'a', 1, 0, 0, 1), (47, 'one', '', '', 'b', 2, 0, 0, 2), (48, 'one', '', '', 'a', 4, 0, 0, 4), (24, 'two', '', '', 'a', 3, 0, 0, 0)`
  const query = `select key_id, day, requests_without_cost as unknown from day_totals where key_id in ('one', 'two') order by 1, 2`
  expect(await readUpdated(51, ['delete from day_totals', 'delete from hour_totals', days, hours], query)).toEqual([
    { key_id: 'one', day: 1, unknown: 3 },
    { key_id: 'one', day: 2, unknown: 4 },
    { key_id: 'two', day: 1, unknown: 0 },
  ])
})
