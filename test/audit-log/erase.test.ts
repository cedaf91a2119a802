// Erasing a subject: what its rows said is gone, totals and the rows of others stay, every other proof holds, and what was erased is held from
// then on to how the erasure left it.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readLoggedRows } from '../../db/read/log-rows.ts'
import { raiseAlerts } from '../../db/tables/alerts.ts'
import { listLeavesOf } from '../../db/tables/audit-log.ts'
import { insertLogRecord, listAllLogRecords } from '../../db/tables/log-records.ts'
import { createWriter, type Writer } from '../../db/write/write.ts'
import { type AuditLog, createAuditLog } from '../../src/audit-log/audit-log.ts'
import { codesOf } from '../../src/audit-log/entry.ts'
import { eraseSubject } from '../../src/audit-log/erase.ts'
import type { ErasureBody } from '../../src/audit-log/erasure-record.ts'
import { createFrontier } from '../../src/audit-log/transparency/frontier.ts'
import { hashLeafText } from '../../src/audit-log/transparency/merkle.ts'
import { createDayClosing } from '../../src/audit-log/usage-days.ts'
import { verifyDatabase } from '../../src/audit-log/verify-database.ts'
import {
  auditRow,
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
  usageRow,
} from '../support/rows.ts'

const day = 24 * 60 * 60 * 1_000
const start = Date.UTC(2026, 10, 20)
const [acme, globex] = [organizationRows('acme'), organizationRows('globex')]
const masterKey = { kind: 'value', hex: 'a'.repeat(64) } as const
const subject = { issuerId: acme.issuer.id, subject: 'alice@example.com' }
const because = 'request 4711'
const reason = {
  because,
  by: { actor: 'local', key_id: null, os_user: 'root' },
  organization_id: acme.organization.id,
  issuer_id: acme.issuer.id,
}

let own: TestDatabase
let writer: Writer
let log: AuditLog
let now: number
let epoch: string

const contextWith = (write: Writer['write'] = writer.write) => {
  const { orm, reader } = own.database
  return { orm, reader, writer: { write }, mode: 'full' as const, now: () => now }
}
const addExchange = (id: number, of: string, more = {}) =>
  writer.appendAudit({
    ...auditRow(`request ${id}`),
    ...{
      at: start,
      issuerId: acme.issuer.id,
      subject: of,
      subjectTokenId: `token of ${of}`,
      accessTokenId: `access token of ${of}`,
      clientAddress: '10.0.0.7',
    },
    ...{ recordedClaims: JSON.stringify({ email: of }), attribution: of, detail: `said by ${of}`, ...more },
  })
const addUsage = (at: number, of: string) =>
  writer.appendUsage({
    ...usageRow(`at ${at}`, acme),
    ...{ at, issuerId: acme.issuer.id, subject: of, endUser: of, sessionId: of, metadata: JSON.stringify({ of }) },
    ...{ attribution: of, accessTokenId: `access token of ${of}`, costNanodollars: 7 },
  })
const alertsOfOthers = {
  'of bob': { each: 'attribution', value: 'bob' },
  'of a key': { each: 'key', value: 'alice@example.com' },
  'of all': { percent: 80 },
}
const addAlert = (id: string, data: object) => {
  const alert = {
    id,
    organizationId: acme.organization.id,
    type: 'budget.reached' as const,
    subject: id,
    data: { ...data },
  }
  return writer.write(raiseAlerts([{ ...alert, at: now, neededUntil: now }]))
}
const all = async (sql: string) => (await own.database.client.execute(sql)).rows
const verify = () => verifyDatabase(own.database.orm, { epoch, mode: 'full' })
const bodies = async () =>
  (await Array.fromAsync(listAllLogRecords(own.database.orm, 'erasure'))).map(
    ({ body }) => JSON.parse(body) as ErasureBody,
  )
const textOfAll = async () =>
  JSON.stringify([
    await all('select * from exchange_audit'),
    await all('select * from usage'),
    await all('select * from log_records'),
  ])

beforeEach(async () => {
  now = start + day + 60 * 60_000
  own = await createDatabase()
  writer = createWriter(own.database, () => {})
  await writer.write([...insertOrganizationRows(own.database, acme), ...insertOrganizationRows(own.database, globex)])
  const auditLog = { mode: 'full', folder: undefined } as const
  log = createAuditLog({ database: own.database, writer, auditLog, masterKey, now: () => now, log: () => {} })
  for (let id = 1; id <= 6; id += 1) await addExchange(id, id % 2 === 0 ? 'alice@example.com' : 'bob')
  await addExchange(7, 'alice@example.com', { issuerId: globex.issuer.id })
  for (let id = 1; id <= 6; id += 1) await addUsage(start + id, id % 2 === 0 ? 'alice@example.com' : 'bob')
  for (const of of ['bob', 'alice@example.com']) await addUsage(start + day, of)
  await addAlert('by attribution', { each: 'attribution', value: 'alice@example.com' })
  await addAlert('by session', { each: 'session', value: 'alice@example.com' })
  for (const [name, data] of Object.entries(alertsOfOthers)) await addAlert(name, data)
  epoch = (await log.checkpoint()).epoch
})
afterEach(async () => {
  await writer.close()
  await own.close()
})

