// Entries that leave the database once an archive has their rows: whatever is pruned, and wherever that is interrupted, every row that is left and
// every archived row still has a proof, and what verifies the log says what is missing.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { readLoggedRows } from '../../db/read/log-rows.ts'
import { listAuditKeys } from '../../db/tables/audit-checkpoints.ts'
import { insertLogRecord } from '../../db/tables/log-records.ts'
import { createWriter, type Writer } from '../../db/write/write.ts'
import { type ArchiveContext, archiveRows } from '../../src/archive/archive-rows.ts'
import { findArchivedExchange } from '../../src/archive/find-exchange.ts'
import { verifierOf } from '../../src/audit-log/audit-key.ts'
import { type AuditLog, createAuditLog } from '../../src/audit-log/audit-log.ts'
import { eraseSubject } from '../../src/audit-log/erase.ts'
import { publish } from '../../src/audit-log/folder.ts'
import { proveArchived, proveRow } from '../../src/audit-log/prove.ts'
import { pruneArchived } from '../../src/audit-log/prune.ts'
import { checkRowProof } from '../../src/audit-log/row-proof.ts'
import type { VerifierKey } from '../../src/audit-log/transparency/note.ts'
import { verifyDatabase } from '../../src/audit-log/verify-database.ts'
import { verifyFolder } from '../../src/audit-log/verify-folder.ts'
import { requestIdAt } from '../support/archives.ts'
import { killsOr } from '../support/chance.ts'
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
const subject = { issuerId: 'acme-issuer', subject: 'alice' }

let own: TestDatabase
let writer: Writer
let folder: ReturnType<typeof temporaryFolder>
let log: AuditLog
let added: number

async function open(): Promise<void> {
  own = await createDatabase()
  folder = temporaryFolder()
  mkdirSync(join(folder.path, 'archive'))
  added = 0
  writer = createWriter(own.database, () => {})
  const rows = organizationRows('acme')
  await writer.write(insertOrganizationRows(own.database, rows))
  subject.issuerId = rows.issuer.id
  log = newLog()
  await log.checkpoint()
}

const newLog = () =>
  createAuditLog({
    ...{ database: own.database, writer, masterKey, now: () => start, log: () => {} },
    auditLog: { mode: 'full', folder: join(folder.path, 'log') },
  })

async function close(): Promise<void> {
  await writer.close()
  await own.close()
  folder.remove()
}

/** Exchanges, one a second, of which each tenth is one of Alice. */
async function grow(count: number): Promise<void> {
  const rows = Array.from({ length: count }, (_, index) => {
    const at = start + (added + index) * 1_000
    const isAlice = (added + index) % 10 === 3
    return { ...auditRow(requestIdAt(at)), at, ...subject, subject: isAlice ? 'alice' : `workload ${index}` }
  })
  added += count
  await Promise.all(rows.map((row) => writer.appendAudit(row)))
  await log.checkpoint()
}

const addRecord = () => writer.write([insertLogRecord(own.database.orm, 'start', start, { version: '1' })])

async function archive(rows: number): Promise<void> {
  const { database } = own
  const { orm, reader } = database
  const rest = async () => {}
  const context: ArchiveContext = { database, node: null, orm, reader, writer, rest, now: () => start, log: () => {} }
  const to = { folder: join(folder.path, 'archive'), by: { kind: 'local' } } as const
  await archiveRows(
    context,
    { kind: 'exchanges', before: start + rows * 1_000, ...to },
    { onProgress: () => {}, onArchived: () => {} },
  )
}

/** Prunes, and fails after some commits: what a process that is killed leaves. */
async function prune(commitsMax = Number.POSITIVE_INFINITY): Promise<number> {
  let left = commitsMax
  const limited: Pick<Writer, 'write'> = {
    write: (...given) => {
      left -= 1
      return left < 0 ? Promise.reject(new Error('killed')) : writer.write(...given)
    },
  }
  const { database } = own
  return pruneArchived({ database, writer: limited, now: () => start, rest: async () => {} }).catch((error: Error) => {
    if (error.message !== 'killed') throw error
    return 0
  })
}

