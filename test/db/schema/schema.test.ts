// The migrated tables against schema.ts, and what the database itself refuses whatever the program does.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { getTableColumns, is } from 'drizzle-orm'
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core'
import * as alerts from '../../../db/schema/alert-schema.ts'
import * as budgets from '../../../db/schema/budget-schema.ts'
import * as bundles from '../../../db/schema/bundle-schema.ts'
import * as log from '../../../db/schema/log-schema.ts'
import * as shared from '../../../db/schema/node-schema.ts'
import * as policyParts from '../../../db/schema/policy-parts.ts'
import * as records from '../../../db/schema/record-schema.ts'
import * as schema from '../../../db/schema/schema.ts'
import * as served from '../../../db/schema/served-schema.ts'
import * as upstreams from '../../../db/schema/upstream-schema.ts'
import { insertApiKey } from '../../../db/tables/api-keys.ts'
import { insertIssuer } from '../../../db/tables/issuers.ts'
import { insertOrganization, insertUser, insertWorkspace } from '../../../db/tables/organizations.ts'
import { insertPolicy, updatePolicy } from '../../../db/tables/policies.ts'
import { insertion, type Statement } from '../../../db/write/rows.ts'
import { createWriter, type Writer } from '../../../db/write/write.ts'
import { onFile } from '../../support/file-only.ts'
import {
  auditRow,
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
  usageRow,
} from '../../support/rows.ts'

const tables = Object.values({
  ...schema,
  ...records,
  ...bundles,
  ...shared,
  ...log,
  ...alerts,
  ...budgets,
  ...policyParts,
  ...served,
  ...upstreams,
}).filter((value) => is(value, SQLiteTable))
const acme = organizationRows('acme')
const other = organizationRows('other')

let own: TestDatabase
let writer: Writer
beforeAll(async () => {
  own = await createDatabase()
  writer = createWriter(own.database, () => {})
  await writer.write([...insertOrganizationRows(own.database, acme), ...insertOrganizationRows(own.database, other)])
  await Promise.all([writer.appendAudit(auditRow('kept')), writer.appendUsage(usageRow('kept', acme))])
})
afterAll(async () => {
  await writer.close()
  await own.close()
})

async function rows(sql: string): Promise<unknown[][]> {
  const answer = await own.database.client.execute(sql)
  return answer.rows.map((row) => answer.columns.map((_, index) => row[index]))
}

async function expectRefused(statement: Statement, message: string): Promise<void> {
  await expect(writer.write([statement])).rejects.toThrow(message)
}

/** Nodes of older programs write them until all are upgraded (0047_usage_summed.sql). */
const former = ['usage_days', 'usage_hours']

test('every table of the database is in schema.ts, and none more', async () => {
  const found = await rows("select name from pragma_table_list where type = 'table' and name not like 'sqlite_%'")
  const names = found.map(([name]) => String(name)).filter((name) => ![...former, 'schema_migrations'].includes(name))
  expect(names.toSorted()).toEqual(tables.map((table) => getTableConfig(table).name).toSorted())
})

test('the README describes every table, and no other', () => {
  const readme = readFileSync(join(import.meta.dirname, '../../../db/README.md'), 'utf8')
  const told = [...readme.matchAll(/^\| `(\w+)` +\|/gm)].map(([, name]) => String(name))
  const described = tables.map((table) => getTableConfig(table).name)
  expect(told.toSorted()).toEqual([...described, 'schema_migrations'].toSorted())
})

