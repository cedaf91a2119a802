// Old rows move to files: each row is in exactly one place, a file is complete before its rows leave, and nothing else deletes rows.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createOrm } from '../../db/file/open.ts'
import { planArchive } from '../../db/read/due-rows.ts'
import { findDrift } from '../../db/read/usage-totals.ts'
import type { ArchiveKind } from '../../db/schema/archive-kinds.ts'
import { insertArchive, listArchives, markVerified, removeArchivedRows } from '../../db/tables/archives.ts'
import { findAudit, listAudit } from '../../db/tables/audit.ts'
import { listChanges } from '../../db/tables/listed-changes.ts'
import { findUsage, listUsage } from '../../db/tables/usage.ts'
import type { Statement } from '../../db/write/rows.ts'
import { createWriter, type Writer } from '../../db/write/write.ts'
import { type ArchiveContext, archiveRows } from '../../src/archive/archive-rows.ts'
import { createArchiver } from '../../src/archive/archiving.ts'
import { verifyArchive } from '../../src/archive/verify.ts'
import { timeOfRequest } from '../../src/http/request-id.ts'
import { addRows, readArchives, readRows, requestIdAt } from '../support/archives.ts'
import { turnsDuring } from '../support/event-loop.ts'
import { temporaryFolder } from '../support/latchkey.ts'
import {
  auditRow,
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
  usageRow,
} from '../support/rows.ts'

const pointOf = (row: { request_id?: unknown }) => ({
  requestId: String(row.request_id),
  at: timeOfRequest(String(row.request_id)),
})

const acme = organizationRows('acme')
const day = 24 * 60 * 60 * 1_000
const now = Date.UTC(2026, 10, 22)
/** The first row. One follows each second. */
const start = now - 10 * day
const count = 500
/** How many of them an archive takes: those before this time. */
const due = 300
const before = start + due * 1_000
/** For tests that need several slices. */
const many = { count: 5_000, due: 3_000, before: start + 3_000 * 1_000 }
const addMany = () => addRows(writer, acme, many.count - count, start + count * 1_000)

let own: TestDatabase
let writer: Writer
let folder: ReturnType<typeof temporaryFolder>
let context: ArchiveContext
beforeEach(async () => {
  own = await createDatabase()
  folder = temporaryFolder()
  writer = createWriter(own.database, () => {})
  await writer.write(insertOrganizationRows(own.database, acme))
  await addRows(writer, acme, count, start)
  const { orm, reader } = own.database
  const rest = async () => {}
  context = { database: own.database, node: null, orm, reader, writer, rest, now: () => now, log: () => {} }
})
afterEach(async () => {
  await writer.close()
  await own.close()
  folder.remove()
})

const tableOf = { exchanges: 'exchange_audit', usage: 'usage' } as const
const noCallbacks = { onProgress: () => {}, onArchived: () => {} }
const run = (kind: ArchiveKind, more: Partial<ArchiveContext> & { before?: number } = {}) =>
  archiveRows(
    { ...context, ...more },
    { kind, before: more.before ?? before, folder: folder.path, by: { kind: 'local', osUser: 'ops' } },
    noCallbacks,
  )
const execute = (sql: string) => ({ toSQL: () => ({ sql, params: [] }) })

