// Exchanges that moved into archives: the file has what opens their leaves, the database no longer does, each can still be proven, and an
// auditor compares the file with the log.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { readLoggedRows } from '../../db/read/log-rows.ts'
import { listAuditKeys } from '../../db/tables/audit-checkpoints.ts'
import { readLogEntries } from '../../db/tables/audit-log.ts'
import { createWriter, type Writer } from '../../db/write/write.ts'
import { type ArchiveContext, archiveRows } from '../../src/archive/archive-rows.ts'
import { findArchivedExchange } from '../../src/archive/find-exchange.ts'
import { readSaltedLine } from '../../src/archive/salted-lines.ts'
import { verifierOf } from '../../src/audit-log/audit-key.ts'
import { type AuditLog, createAuditLog } from '../../src/audit-log/audit-log.ts'
import { commitTo } from '../../src/audit-log/entry.ts'
import { proveArchived } from '../../src/audit-log/prove.ts'
import { checkRowProof } from '../../src/audit-log/row-proof.ts'
import { verifyDatabase } from '../../src/audit-log/verify-database.ts'
import { verifyFolder } from '../../src/audit-log/verify-folder.ts'
import { requestIdAt } from '../support/archives.ts'
import { temporaryFolder } from '../support/latchkey.ts'
import {
  auditRow,
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
} from '../support/rows.ts'

const masterKey = { kind: 'value', hex: 'a'.repeat(64) } as const
const start = Date.UTC(2026, 10, 1)
const rows = 600
const archived = 550

let own: TestDatabase
let writer: Writer
let folder: ReturnType<typeof temporaryFolder>
let log: AuditLog
beforeEach(async () => {
  own = await createDatabase()
  folder = temporaryFolder()
  writer = createWriter(own.database, () => {})
  await writer.write(insertOrganizationRows(own.database, organizationRows('acme')))
  const auditLog = { mode: 'full', folder: join(folder.path, 'log') } as const
  log = createAuditLog({ database: own.database, writer, auditLog, masterKey, now: () => start, log: () => {} })
  await log.checkpoint()
  const added = Array.from({ length: rows }, (_, id) => {
    const at = start + id * 1_000
    return { ...auditRow(requestIdAt(at)), at, subject: `workload ${id}`, detail: 'a "b" \\ é 😀 \u0001' }
  })
  await Promise.all(added.map((row) => writer.appendAudit(row)))
  await log.checkpoint()
})
afterEach(async () => {
  await writer.close()
  await own.close()
  folder.remove()
})

async function archive(): Promise<string> {
  const { database } = own
  const { orm, reader } = database
  const rest = async () => {}
  const context: ArchiveContext = { database, node: null, orm, reader, writer, rest, now: () => start, log: () => {} }
  const due = {
    kind: 'exchanges',
    before: start + archived * 1_000,
    folder: folder.path,
    by: { kind: 'local' },
  } as const
  await archiveRows(context, due, { onProgress: () => {}, onArchived: () => {} })
  return join(folder.path, readdirSync(folder.path).find((name) => name.endsWith('.gz')) ?? '')
}
const linesIn = (file: string) => gunzipSync(readFileSync(file)).toString().trimEnd().split('\n')

test('their lines open their leaves, and the database has no salts of them any more', async () => {
  const { orm } = own.database
  const before = await readLoggedRows(orm, 'exchanges', { after: 0, most: rows })
  const lines = linesIn(await archive()).map((line) => readSaltedLine(line))
  expect(lines.map((each) => each?.line)).toEqual(before.slice(0, archived).map(({ line }) => line))
  for (const each of [lines[0], lines[17], lines.at(-1)]) {
    const [entry] = await readLogEntries(orm, each?.leaf ?? -1, (each?.leaf ?? -1) + 1)
    expect(commitTo(each?.salt ?? Buffer.alloc(0), each?.line ?? '').equals(entry?.commitment ?? Buffer.alloc(0))).toBe(
      true,
    )
    expect(entry?.salt).toBeNull()
  }
  const { rows: left } = await own.database.client.execute(
    'select count(*) as n from log_entries where kind = 1 and salt is not null',
  )
  expect(left[0]?.n).toBe(rows - archived)
  const { epoch } = await log.checkpoint()
  expect(await verifyDatabase(orm, { epoch, mode: 'full' })).toMatchObject({ problems: [], archived })
})

test('one is found in its archive and proven', async () => {
  const { orm, reader } = own.database
  const [row] = await readLoggedRows(orm, 'exchanges', { after: 4, most: 1 })
  const requestId = (JSON.parse(row?.line ?? '{}') as { request_id: string }).request_id
  await archive()
  const signed = await log.checkpoint()
  const found = await findArchivedExchange({ reader, database: own.database }, { requestId, at: start + 4_000 })
  if (typeof found !== 'object') throw new Error('not found')
  const [key] = await listAuditKeys(orm)
  const proven = await proveArchived(orm, signed, found)
  const proof = typeof proven === 'string' ? proven : proven.proof
  expect(checkRowProof(proof, verifierOf(key ?? { publicKey: '' }, signed.origin))).toMatchObject({
    problem: undefined,
    row: row?.line,
  })
  expect(
    await findArchivedExchange({ reader, database: own.database }, { requestId: 'another', at: start }),
  ).toBeUndefined()
})

test.each<[string, (lines: string[]) => string[], string | undefined]>([
  ['as it is', (lines) => lines, undefined],
  [
    'with a changed row',
    (lines) => lines.with(7, (lines[7] ?? '').replace('workload 7', 'workload 8')),
    'is not the one that was logged',
  ],
  ['with two rows swapped', (lines) => lines.with(7, lines[8] ?? '').with(8, lines[7] ?? ''), 'out of order'],
  [
    'with an entry that is not there',
    (lines) => lines.with(-1, (lines.at(-1) ?? '').replace(/"log_leaf":\d+/, '"log_leaf":99999')),
    'has no entry 99999',
  ],
])('an archive %s is compared with the folder', async (_, change, problem) => {
  const file = await archive()
  writeFileSync(file, gzipSync(`${change(linesIn(file)).join('\n')}\n`))
  const { epoch, origin } = await log.checkpoint()
  const [key] = await listAuditKeys(own.database.orm)
  const keys = [verifierOf(key ?? { publicKey: '' }, origin)]
  const found = await verifyFolder({
    folder: join(folder.path, 'log', epoch),
    keys,
    archives: [file, join(folder.path, 'missing.gz')],
  })
  expect(found.problems.filter((each) => each.includes('missing.gz'))).toHaveLength(1)
  const others = found.problems.filter((each) => !each.includes('missing.gz'))
  expect(others.join('\n')).toContain(problem ?? '')
  expect(others.length).toBe(problem === undefined ? 0 : 1)
  expect(found.archived).toBeGreaterThan(archived - 3)
})

test('any text of a row is the same in an archive as in its leaf', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.string({ unit: 'binary', maxLength: 40 }).filter((text) => text.isWellFormed() && !text.includes('\0')),
      async (text) => {
        const { rows: found } = await own.database.client.execute({
          sql: "select json_object('a', ?) as line",
          args: [text],
        })
        expect(JSON.stringify({ a: text })).toBe(String(found[0]?.line))
      },
    ),
    { numRuns: 300 },
  )
})