for (const table of tables) {
  const { name, columns, primaryKeys } = getTableConfig(table)
  const keyed = primaryKeys.flatMap((key) => key.columns.map((column) => column.name))
  test(`${name} has the columns, types, nulls and primary key that schema.ts says`, async () => {
    const described = columns.map((column) => [
      column.name,
      column.getSQLType(),
      column.notNull || column.primary,
      column.primary || keyed.includes(column.name),
    ])
    const found = await rows(`select name, lower(type), "notnull", pk from pragma_table_info('${name}')`)
    // An integer primary key is never null, though SQLite does not say so.
    const migrated = found.map(([column, type, notNull, pk]) => [column, type, notNull === 1 || pk !== 0, pk !== 0])
    expect(migrated).toEqual(described)
    expect(await rows(`select strict from pragma_table_list where name = '${name}'`)).toEqual([[1]])
  })

  test(`${name} takes exactly the values that schema.ts enumerates`, async () => {
    const [definition] = await rows(`select sql from sqlite_schema where type = 'table' and name = '${name}'`)
    const enumerated = [
      ...String(definition).matchAll(
        /(\w+) text[^,]*?check \(\1 (?:in \(([^)]*)\)|(= '[^']*'(?: or \1 = '[^']*')*))\)/g,
      ),
    ]
    const checked = enumerated.map(([, column, list, one]) => [
      column,
      [...(list ?? one ?? '').matchAll(/'(.*?)'/g)].map(([, value]) => value),
    ])
    const described = Object.values(getTableColumns(table)).filter((column) => column.enumValues !== undefined)
    expect(checked).toEqual(described.map((column) => [column.name, column.enumValues]))
  })
}

test('a policy cannot bind an issuer or a key of another organization', async () => {
  const { orm } = own.database
  const draft = { ...acme.policy, id: 'foreign', name: 'foreign' }
  await expectRefused(insertPolicy(orm, { ...draft, issuerId: other.issuer.id }), 'FOREIGN KEY')
  await expectRefused(insertPolicy(orm, { ...draft, keyId: other.key.id }), 'FOREIGN KEY')
  await expectRefused(insertPolicy(orm, { ...draft, organizationId: other.organization.id }), 'FOREIGN KEY')
  await expectRefused(updatePolicy(orm, acme.policy.id, { issuerId: other.issuer.id }), 'FOREIGN KEY')
  await expectRefused(updatePolicy(orm, acme.policy.id, { keyId: other.key.id }), 'FOREIGN KEY')
  expect(await rows("select count(*) from policies where id = 'foreign'")).toEqual([[0]])
})

test('a key cannot be in a workspace or belong to a user of another organization', async () => {
  const { orm } = own.database
  const draft = { ...acme.key, id: 'foreign', name: 'foreign', hash: 'f'.repeat(64) }
  await expectRefused(insertApiKey(orm, { ...draft, workspaceId: other.workspace.id }), 'FOREIGN KEY')
  await expectRefused(insertApiKey(orm, { ...draft, userId: other.user.id }), 'FOREIGN KEY')
})

test('what others refer to cannot be deleted', async () => {
  for (const name of ['organizations', 'workspaces', 'users', 'api_keys', 'issuers']) {
    const deletion = { toSQL: () => ({ sql: `delete from ${name}`, params: [] }) }
    await expectRefused(deletion, 'FOREIGN KEY')
  }
})

test('names are unique within an organization, and free again after a deletion', async () => {
  const { orm } = own.database
  const again = { id: 'again', name: 'again' }
  await expectRefused(insertOrganization(orm, { ...acme.organization, id: 'again' }), 'organizations.name')
  await expectRefused(insertWorkspace(orm, { ...acme.workspace, id: 'again' }), 'workspaces.name')
  await expectRefused(insertUser(orm, { ...acme.user, id: 'again' }), 'users.name')
  await expectRefused(insertApiKey(orm, { ...acme.key, id: 'again', hash: 'a'.repeat(64) }), 'api_keys.name')
  await expectRefused(insertIssuer(orm, { ...acme.issuer, id: 'again', issuerUrl: 'https://else' }), 'issuers.name')
  await expectRefused(insertPolicy(orm, { ...acme.policy, id: 'again' }), 'policies.name')
  await expectRefused(insertIssuer(orm, { ...acme.issuer, ...again }), 'issuers.issuer_url')
  await expectRefused(insertApiKey(orm, { ...acme.key, ...again }), 'api_keys.hash')

  const deleted = { deletedAt: 2, name: 'gone' }
  await writer.write([
    insertApiKey(orm, { ...acme.key, ...deleted, id: 'gone-1', hash: '1'.repeat(64) }),
    insertApiKey(orm, { ...acme.key, name: 'gone', id: 'gone-2', hash: '2'.repeat(64) }),
    insertIssuer(orm, { ...acme.issuer, ...deleted, id: 'gone-1' }),
    insertPolicy(orm, { ...acme.policy, ...deleted, id: 'gone-1' }),
    insertPolicy(orm, { ...acme.policy, name: 'gone', id: 'gone-2' }),
  ])
})