describe.each(['exchanges', 'usage'] as const)('%s', (kind) => {
  const table = tableOf[kind]

  test('older than a time move to files with every value, and the others stay', async () => {
    await addMany()
    const all = await readRows(own.database, table)
    await run(kind, { before: many.before, rowsPerFileMax: 700 })
    const archives = readArchives(folder.path)
    expect(archives.length).toBeGreaterThan(1)
    const archived = archives.flatMap(({ rows }) => rows)
    const kept = await readRows(own.database, table)
    const byId = (one: Record<string, unknown>, other: Record<string, unknown>) => Number(one.id) - Number(other.id)
    expect([...archived, ...kept].toSorted(byId)).toEqual(all)
    expect(archived.every(({ at }) => Number(at) < many.before)).toBe(true)
    expect(kept.every(({ at }) => Number(at) >= many.before)).toBe(true)
  })

  test('have a manifest that describes the file without the database', async () => {
    await run(kind)
    const [archive] = readArchives(folder.path)
    const file = readFileSync(join(folder.path, archive?.file ?? ''))
    expect(archive?.manifest).toEqual({
      format: 1,
      kind,
      table,
      schema: expect.any(Number),
      file: String(archive?.file),
      sha256: createHash('sha256').update(file).digest('hex'),
      bytes: file.length,
      rows: due,
      first_row_id: Number(archive?.rows[0]?.id),
      last_row_id: Number(archive?.rows.at(-1)?.id),
      from: new Date(start).toISOString(),
      to: new Date(before - 1_000).toISOString(),
      before: new Date(before).toISOString(),
      organizations: ['acme'],
    })
    expect(readdirSync(folder.path)).toHaveLength(2)
  })

  test('are archived once: a second run finds nothing', async () => {
    await run(kind)
    const files = readdirSync(folder.path)
    await run(kind)
    expect(readdirSync(folder.path)).toEqual(files)
  })

  test('keep the newest row, so that no row number is used twice', async () => {
    await run(kind, { before: now })
    const kept = await readRows(own.database, table)
    expect(kept).toHaveLength(1)
    await addRows(writer, acme, 1, now)
    const ids = (await readRows(own.database, table)).map(({ id }) => Number(id))
    expect(ids).toEqual([count, count + 1])
  })

  test('cannot be deleted by anything else, neither before nor after', async () => {
    const refused = /are never deleted/
    await expect(writer.write([execute(`delete from ${table} where id = 1`)])).rejects.toThrow(refused)
    await run(kind)
    await expect(writer.write([execute(`delete from ${table}`)])).rejects.toThrow(refused)
    await expect(writer.write([execute(`delete from ${table} where id = ${count}`)])).rejects.toThrow(refused)
    await expect(writer.write([execute('delete from archives')])).rejects.toThrow('archives are never forgotten')
    for (const state of ['removing', 'writing'])
      await expect(writer.write([execute(`update archives set state = '${state}'`)])).rejects.toThrow('have an order')
    await expect(writer.write([execute('update archives set last_row_id = 99999')])).rejects.toThrow('never changed')
  })

  test('outside the archive do not leave with it, whatever range is asked for', async () => {
    const { orm } = own.database
    const planned = {
      kind,
      before,
      firstRowId: 10,
      lastRowId: 20,
      firstAt: 1,
      lastAt: 2,
      rowCount: 11,
      organizations: [],
    }
    await writer.write([insertArchive(orm, planned, { folder: folder.path, file: 'x', node: null, createdAt: now })])
    const [unverified] = await listArchives(orm, { limit: 1 })
    if (unverified === undefined) throw new Error('There is no archive')
    const all = removeArchivedRows(orm, unverified, { from: 1, until: count + 1 })
    await expect(writer.write(all)).rejects.toThrow('are never deleted')
    await writer.write([markVerified(orm, unverified, { bytes: 1, sha256: '0'.repeat(64) })])
    await expect(writer.write(all)).rejects.toThrow('are never deleted')
    expect(await readRows(own.database, table)).toHaveLength(count)
    const removal = removeArchivedRows(orm, unverified, { from: 10, until: 21 })
    await writer.write(removal)
    expect(await readRows(own.database, table)).toHaveLength(count - 11)
  })
})