describe('a subject that is erased', () => {
  test('is in no row, no record and no salt, while rows of others, totals and the log stay', async () => {
    const others = await all(
      "select * from exchange_audit where subject = 'bob' or issuer_id = 'globex-issuer' order by id",
    )
    expect(await eraseSubject(contextWith(), subject, reason)).toEqual({ exchanges: 3, usage: 4, alerts: 2 })
    await log.checkpoint()
    expect((await textOfAll()).split('alice@example.com').length - 1).toBe(
      JSON.stringify(others).split('alice@example.com').length - 1,
    )
    expect(
      await all("select * from exchange_audit where subject = 'bob' or issuer_id = 'globex-issuer' order by id"),
    ).toEqual(others)
    // Also of requests that the totals did not include before.
    expect(await all('select attribution, sum(requests) as requests from hour_totals group by 1 order by 1')).toEqual([
      { attribution: 'alice@example.com', requests: 4 },
      { attribution: 'bob', requests: 4 },
    ] as never)
    const leaves = await listLeavesOf(own.database.orm, codesOf('exchanges'), [2, 4, 6])
    expect(await all('select leaf from log_entries where salt is null')).toEqual(
      leaves.map((leaf) => ({ leaf })) as never,
    )
    expect(await verify()).toMatchObject({ problems: [], erased: 3, days: 1, uncovered: 0 })
    const [row] = await all('select * from exchange_audit where id = 2')
    expect(row).toMatchObject({
      request_id: 'request 2',
      reason: 'policy_unknown',
      issuer_id: acme.issuer.id,
      detail: null,
    })
  })

  test('is in no alert of a budget for each attribution or session, while those of others stay', async () => {
    await eraseSubject(contextWith(), subject, reason)
    const rows = await all('select id, data from alerts')
    expect(Object.fromEntries(rows.map(({ id, data }) => [String(id), JSON.parse(String(data))]))).toEqual({
      'by attribution': { each: 'attribution', value: null },
      'by session': { each: 'session', value: null },
      ...alertsOfOthers,
    })
  })

  test('leaves records that say who erased how much and why', async () => {
    await eraseSubject(contextWith(), subject, reason)
    const found = await bodies()
    expect(found.map(({ exchanges, usage }) => [exchanges, usage])).toEqual([
      [3, 0],
      [0, 3],
      [0, 1],
    ])
    expect(found[0]).toMatchObject(reason)
    expect(found[1]?.days).toEqual([{ day: '2026-11-20', from: 1, root: expect.stringMatching(/^[0-9a-f]{64}$/) }])
    expect(found[2]?.days).toEqual([])
  })

  test('has no rows in days that are closed later', async () => {
    await eraseSubject(contextWith(), subject, reason)
    now += day
    await createDayClosing({ database: own.database, writer, now: () => now })()
    expect(await verify()).toMatchObject({ problems: [], days: 2 })
  })

  test('can have new rows, and be erased again', async () => {
    await eraseSubject(contextWith(), subject, reason)
    await addExchange(8, 'alice@example.com')
    expect(await eraseSubject(contextWith(), subject, reason)).toEqual({ exchanges: 1, usage: 0, alerts: 0 })
    expect(await eraseSubject(contextWith(), subject, reason)).toEqual({ exchanges: 0, usage: 0, alerts: 0 })
    await log.checkpoint()
    expect(await verify()).toMatchObject({ problems: [], erased: 4 })
  })
})

test('an erasure reads and commits nothing once a server that stops waits no longer, and another completes it', async () => {
  let commits = 0
  const write: Writer['write'] = async (statements) => {
    await writer.write(statements)
    commits += 1
  }
  const stopped = 'The server stopped before everything was erased'
  // The first commit is that of the alerts, the second that of the exchanges.
  const erased = eraseSubject({ ...contextWith(write), isOver: () => commits === 2 }, subject, reason)
  await expect(erased).rejects.toThrow(stopped)
  expect([commits, await bodies()]).toMatchObject([2, [{ exchanges: 3, usage: 0 }]])
  await expect(eraseSubject({ ...contextWith(write), isOver: () => true }, subject, reason)).rejects.toThrow(stopped)
  expect(commits).toBe(2)
  expect(await eraseSubject(contextWith(), subject, reason)).toMatchObject({ exchanges: 0, usage: 4 })
  await log.checkpoint()
  expect(await verify()).toMatchObject({ problems: [] })
})

test('an erasure that is interrupted after any commit is completed by another', async () => {
  for (let after = 0; ; after += 1) {
    let left = after
    const write: Writer['write'] = (statements) => {
      if (left-- <= 0) return Promise.reject(new Error('killed'))
      return writer.write(statements)
    }
    const isWhole = await eraseSubject(contextWith(write), subject, reason).then(
      () => true,
      () => false,
    )
    if (isWhole) break
    expect((await verify()).problems).toEqual([])
  }
  await log.checkpoint()
  expect(await verify()).toMatchObject({ problems: [], erased: 3 })
  expect(await all("select id from usage where subject = 'alice@example.com'")).toEqual([])
})