test('values that no program of ours writes are refused', async () => {
  const { orm } = own.database
  const policy = { ...acme.policy, id: 'wrong', name: 'wrong' }
  await expectRefused(insertPolicy(orm, { ...policy, subject: null }), 'CHECK')
  await expectRefused(insertPolicy(orm, { ...policy, maxLifetimeSeconds: 901 }), 'CHECK')
  await expectRefused(insertPolicy(orm, { ...policy, maxLifetimeSeconds: 59 }), 'CHECK')
  const issuer = { ...acme.issuer, id: 'wrong', name: 'wrong', issuerUrl: 'https://wrong' }
  await expectRefused(insertIssuer(orm, { ...issuer, keySource: 'jwks' }), 'CHECK')
  await expectRefused(insertIssuer(orm, { ...issuer, jwksUrl: 'https://wrong/jwks' }), 'CHECK')
  const key = { ...acme.key, id: 'wrong', name: 'wrong' }
  await expectRefused(insertApiKey(orm, { ...key, hash: 'short' }), 'CHECK')
  const text = { toSQL: () => ({ sql: 'update policies set max_lifetime_seconds = ?', params: ['soon'] }) }
  await expectRefused(text, 'cannot store TEXT value in INTEGER column')
})

async function expectKept(statementOn: (table: string) => string, does: string): Promise<void> {
  for (const [table, kind] of [
    ['exchange_audit', 'audit'],
    ['usage', 'usage'],
  ] as const) {
    await expectRefused({ toSQL: () => ({ sql: statementOn(table), params: [] }) }, `${kind} rows are never ${does}`)
    expect(await rows(`select request_id, at from ${table}`)).toEqual([['kept', 1]])
  }
}

test('audit and usage rows are never deleted', () => expectKept((table) => `delete from ${table}`, 'deleted'))

test('audit and usage rows are never changed', () => expectKept((table) => `update ${table} set at = 2`, 'changed'))

onFile('recursive triggers').test('audit and usage rows are never replaced', () =>
  expectKept((table) => `insert or replace into ${table} select * from ${table}`, 'deleted'),
)

test('a usage row names a key that exists', async () => {
  const missing = { ...acme, key: { ...acme.key, id: 'missing' } }
  await expect(writer.appendUsage(usageRow('lost', missing))).rejects.toThrow('FOREIGN KEY')
  expect(await rows("select count(*) from usage where request_id = 'lost'")).toEqual([[0]])
})

test('a usage row has a unit that is known, or none', async () => {
  for (const unit of records.usageUnits) await writer.appendUsage({ ...usageRow(unit, acme), unit, units: 1 })
  await expect(writer.appendUsage({ ...usageRow('lost', acme), unit: 'word' as 'image' })).rejects.toThrow('CHECK')
  const found = await rows('select request_id, unit from usage where units = 1 order by id')
  expect(found).toEqual(records.usageUnits.map((unit) => [unit, unit]))
})

// A check for one of three words with `in` makes a table of them for each row.
onFile('steps of a statement').test.each([records.usage, records.exchangeAudit, records.usedSubjectTokens])(
  'a row that a request waits for is inserted without a temporary table',
  async (table) => {
    const { single, columns } = insertion(table)
    const steps = await own.database.client.execute({ sql: `explain ${single}`, args: columns.map(() => null) })
    const opcodes = steps.rows.map(({ opcode }) => String(opcode))
    expect(opcodes).toContain('MakeRecord')
    expect(opcodes).not.toContain('OpenEphemeral')
  },
)