/** Checks the database, and proves all rows of a table or some, and some that are in archives. */
async function expectWhole() {
  const { orm, reader } = own.database
  const signed = await log.checkpoint()
  const found = await verifyDatabase(orm, { epoch: signed.epoch, mode: 'full' })
  expect(found).toMatchObject({ problems: [], uncovered: 0 })
  expect(found.rows + found.archived + found.erased + found.pruned).toBe(found.size)
  const [keyRow] = await listAuditKeys(orm)
  const key = verifierOf(keyRow ?? { publicKey: '' }, signed.origin)
  const published = await verifyFolder({ folder: join(folder.path, 'log', signed.epoch), keys: [key] })
  expect(published).toMatchObject({ problems: [], size: signed.size })
  for (const source of ['exchanges', 'records'] as const) {
    const rows = await readLoggedRows(orm, source, { after: 0, most: 10_000 })
    const step = Math.max(1, Math.floor(rows.length / 12))
    for (const { id, line } of rows.filter((_, index) => index % step === 0)) {
      const built = await proveRow(orm, signed, source, id)
      // Only an erased row has none.
      const proven = built?.proof === undefined ? built : checkRowProof(built.proof, key)
      expect(proven).toMatchObject(
        line.includes('"subject":null') ? { proof: undefined } : { problem: undefined, row: line },
      )
    }
  }
  for (const name of archives()) {
    const lines = linesIn(name)
    for (const line of [lines[0], lines[Math.floor(lines.length / 2)], lines.at(-1)]) {
      const row = JSON.parse(line ?? '{}') as { request_id: string; at: number; log_salt?: string }
      const archived = await findArchivedExchange(
        { reader, database: own.database },
        { ...row, requestId: row.request_id },
      )
      const built = typeof archived === 'object' ? await proveArchived(orm, signed, archived) : 'different'
      const { problem } = typeof built === 'string' ? { problem: built } : checkRowProof(built.proof, key)
      expect(problem).toBe(row.log_salt === undefined ? 'erased' : undefined)
    }
  }
  return { ...found, signed, key }
}

const archives = () =>
  readdirSync(join(folder.path, 'archive'))
    .filter((name) => name.endsWith('.gz'))
    .map((name) => join(folder.path, 'archive', name))
const linesIn = (file: string) => gunzipSync(readFileSync(file)).toString().trimEnd().split('\n')
const count = async (table: string) =>
  Number((await own.database.client.execute(`select count(*) as n from ${table}`)).rows[0]?.n)
const run = (sql: string) => writer.write([{ toSQL: () => ({ sql, params: [] }) }])

describe('whatever is pruned', () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('grow' as const), by: fc.integer({ min: 1, max: 700 }) }),
    fc.record({ do: fc.constant('archive' as const), by: fc.double({ min: 0.3, max: 1, noNaN: true }) }),
    fc.record({ do: fc.constant('prune' as const), by: fc.integer({ min: 0, max: 5 }) }),
    fc.record({ do: fc.constantFrom('record' as const, 'erase' as const), by: fc.constant(0) }),
  )

  test('every row that is left, and every archived row, has a proof', async () => {
    let pruned = 0
    await fc.assert(
      fc
        .asyncProperty(fc.array(step, { minLength: 3, maxLength: 8 }), async (steps) => {
          await grow(900)
          for (const { do: what, by } of [...steps, { do: 'archive', by: 0.9 } as const]) {
            if (what === 'grow') await grow(by)
            if (what === 'archive') await archive(Math.floor(added * by))
            if (what === 'prune') await prune(by)
            if (what === 'record') await addRecord()
            if (what === 'erase') {
              const { orm, reader } = own.database
              const reason = { because: 'x', by: { actor: 'x', key_id: null, os_user: null }, organization_id: 'acme' }
              const context = { orm, reader, writer, mode: 'full', now: () => start } as const
              await eraseSubject(context, subject, { ...reason, issuer_id: subject.issuerId })
            }
          }
          await expectWhole()
          await prune()
          pruned += (await expectWhole()).pruned
        })
        .beforeEach(open)
        .afterEach(close),
      { numRuns: killsOr(2) },
    )
    expect(pruned).toBeGreaterThan(500)
  })
})

/** 1,100 exchanges, of which 800 are in an archive. */
async function openArchived(): Promise<void> {
  await open()
  await grow(300)
  await grow(400)
  await grow(400)
  await archive(800)
}
/** Those of the second and third tile: the first has entries of another kind, and the fourth has rows that are not in the archive. */
const gone = 512