test('a request leaves only once the totals include it', async () => {
  const { orm } = own.database
  const planned = { firstRowId: 1, lastRowId: 9, firstAt: 1, lastAt: 2, rowCount: 9, organizations: [] }
  const place = { folder: folder.path, file: 'x', node: null, createdAt: now }
  await writer.write([insertArchive(orm, { kind: 'usage', before, ...planned }, place)])
  const [archive] = await listArchives(orm, { limit: 1 })
  if (archive === undefined) throw new Error('There is no archive')
  await writer.write([
    markVerified(orm, archive, { bytes: 1, sha256: '0'.repeat(64) }),
    execute('update usage_summed set usage_id = 8'),
  ])
  const removal = removeArchivedRows(orm, archive, { from: 1, until: 10 })
  // Without the statements that add to the totals what they lack.
  await expect(writer.write(removal.slice(-3))).rejects.toThrow('are never deleted')
  await writer.write(removal)
  expect(await readRows(own.database, 'usage')).toHaveLength(count - 9)
})

test('a row that a wrong clock dated in the future stays and holds up no other', async () => {
  await writer.appendUsage({ ...usageRow('future', acme), at: now + 400 * day })
  await addRows(writer, acme, 10, start + 600 * 1_000)
  await run('usage', { before: start + 800 * 1_000 })
  const kept = await readRows(own.database, 'usage')
  expect(kept.map(({ at }) => at)).toEqual([now + 400 * day, start + 609 * 1_000])
})

test('a long stream that was stored late is archived with the rows of its time', async () => {
  await writer.appendUsage({ ...usageRow('late', acme), at: start })
  await addRows(writer, acme, 2, now - 1_000)
  await run('usage')
  const archived = readArchives(folder.path).flatMap(({ rows }) => rows)
  expect(archived.filter(({ at }) => at === start)).toHaveLength(2)
})

test('a request is found by its id as long as it is in the database, across the gaps that archives leave', async () => {
  const { orm } = own.database
  await addMany()
  // One that a wrong clock dated in the future stays before the gap.
  await writer.appendAudit({ ...auditRow(requestIdAt(now + 400 * day)), at: now + 400 * day })
  await addRows(writer, acme, 3_000, start + 6_000 * 1_000)
  const last = start + 8_000 * 1_000
  const [audits, usages] = [await readRows(own.database, 'exchange_audit'), await readRows(own.database, 'usage')]
  for (const kind of ['exchanges', 'usage'] as const) await run(kind, { before: last })
  const isKept = ({ at }: Record<string, unknown>) => Number(at) >= last
  const sample = (rows: Record<string, unknown>[]) => rows.filter((_, index) => index % 97 === 0)
  for (const row of sample(audits))
    expect((await findAudit(orm, pointOf(row)))?.id).toBe(isKept(row) ? Number(row.id) : undefined)
  for (const row of sample(usages))
    expect((await findUsage(orm, pointOf(row)))?.id).toBe(isKept(row) ? Number(row.id) : undefined)
  const { rows, moreBeforeId } = await listAudit(orm, { since: last, limit: 9_999 }, ({ id }) => id)
  expect(rows).toEqual(
    audits
      .filter(isKept)
      .map(({ id }) => Number(id))
      .toReversed(),
  )
  expect(moreBeforeId).toBeUndefined()
  expect((await listUsage(orm, { since: last, limit: 9_999 }, () => 1)).rows).toHaveLength(usages.filter(isKept).length)
})

test('each archive is recorded with its user, and again when its rows have left', async () => {
  await run('usage')
  const changes = await listChanges(own.database.orm, { limit: 99 }, (row) => row)
  const [first = ''] = readArchives(folder.path).map(({ file }) => file)
  const shown = changes
    .filter(({ targetId }) => targetId === first)
    .map(({ operation, actor, osUser, organizationId, before: old, after }) => {
      const states = [old, after].map((row) => (JSON.parse(row ?? '{}') as { state?: string }).state)
      return { operation, actor, osUser, organizationId, states }
    })
  const by = { operation: 'archive.run', actor: 'local' as const, osUser: 'ops', organizationId: null }
  expect(shown).toEqual([
    { ...by, states: ['verified', 'finished'] },
    { ...by, states: [undefined, 'writing'] },
  ])
})

