// The audit log over a real database: every row gets one leaf, roots are those of the leaves, checkpoints and tiles read back with the rules
// of the formats alone, and a database that went back to an older state begins a new epoch.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { readLoggedRows } from '../../db/read/log-rows.ts'
import { listAuditKeys } from '../../db/tables/audit-checkpoints.ts'
import { findLogEntry, isOvertaken, readLogEntries, readLogHead } from '../../db/tables/audit-log.ts'
import { appendLog } from '../../db/tables/log-append.ts'
import { createWriter, type Writer } from '../../db/write/write.ts'
import { verifierOf } from '../../src/audit-log/audit-key.ts'
import { type AuditLog, createAuditLog } from '../../src/audit-log/audit-log.ts'
import { codesOf, commitTo, entriesOf, entryText } from '../../src/audit-log/entry.ts'
import { parseOrigin } from '../../src/audit-log/epochs.ts'
import { type AuditLogContext, checkpointFileFor } from '../../src/audit-log/open-log.ts'
import { openCheckpoint, parseCheckpoint, type SignedCheckpoint } from '../../src/audit-log/transparency/checkpoint.ts'
import {
  consistencyParts,
  hashLeaf,
  hashNode,
  inclusionParts,
  isConsistent,
  isIncluded,
} from '../../src/audit-log/transparency/merkle.ts'
import { checkSignature } from '../../src/audit-log/transparency/note.ts'
import { parseBundle, parseTilePath, splitTile, tilePath, tilesOf } from '../../src/audit-log/transparency/tiles.ts'
import { hashesOf, readEntries, rootOf } from '../../src/audit-log/tree.ts'
import { onFile } from '../support/file-only.ts'
import { temporaryFolder } from '../support/latchkey.ts'
import { rejectionOf } from '../support/rejection.ts'
import {
  auditRow,
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
} from '../support/rows.ts'

const acme = organizationRows('acme')
const masterKey = { kind: 'value', hex: 'a'.repeat(64) } as const

let own: TestDatabase
let writer: Writer
let folder: ReturnType<typeof temporaryFolder>
let logged: [level: string, event: string, fields: Record<string, unknown> | undefined][]
let now: number

const contextFor = (more: Partial<AuditLogContext['auditLog']> = {}): AuditLogContext => ({
  database: own.database,
  writer,
  auditLog: { mode: 'full', folder: folder.path, ...more },
  masterKey,
  now: () => now,
  log: (...line) => logged.push(line as (typeof logged)[number]),
})
const open = (more?: Partial<AuditLogContext['auditLog']>): AuditLog => createAuditLog(contextFor(more))
const addExchanges = (from: number, count: number) =>
  Promise.all(Array.from({ length: count }, (_, index) => writer.appendAudit(auditRow(`request ${from + index}`))))

beforeEach(async () => {
  now = Date.UTC(2026, 10, 26, 12)
  logged = []
  own = await createDatabase()
  folder = temporaryFolder()
  writer = createWriter(own.database, () => {})
  await writer.write(insertOrganizationRows(own.database, acme))
})
afterEach(async () => {
  await writer.close()
  await own.close()
  folder.remove()
})

/** As RFC 9162 defines it, from all leaves. */
function treeHash(leaves: Uint8Array[]): Uint8Array {
  if (leaves.length === 1) return leaves[0] ?? Buffer.alloc(0)
  let split = 1
  while (split * 2 < leaves.length) split *= 2
  return hashNode(treeHash(leaves.slice(0, split)), treeHash(leaves.slice(split)))
}
const parsed = (note: string) => parseCheckpoint(note) as SignedCheckpoint
const allEntries = () => readEntries(own.database.orm, 0, 1_000_000)