describe('entries of an archive', () => {
  beforeEach(openArchived)
  afterEach(close)

  test('go in whole tiles, wherever that is interrupted, and the folder says so after the next checkpoint', async () => {
    for (let commits = 0; commits < 4; commits += 1) {
      await prune(commits)
      await expectWhole()
    }
    await prune()
    const { pruned, signed, checkpointsPruned } = await expectWhole()
    expect({ pruned, checkpointsPruned }).toEqual({ pruned: gone, checkpointsPruned: 2 })
    expect(await count('log_entries')).toBe(signed.size - gone)
    expect(await count('archives where pruned_at is not null')).toBe(1)
    expect(await count("log_records where kind = 'pruning'")).toBe(1)
    expect(await prune()).toBe(0)
    expect(readdirSync(join(folder.path, 'log', signed.epoch, 'pruned'))).toHaveLength(1)
  })

  test('stay while its file is away, and while a proof of a cosigned checkpoint needs them', async () => {
    const [file = ''] = archives()
    renameSync(file, `${file}.away`)
    expect(await prune()).toBe(0)
    renameSync(`${file}.away`, file)
    const [row] = (await own.database.client.execute('select max(size) as size from log_checkpoints where size < 500'))
      .rows
    await run(`update log_checkpoints set cosigned_at = 1 where size = ${row?.size}`)
    expect(await prune()).toBe(gone - 256)
  })

  test.each<[string, (lines: string[]) => string[]]>([
    ['is another one', (lines) => lines.with(600, (lines[600] ?? '').replace('workload', 'Workload'))],
    ['is missing', (lines) => lines.toSpliced(600, 1)],
  ])('stay if a row of their tile %s', async (_, change) => {
    const [file = ''] = archives()
    writeFileSync(file, gzipSync(`${change(linesIn(file)).join('\n')}\n`))
    expect(await prune()).toBe(gone - 256)
  })
})