test('a row that changes before its file is compared with it fails the archive, and no row leaves', async () => {
  const { client } = own.database
  await addMany()
  const [last] = (await client.execute(`select id from usage where at < ${many.before} order by id desc limit 1`)).rows
  let isChanged = false
  /** The manifest is written before the rows are read again. */
  const changeOnce = async () => {
    if (isChanged || readdirSync(folder.path).length < 2) return
    isChanged = true
    const change = `update usage set subject = 'changed' where id = ${Number(last?.id)}`
    await writer.write([execute('drop trigger usage_keeps_values'), execute(change)])
  }
  const reader = createOrm({
    execute: async (statement) => {
      await changeOnce()
      return client.execute(statement)
    },
  })
  await expect(run('usage', { before: many.before, reader })).rejects.toThrow(
    'it does not hold the 3000 rows that were written',
  )
  expect(isChanged).toBe(true)
  expect(await listArchives(own.database.orm, { limit: 9 })).toMatchObject([{ state: 'writing', sha256: null }])
  expect(await readRows(own.database, 'usage')).toHaveLength(many.count)
})

test('a run that a stopping server ends is finished by the next one', async () => {
  await addMany()
  const all = await readRows(own.database, 'usage')
  const request = { before: { usage: many.before }, folder: folder.path, by: { kind: 'server' } as const }
  const stopping = createArchiver({ ...context, rowsPerFileMax: 700 })
  let reports = 0
  const onProgress = () => {
    reports += 1
    // While the rows of the first file leave.
    if (reports === 5) void stopping.stop()
  }
  await expect(stopping.run(request, { isAlone: true, onProgress })).rejects.toThrow('The server is stopping')
  await expect(stopping.run(request, { isAlone: true })).rejects.toThrow('The server is stopping')
  const archives = await createArchiver(context).run(request, { isAlone: true })
  // The stop has ended the first run, and not only its result.
  expect(archives).not.toEqual([])
  expect(archives.every(({ state }) => state === 'finished')).toBe(true)
  const everywhere = [
    ...readArchives(folder.path).flatMap(({ rows }) => rows),
    ...(await readRows(own.database, 'usage')),
  ]
  expect(everywhere.map(({ id }) => Number(id)).toSorted((one, two) => one - two)).toEqual(
    all.map(({ id }) => Number(id)),
  )
})

test('other work gets its turn between the slices of a run', async () => {
  await addMany()
  // Three thousand rows are at least five slices, and each is read twice and removed once.
  expect(await turnsDuring(() => run('usage', many))).toBeGreaterThan(12)
})

test('totals stay, and the check of totals leaves archived days out', async () => {
  const totals = () => own.database.client.execute('select * from day_totals order by day').then(({ rows }) => rows)
  const kept = await totals()
  await run('usage')
  expect(await totals()).toEqual(kept)
  // Those by inference server are added up before the rows leave.
  const { rows } = await own.database.client.execute('select sum(requests) as requests from served_totals')
  expect(rows[0]?.requests).toBe(count)
  expect(await findDrift(own.database.orm)).toEqual([])
  await writer.write([execute(`update day_totals set requests = requests + 1`)])
  const days = (await findDrift(own.database.orm)).map((drift) => drift.day)
  expect(days).not.toContain(Math.floor(start / day))
})

test.skipIf(!existsSync('/dev/full'))(
  'when the disk has no room, no row leaves, and the next run succeeds',
  async () => {
    const { orm } = own.database
    const planned = await planArchive(orm, { kind: 'usage', before, now, rowsMax: 9_999 })
    if (planned === undefined) throw new Error('No rows are due')
    const file = 'usage-full.ndjson.gz'
    await writer.write([insertArchive(orm, planned, { folder: folder.path, file, node: null, createdAt: now })])
    // Writes to this device fail for lack of room.
    symlinkSync('/dev/full', join(folder.path, `${file}.partial`))
    const all = await readRows(own.database, 'usage')
    await expect(run('usage')).rejects.toThrow(`The disk that holds the archive folder "${folder.path}" is full`)
    expect(await readRows(own.database, 'usage')).toEqual(all)
    expect(readdirSync(folder.path)).toEqual([])
    await run('usage')
    expect(readArchives(folder.path).flatMap(({ rows }) => rows)).toHaveLength(due)
    expect(await listArchives(own.database.orm, { limit: 9 })).toHaveLength(1)
  },
)