test('a record that comes in between makes the erasure plan again', async () => {
  let isFirst = true
  const write: Writer['write'] = async (statements) => {
    if (isFirst) await writer.write([insertLogRecord(own.database.orm, 'start', now, {})])
    isFirst = false
    return writer.write(statements)
  }
  expect(await eraseSubject(contextWith(write), subject, reason)).toEqual({ exchanges: 3, usage: 4, alerts: 2 })
  await log.checkpoint()
  expect((await verify()).problems).toEqual([])
})

test('a day is not closed with rows that were read before an erasure', async () => {
  now += day
  let isFirst = true
  const write: Writer['write'] = async (statements) => {
    if (isFirst) await eraseSubject(contextWith(), subject, reason)
    isFirst = false
    return writer.write(statements)
  }
  const close = createDayClosing({ database: own.database, writer: { write }, now: () => now })
  await close()
  await close()
  expect((await bodies()).length).toBe(3)
  await log.checkpoint()
  expect(await verify()).toMatchObject({ problems: [], days: 2 })
})

test('a day that another node closes before the commit has the root without the rows', async () => {
  now += day
  let usageCommits = 0
  const write: Writer['write'] = async (statements) => {
    const isUsage = statements.some((each) => 'toSQL' in each && each.toSQL().sql.startsWith('update usage'))
    usageCommits += Number(isUsage)
    // The first is of the day that is closed already, the second of the open one.
    if (isUsage && usageCommits === 2) await createDayClosing({ database: own.database, writer, now: () => now })()
    return writer.write(statements)
  }
  await eraseSubject(contextWith(write), subject, reason)
  expect(usageCommits).toBe(3)
  await log.checkpoint()
  expect(await verify()).toMatchObject({ problems: [], days: 2 })
})

test('who has the database cannot try subjects until the root of the day fits: the id of the access token is gone', async () => {
  const { orm } = own.database
  await eraseSubject(contextWith(), subject, reason)
  const [record] = await Array.fromAsync(listAllLogRecords(orm, 'usage_day'))
  const guess = 'alice@example.com'
  const rootWith = async (more: object) => {
    const tree = createFrontier()
    for (const { line } of await readLoggedRows(orm, 'usage', { after: 0, last: 6, most: 10 })) {
      const row = JSON.parse(line)
      const of = { attribution: guess, end_user: guess, session_id: guess, metadata: JSON.stringify({ of: guess }) }
      const filled = row.subject === null ? { ...row, subject: guess, ...of, ...more } : row
      tree.add(hashLeafText(JSON.stringify(filled)))
    }
    return Buffer.from(tree.root()).toString('hex')
  }
  const { root } = JSON.parse(record?.body ?? '{}') as { root: string }
  expect(await rootWith({})).not.toBe(root)
  expect(await rootWith({ access_token_id: `access token of ${guess}` })).toBe(root)
  expect(
    await all("select access_token_id from exchange_audit where subject is null and issuer_id = 'acme-issuer'"),
  ).toEqual([2, 4, 6].map(() => ({ access_token_id: null })) as never)
})

describe('what was erased', () => {
  const tamper = async (sql: string) => {
    const triggers = await all("select name from sqlite_master where type = 'trigger'")
    const statements = [...triggers.map(({ name }) => `drop trigger ${name}`), sql]
    await writer.write(statements.map((text) => ({ toSQL: () => ({ sql: text, params: [] }) })))
  }
  test.each([
    ['an erased exchange', "update exchange_audit set outcome = 'issued' where id = 4", 'erased rows are not as'],
    ['a request of an erased day', 'update usage set cost_nanodollars = 1 where id = 4', 'the ledger of 2026-11-20'],
    [
      'a request of others in that day',
      'update usage set cost_nanodollars = 1 where id = 3',
      'the ledger of 2026-11-20',
    ],
    [
      'the record of the erasure',
      'update log_records set body = \'{"leaves":[],"days":[]}\' where kind = \'erasure\'',
      'the salt is gone',
    ],
  ])('%s cannot be changed unnoticed', async (_, sql, problem) => {
    await eraseSubject(contextWith(), subject, reason)
    await log.checkpoint()
    await tamper(sql)
    expect((await verify()).problems).toContainEqual(
      expect.objectContaining({ problem: expect.stringContaining(problem) as string }),
    )
  })

  test.each([
    ['a subject that comes back', "update exchange_audit set subject = 'alice@example.com'"],
    ['another outcome', "update exchange_audit set outcome = 'issued', subject = null"],
    ['another cost', 'update usage set cost_nanodollars = 1'],
  ])('the database refuses %s', async (_, sql) => {
    await eraseSubject(contextWith(), subject, reason)
    await expect(writer.write([{ toSQL: () => ({ sql, params: [] }) }])).rejects.toThrow('never changed')
  })
})