describe('leaves', () => {
  test('cover every row once, in order, and open with their salts', async () => {
    await addExchanges(0, 700)
    const log = open()
    const first = await log.checkpoint()
    await addExchanges(700, 5)
    const second = await log.checkpoint()
    expect(second.size).toBe(first.size + 5)
    const entries = await allEntries()
    expect(entries.map(({ leaf }) => leaf)).toEqual(entries.map((_, index) => index))
    for (const source of ['exchanges', 'records'] as const) {
      const rows = await readLoggedRows(own.database.orm, source, { after: 0, most: 10_000 })
      const own_ = entries.filter(({ kind }) => codesOf(source).includes(kind))
      expect(own_.map(({ ref }) => ref)).toEqual(rows.map(({ id }) => id))
      expect(rows.length).toBeGreaterThan(0)
      rows.forEach(({ line }, index) => {
        const { salt, commitment } = own_[index] ?? {}
        expect(commitTo(salt ?? Buffer.alloc(0), line).equals(commitment ?? Buffer.alloc(0))).toBe(true)
        expect(commitTo(salt ?? Buffer.alloc(0), `${line} `).equals(commitment ?? Buffer.alloc(0))).toBe(false)
      })
    }
  })

  test('say nothing of their rows', async () => {
    await addExchanges(0, 1)
    await open().checkpoint()
    const [entry] = (await allEntries()).filter(({ kind }) => kind === 1)
    expect(JSON.parse(entry === undefined ? '' : entryText(entry))).toEqual({
      v: 1,
      kind: 'exchange',
      at: expect.any(String),
      commit: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
  })

  test('of exchanges are left out by mode changes, and caught up by mode full', async () => {
    await addExchanges(0, 3)
    await open({ mode: 'changes' }).checkpoint()
    expect((await allEntries()).some(({ kind }) => kind === 1)).toBe(false)
    await open().checkpoint()
    expect((await allEntries()).filter(({ kind }) => kind === 1).length).toBe(3)
  })

  test('are found by the row that they cover', async () => {
    await addExchanges(0, 30)
    await open().checkpoint()
    const { orm } = own.database
    for (const ref of [1, 17, 30])
      expect(await findLogEntry(orm, codesOf('exchanges'), ref)).toMatchObject({ ref, kind: 1 })
    expect(await findLogEntry(orm, codesOf('exchanges'), 31)).toBeUndefined()
    expect(await findLogEntry(orm, codesOf('changes'), 1)).toBeUndefined()
  })

  test('are never removed or changed by the program, except that a salt goes', async () => {
    await addExchanges(0, 1)
    await open().checkpoint()
    const run = (sql: string) => writer.write([{ toSQL: () => ({ sql, params: [] }) }])
    await expect(run('delete from log_entries')).rejects.toThrow('never deleted')
    await expect(run('update log_entries set at = 1')).rejects.toThrow('never changed')
    await expect(run("update log_entries set salt = x'00'")).rejects.toThrow('never changed')
    await expect(run('update log_records set body = 1')).rejects.toThrow('never changed')
    await run('update log_entries set salt = null where kind = 1')
    expect((await allEntries()).filter(({ salt }) => salt === null).length).toBe(1)
  })

  test('are signed under load too: rows that keep coming wait for the next checkpoint', async () => {
    await addExchanges(0, 10)
    let isSigned = false
    const signing = open()
      .checkpoint()
      .finally(() => {
        isSigned = true
      })
    for (let added = 10; !isSigned; added += 20) await addExchanges(added, 20)
    expect((await signing).size).toBeGreaterThanOrEqual(10)
  })

  test('of two nodes at once are one log', async () => {
    await addExchanges(0, 900)
    const [one, other] = await Promise.all([open().checkpoint(), open().checkpoint()])
    await addExchanges(900, 50)
    const last = await open().checkpoint()
    expect(parsed(one.note).origin).toBe(parsed(other.note).origin)
    const entries = await allEntries()
    expect(entries.filter(({ kind }) => kind === 1).map(({ ref }) => ref)).toEqual(
      Array.from({ length: 950 }, (_, index) => index + 1),
    )
    expect(entries.length).toBe(last.size)
  })

  test('are given to each row once, also by a node that knows the newest size and not which rows it covers', async () => {
    const { orm } = own.database
    await addExchanges(0, 3)
    const { size } = await open().checkpoint()
    const rows = await readLoggedRows(orm, 'exchanges', { after: 0, most: 3 })
    const plan = { before: { exchanges: 0, changes: 0, records: 0 }, after: { exchanges: 3 } }
    const again = await rejectionOf(writer.write(appendLog(entriesOf('exchanges', rows, size), [], plan)))
    expect(isOvertaken(again)).toBe(true)
    expect((await readLogHead(orm)).size).toBe(size)
  })
})

describe('the tree', () => {
  test('has the root that its leaves have, at every size around whole tiles', async () => {
    const { orm } = own.database
    const log = open()
    await addExchanges(0, 253)
    let size = 0
    for (let added = 253; added < 262; added += 1) {
      await addExchanges(added, 1)
      const signed = await log.checkpoint()
      const leaves = (await allEntries()).map((entry) => hashLeaf(Buffer.from(entryText(entry))))
      expect(leaves.length).toBe(signed.size)
      expect(parsed(signed.note).root).toEqual(Buffer.from(treeHash(leaves)))
      size = signed.size
    }
    expect(size).toBeGreaterThan(262)
    const nodes = await own.database.client.execute('select level, number from log_nodes')
    expect(nodes.rows.map(({ level, number }) => [level, number])).toEqual([[1, 0]])
    const proof = await hashesOf(orm, inclusionParts(7, size))
    const leafHash = hashLeaf(Buffer.from(entryText((await readLogEntries(orm, 7, 8))[0] as never)))
    expect(isIncluded({ index: 7, size, leafHash, root: await rootOf(orm, size), proof })).toBe(true)
    const grown = await hashesOf(orm, consistencyParts(200, size))
    const [older, newer] = [
      { size: 200, root: await rootOf(orm, 200) },
      { size, root: await rootOf(orm, size) },
    ]
    expect(isConsistent(older, newer, grown)).toBe(true)
  })
})

describe('checkpoints', () => {
  test('are signed by their own key, and only when something is new', async () => {
    const log = open()
    log.begin('0.0.0')
    const first = await log.checkpoint()
    const again = await log.checkpoint()
    await log.stop()
    expect(again.note).toBe(first.note)
    const [key] = await listAuditKeys(own.database.orm)
    const opened = key && openCheckpoint(first.note, verifierOf(key, first.origin))
    expect(opened).toMatchObject({ size: first.size, origin: first.origin })
    expect(key?.privateKeyEncrypted).not.toContain(key?.publicKey ?? '-')
    expect(parseOrigin(first.origin)?.epoch).toBe(first.epoch)
    expect(logged.filter(([, event]) => event === 'audit_checkpoint').map(([, , fields]) => fields?.note)).toEqual([
      first.note,
    ])
  })

  test('of a new key have the signature of the old one too, once', async () => {
    const log = open()
    const before = await log.checkpoint()
    const rotated = await log.rotateKey()
    await addExchanges(0, 1)
    const after = await log.checkpoint()
    const [old, current] = (await listAuditKeys(own.database.orm)).map((key) => verifierOf(key, before.origin))
    const signersOf = (note: string) => [old, current].map((key) => key && checkSignature(parsed(note).note, key))
    expect(signersOf(before.note)).toEqual([{ at: undefined }, 'missing'])
    expect(signersOf(rotated.note)).toEqual([{ at: undefined }, { at: undefined }])
    expect(signersOf(after.note)).toEqual(['missing', { at: undefined }])
  })

  /** The log of a server with rows to cover, that has just asked to commit leaves a second time. */
  async function startCovering() {
    await addExchanges(0, 1_300)
    const [asked, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let commits = 0
    const write: Writer['write'] = async (statements) => {
      if (statements.some((each) => each.toSQL().sql.includes('into log_entries'))) commits += 1
      if (commits === 2) {
        asked.resolve()
        await gate.promise
      }
      await writer.write(statements)
    }
    const log = createAuditLog({ ...contextFor(), writer: { write } }, { lastMilliseconds: 0 })
    log.begin('0.0.0')
    const covering = log.checkpoint()
    await asked.promise
    return { log, covering, open: gate.resolve }
  }

  test('of a server that stops have the rows of the commit that runs, and the next start covers the others', async () => {
    const { log, covering, open: openGate } = await startCovering()
    const stopped = log.stop()
    openGate()
    await stopped
    const last = await covering
    const covered = (await allEntries()).filter(({ kind }) => kind === 1).length
    expect(covered).toBe(800)
    expect(last.size).toBe((await allEntries()).length)
    expect(log.state()).toMatchObject({ checkpointAt: undefined, failure: undefined })
    // What was not published is published by the next checkpoint.
    const next = await open().checkpoint()
    expect((await allEntries()).filter(({ kind }) => kind === 1).map(({ ref }) => ref)).toEqual(
      Array.from({ length: 1_300 }, (_, index) => index + 1),
    )
    expect(readFileSync(join(folder.path, next.epoch, 'checkpoint'), 'utf8')).toBe(next.note)
  })

  test('of a server that stops wait for other work no longer than for rows', async () => {
    const log = createAuditLog(contextFor(), { lastMilliseconds: 0 })
    log.begin('0.0.0')
    const working = log.runExclusive(async () => {
      while (!log.isOver()) await setImmediate()
    })
    expect(log.isOver()).toBe(false)
    await log.stop()
    await working
    expect(log.isOver()).toBe(true)
  })

  test('of a server that stops have all rows that can be covered in time', async () => {
    await addExchanges(0, 900)
    const log = open()
    log.begin('0.0.0')
    await log.stop()
    expect((await allEntries()).filter(({ kind }) => kind === 1).length).toBe(900)
  })

  test('are refused where the log is off, and a wrong master key says so', async () => {
    await expect(open({ mode: 'off' }).checkpoint()).rejects.toThrow('LATCHKEY_AUDIT_LOG')
    await open().checkpoint()
    const wrong = createAuditLog({ ...contextFor(), masterKey: { kind: 'value', hex: 'b'.repeat(64) } })
    await expect(wrong.checkpoint()).rejects.toThrow()
  })
})

describe('the folder', () => {
  const filesIn = (path: string) =>
    (
      readdirSync(path, { recursive: true, withFileTypes: true }) as unknown as {
        isFile(): boolean
        parentPath: string
        name: string
      }[]
    )
      .filter((each) => each.isFile())
      .map(({ parentPath, name }) => join(parentPath, name).slice(path.length + 1))

  test('has exactly the tiles of the specification, and every checkpoint', async () => {
    const log = open()
    const sizes: number[] = []
    for (const count of [10, 100, 300, 1]) {
      await addExchanges(sizes.length * 1_000, count)
      sizes.push((await log.checkpoint()).size)
    }
    const path = join(folder.path, (await log.checkpoint()).epoch)
    const size = sizes.at(-1) ?? 0
    const expected = sizes.flatMap((each, index) => [...tilesOf(each, sizes[index - 1] ?? 0)])
    // A whole tile replaces its parts.
    const whole = expected.filter(
      ({ level, index, width }) =>
        width === 256 ||
        !expected.some((other) => other.level === level && other.index === index && other.width === 256),
    )
    expect(new Set(filesIn(path))).toEqual(
      new Set([...whole.map(tilePath), 'checkpoint', ...sizes.map((each) => `checkpoints/${each}`)]),
    )
    const leaves: Uint8Array[] = []
    for (const file of filesIn(path)) {
      const tile = parseTilePath(file)
      if (tile?.level !== 'entries') continue
      const entries = parseBundle(readFileSync(join(path, file)), tile.width) ?? []
      const hashes = splitTile(readFileSync(join(path, file.replace('entries', '0'))), tile.width) ?? []
      expect(entries.map((entry) => Buffer.from(hashLeaf(entry)).toString('hex'))).toEqual(
        hashes.map((hash) => Buffer.from(hash).toString('hex')),
      )
      for (const [index, hash] of hashes.entries()) leaves[tile.index * 256 + index] = hash
    }
    expect(parsed(readFileSync(join(path, 'checkpoint'), 'utf8')).root).toEqual(
      Buffer.from(treeHash(leaves.slice(0, size))),
    )
  })

  test('that cannot be written stops nothing, and is caught up', async () => {
    const blocked = join(folder.path, 'file')
    writeFileSync(blocked, '')
    const log = open({ folder: join(blocked, 'under a file') })
    const { size } = await log.checkpoint()
    expect(size).toBeGreaterThan(0)
    expect(log.state().folderFailure).toContain('ENOTDIR')
    const works = open()
    await works.checkpoint()
    expect(works.state().folderFailure).toBeUndefined()
  })
})

onFile('the file on disk').describe('a database that went back', () => {
  const stateFile = () => checkpointFileFor(own.database) ?? ''
  /** As a backup of an earlier time has it. */
  const dropLast = async (count: number) => {
    const sql = [
      'drop trigger log_entries_keep_rows',
      'drop trigger log_checkpoints_keep_rows',
      'delete from log_checkpoints',
      `delete from log_entries where leaf >= (select max(leaf) from log_entries) - ${count - 1}`,
    ]
    await writer.write(sql.map((text) => ({ toSQL: () => ({ sql: text, params: [] }) })))
  }

  test('begins a new epoch whose first new entry says what is gone', async () => {
    await addExchanges(0, 20)
    const before = await open().checkpoint()
    await dropLast(5)
    const after = await open({ folder: undefined }).checkpoint()
    expect(after.epoch).not.toBe(before.epoch)
    const [restore] = (await own.database.client.execute("select body from log_records where kind = 'restore'")).rows
    expect(JSON.parse(String(restore?.body))).toEqual({
      last_checkpoint: before.note,
      entries_gone: 5,
      different: false,
    })
    expect(logged.some(([level, event]) => level === 'warn' && event === 'audit_log_epoch')).toBe(true)
    expect((await open().checkpoint()).epoch).toBe(after.epoch)
    expect(readFileSync(join(folder.path, before.epoch, 'checkpoint'), 'utf8')).toBe(before.note)
  })

  test('is found by its own file and by the folder alike, and otherwise goes on', async () => {
    await addExchanges(0, 20)
    const before = await open().checkpoint()
    await dropLast(1)
    writeFileSync(stateFile(), '')
    expect((await open().checkpoint()).epoch).not.toBe(before.epoch)
  })

  test('and has other entries of the same number begins one too', async () => {
    await addExchanges(0, 20)
    const before = await open({ folder: undefined }).checkpoint()
    await dropLast(1)
    await addExchanges(100, 1)
    writeFileSync(stateFile(), '')
    await open({ folder: undefined, mode: 'full' }).checkpoint()
    writeFileSync(stateFile(), before.note)
    await open({ folder: undefined }).checkpoint()
    const [restore] = (await own.database.client.execute("select body from log_records where kind = 'restore'")).rows
    expect(JSON.parse(String(restore?.body))).toMatchObject({ entries_gone: 0, different: true })
  })

  test('of an epoch that it does not know begins one, once', async () => {
    const before = await open().checkpoint()
    await dropLast(1)
    await writer.write([
      { toSQL: () => ({ sql: 'delete from log_epochs', params: [] }) },
      { toSQL: () => ({ sql: "insert into log_epochs values (1, '20200101-00000000', 1)", params: [] }) },
    ])
    const after = await open().checkpoint()
    expect(after.epoch).not.toBe('20200101-00000000')
    expect(after.epoch).not.toBe(before.epoch)
    expect((await open().checkpoint()).epoch).toBe(after.epoch)
  })

  test('or was restored or copied has no epoch, and begins one, also where nothing is gone', async () => {
    const before = await open().checkpoint()
    await writer.write([{ toSQL: () => ({ sql: 'delete from log_epochs', params: [] }) }])
    const after = await open().checkpoint()
    expect(after.epoch).not.toBe(before.epoch)
    const [restore] = (await own.database.client.execute("select body from log_records where kind = 'restore'")).rows
    expect(JSON.parse(String(restore?.body))).toEqual({
      last_checkpoint: before.note,
      entries_gone: 0,
      different: false,
    })
    expect((await open().checkpoint()).epoch).toBe(after.epoch)
  })

  test('is not mistaken for one whose folder another installation uses', async () => {
    const before = await open().checkpoint()
    writeFileSync(stateFile(), before.note.replaceAll(before.origin, `latchkey/${'0'.repeat(32)}/20260101-00000000`))
    expect((await open().checkpoint()).epoch).toBe(before.epoch)
    expect(logged.some(([, event]) => event === 'audit_checkpoint_foreign')).toBe(true)
  })
})