describe('a verified archive', () => {
  const verify = async () => {
    const [archive] = await listArchives(own.database.orm, { limit: 1 })
    if (archive === undefined) throw new Error('There is no archive')
    return verifyArchive(archive, folder.path, own.path)
  }
  const paths = () => {
    const [data = '', manifest = ''] = readdirSync(folder.path).toSorted((one) => (one.endsWith('.gz') ? -1 : 1))
    return { data: join(folder.path, data), manifest: join(folder.path, manifest) }
  }

  const removesRows = (statements: Statement[]) => statements.some((each) => each.toSQL().sql.startsWith('delete '))

  test('is intact as it was written', async () => {
    await run('usage')
    expect(await verify()).toBeNull()
  })

  const damages: [name: string, damage: () => void, problem: string][] = [
    ['is missing', () => rmSync(paths().data), 'does not exist'],
    ['is cut short', () => writeFileSync(paths().data, readFileSync(paths().data).subarray(0, 1_000)), 'damaged'],
    ['has other bytes', () => writeFileSync(paths().data, Bun.gzipSync('{}\n')), 'SHA-256'],
    ['has no manifest', () => rmSync(paths().manifest), 'does not exist'],
    [
      'has a manifest that was changed',
      () => writeFileSync(paths().manifest, readFileSync(paths().manifest, 'utf8').replace('"rows": 300', '"rows": 2')),
      'rows is 2, not 300',
    ],
    ['has a manifest that is not JSON', () => writeFileSync(paths().manifest, '{'), 'not valid JSON'],
  ]
  for (const [name, damage, problem] of damages)
    test(`that ${name} is reported`, async () => {
      await run('usage')
      damage()
      expect(await verify()).toContain(problem)
    })

  test('that was replaced by another one before its rows left removes none of them', async () => {
    const stopping: ArchiveContext['writer'] = {
      write: async (statements) => {
        if (removesRows(statements)) throw new Error('power cut')
        await writer.write(statements)
      },
    }
    await expect(run('usage', { writer: stopping })).rejects.toThrow('power cut')
    const { data } = paths()
    const file = readFileSync(data)
    writeFileSync(data, Bun.gzipSync(Bun.gunzipSync(file), { level: 1 }))
    await expect(run('usage')).rejects.toThrow('its SHA-256 is not the one of the file that was written')
    expect(await readRows(own.database, 'usage')).toHaveLength(count)
    expect(await listArchives(own.database.orm, { limit: 9 })).toMatchObject([{ state: 'verified' }])
    writeFileSync(data, file)
    await run('usage')
    expect(await readRows(own.database, 'usage')).toHaveLength(count - due)
  })

  test('whose file was lost while rows were leaving keeps the other rows until the file is back', async () => {
    await addMany()
    let removals = 0
    const stopping: ArchiveContext['writer'] = {
      write: async (statements) => {
        if (removesRows(statements) && ++removals === 3) throw new Error('power cut')
        await writer.write(statements)
      },
    }
    await expect(run('usage', { ...many, writer: stopping })).rejects.toThrow('power cut')
    const { data } = paths()
    const file = readFileSync(data)
    const left = await readRows(own.database, 'usage')
    expect(left.length).toBeLessThan(many.count)
    expect(left.length).toBeGreaterThan(many.count - many.due)
    rmSync(data)
    await expect(run('usage', many)).rejects.toThrow('does not exist')
    expect(await readRows(own.database, 'usage')).toEqual(left)
    writeFileSync(data, file)
    await run('usage', many)
    expect(await readRows(own.database, 'usage')).toHaveLength(many.count - many.due)
    expect(readArchives(folder.path)).toHaveLength(1)
  })
})