describe('once entries are gone', () => {
  let signed: Awaited<ReturnType<AuditLog['checkpoint']>>
  let key: VerifierKey
  let within: string
  beforeAll(async () => {
    await openArchived()
    await prune()
    await log.checkpoint()
    ;({ signed, key } = await expectWhole())
    within = join(folder.path, 'log', signed.epoch)
  })
  afterAll(close)

  /** A checkpoint that was signed among them. */
  const checkpointAmong = () => {
    const size = readdirSync(join(within, 'checkpoints')).find((name) => Number(name) > 256 && Number(name) < 512)
    return readFileSync(join(within, 'checkpoints', size ?? ''), 'utf8')
  }

  test('a checkpoint among them is compared with the folder, and not with the database', async () => {
    const against = [{ name: 'office', text: checkpointAmong() }]
    const { problems } = await verifyDatabase(own.database.orm, { epoch: signed.epoch, mode: 'full', against })
    expect(problems).toEqual([
      expect.objectContaining({ problem: expect.stringContaining('compare it with the folder') }),
    ])
    expect((await verifyFolder({ folder: within, keys: [key], against })).problems).toEqual([])
  })

  test('a start with an old state of the folder begins no new log', async () => {
    writeFileSync(join(within, 'checkpoint'), checkpointAmong())
    log = newLog()
    expect((await log.checkpoint()).epoch).toBe(signed.epoch)
  })

  test.each<[string, string]>([
    ['an entry that no archive has', 'delete from log_entries where leaf = 1000'],
    ['an entry that is not in a range', 'delete from log_entries where leaf = 800'],
    ['a range without its archive', 'insert into log_pruned values (768, 1024, 99)'],
    ['a range with the newest entry', 'insert into log_pruned values (768, 1280, 1)'],
    ['a part of a tile', 'insert into log_pruned values (768, 1000, 1)'],
    ['the hash of a tile', 'delete from log_nodes'],
    ['what was pruned', 'delete from log_pruned'],
  ])('the database refuses to remove %s', async (_, sql) => {
    await expect(run(sql)).rejects.toThrow(/never|constraint/i)
  })

  test('nor an entry in a range whose salt or row is still there', async () => {
    const statement = (sql: string) => ({ toSQL: () => ({ sql, params: [] }) })
    const addAndRemove = (ref: number, salt: string) =>
      writer.write([
        statement(
          `insert into log_entries (leaf, kind, ref, at, salt, commitment) values (300, 1, ${ref}, 0, ${salt}, x'00')`,
        ),
        statement('delete from log_entries where leaf = 300'),
      ])
    await expect(addAndRemove(9_999, "x'00'")).rejects.toThrow('never deleted')
    await expect(addAndRemove(1_000, 'null')).rejects.toThrow('never deleted')
    await addAndRemove(9_999, 'null')
  })

  describe('a folder without them', () => {
    let bare: string
    beforeAll(async () => {
      // As a node that comes later has it.
      bare = join(folder.path, 'bare')
      await publish(own.database.orm, bare, signed)
    })
    const changed = (damage: (folder: string) => void) => {
      const copy = join(folder.path, crypto.randomUUID())
      cpSync(bare, copy, { recursive: true })
      damage(copy)
      return verifyFolder({ folder: copy, keys: [key] })
    }
    const editProof = (edit: (text: string) => string) => (copy: string) => {
      const file = join(copy, 'pruned', readdirSync(join(copy, 'pruned'))[0] ?? '')
      writeFileSync(file, edit(readFileSync(file, 'utf8')))
    }

    test('is right, and says how many there are not', async () => {
      expect(readdirSync(join(bare, 'tile/entries'))).not.toContain('001')
      const found = await verifyFolder({ folder: bare, keys: [key], archives: archives() })
      expect(found).toMatchObject({ problems: [], pruned: gone, archived: 800 })
      expect(Object.values(found.kinds).reduce((sum, kind) => sum + kind, 0)).toBe(found.size - gone)
    })

    test.each<[string, (folder: string) => void, string]>([
      [
        'no file that says so',
        (copy) => rmSync(join(copy, 'pruned'), { recursive: true }),
        'tile/entries/001: it is missing',
      ],
      [
        'others missing that no file names',
        (copy) => rmSync(join(copy, 'tile/entries/003')),
        'tile/entries/003: it is missing',
      ],
      [
        'no hash of them',
        (copy) => rmSync(join(copy, 'tile/1'), { recursive: true }),
        'tile/entries/001: it is missing',
      ],
      [
        'a file for another entry',
        editProof((text) => text.replace(/^index (\d+)/m, (_, index) => `index ${Number(index) - 1}`)),
        'the log does not say that entries 256',
      ],
      [
        'a file with another range',
        editProof((text) =>
          text.replace(/^extra (.*)$/m, (_, extra) => {
            const row = Buffer.from(extra, 'base64').toString().replace('256', '512')
            return `extra ${Buffer.from(row).toString('base64')}`
          }),
        ),
        'it is damaged',
      ],
    ])('with %s is wrong', async (_, damage, problem) => {
      expect((await changed(damage)).problems.join('\n')).toContain(problem)
    })

    test.each<[string, (lines: string[]) => string[], string]>([
      [
        'a row changed',
        (lines) => lines.with(500, (lines[500] ?? '').replace('workload', 'Workload')),
        'entries 256 to 511 are not the ones',
      ],
      ['a row removed', (lines) => lines.toSpliced(500, 1), 'it has 255 of the 256 rows'],
    ])('shows an archive with %s', async (_, change, problem) => {
      const file = join(folder.path, 'changed.ndjson.gz')
      writeFileSync(file, gzipSync(`${change(linesIn(archives()[0] ?? '')).join('\n')}\n`))
      const { problems } = await verifyFolder({ folder: bare, keys: [key], archives: [file] })
      expect(problems).toEqual([expect.stringContaining(problem)])
    })
  })

  describe('somebody with the file', () => {
    const changedTables = ['log_entries', 'log_nodes', 'log_records', 'archives', 'exchange_audit']
    beforeAll(async () => {
      const { rows } = await own.database.client.execute("select name from sqlite_master where type = 'trigger'")
      for (const { name } of rows) await run(`drop trigger ${name}`)
      for (const table of changedTables) await run(`create table kept_${table} as select * from ${table}`)
    })
    afterEach(async () => {
      for (const table of changedTables) await run(`insert or replace into ${table} select * from kept_${table}`)
      await run('delete from exchange_audit where id = 400')
    })
    const unknownArchive = { problem: expect.stringContaining('not an archive of this database') }

    test.each<[string, string, object]>([
      [
        'removes more entries',
        'delete from log_entries where leaf between 768 and 1023',
        { problem: 'a leaf is missing', leaf: 768 },
      ],
      [
        'removes a part of a tile',
        'delete from log_entries where leaf between 768 and 800',
        { problem: 'a leaf is missing' },
      ],
      [
        'changes the hash of a tile',
        'update log_nodes set hash = zeroblob(32) where number = 1',
        { problem: expect.stringContaining('root of the leaves') },
      ],
      [
        'removes the hash of a tile',
        'delete from log_nodes where number = 2',
        { problem: 'the hash of pruned entries is gone', leaf: 512 },
      ],
      [
        'changes the record of the pruning',
        "update log_records set body = replace(body, '768', '1024') where kind = 'pruning'",
        { source: 'records', problem: 'the row is not the one that was logged' },
      ],
      ['removes the archive', "update archives set file = 'other'", unknownArchive],
      ['changes the archive', "update archives set sha256 = printf('%064d', 0)", unknownArchive],
      [
        'puts a row back',
        "insert into exchange_audit (id, at, request_id, outcome) values (400, 1, 'x', 'issued')",
        { problem: 'the row has no leaf: it was added later', ref: 400 },
      ],
    ])('who %s is found', async (_, statement, problem) => {
      await run(statement)
      const { problems } = await verifyDatabase(own.database.orm, { epoch: signed.epoch, mode: 'full' })
      expect(problems).toContainEqual(expect.objectContaining(problem))
    })
  })
})
