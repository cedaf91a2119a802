// What the audit log must survive: someone with the database file in hand, with the folder in hand, and with a proof. Each change is found,
// and the first row or file is named.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { appendFileSync, copyFileSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Database, openDatabase } from '../../db/file/open.ts'
import { readLoggedRows } from '../../db/read/log-rows.ts'
import { findCheckpoint, listAuditKeys, updateCheckpointNote } from '../../db/tables/audit-checkpoints.ts'
import { createWriter, type Writer } from '../../db/write/write.ts'
import { verifierOf } from '../../src/audit-log/audit-key.ts'
import { type AuditLog, createAuditLog } from '../../src/audit-log/audit-log.ts'
import { entryText } from '../../src/audit-log/entry.ts'
import { proveRow } from '../../src/audit-log/prove.ts'
import { checkRowProof, formatRowProof } from '../../src/audit-log/row-proof.ts'
import { checkpointText, parseCheckpoint } from '../../src/audit-log/transparency/checkpoint.ts'
import { inclusionParts } from '../../src/audit-log/transparency/merkle.ts'
import { createSignerKey, formatNote, signNote, type VerifierKey } from '../../src/audit-log/transparency/note.ts'
import { hashesOf, readEntries } from '../../src/audit-log/tree.ts'
import { verifyDatabase } from '../../src/audit-log/verify-database.ts'
import { verifyFolder } from '../../src/audit-log/verify-folder.ts'
import { cosign } from '../../src/audit-log/witness.ts'
import { temporaryFolder } from '../support/latchkey.ts'
import {
  auditRow,
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
} from '../support/rows.ts'

const masterKey = { kind: 'value', hex: 'a'.repeat(64) } as const
const rows = 300

let own: TestDatabase
let writer: Writer
let temporary: ReturnType<typeof temporaryFolder>
let log: AuditLog
let folder: string
let key: VerifierKey
let signed: Awaited<ReturnType<AuditLog['checkpoint']>>

async function grow(from: number, count: number): Promise<void> {
  const added = Array.from({ length: count }, (_, index) => writer.appendAudit(auditRow(`request ${from + index}`)))
  await Promise.all(added)
  signed = await log.checkpoint()
}

beforeEach(async () => {
  own = await createDatabase()
  temporary = temporaryFolder()
  writer = createWriter(own.database, () => {})
  await writer.write(insertOrganizationRows(own.database, organizationRows('acme')))
  const auditLog = { mode: 'full', folder: temporary.path } as const
  log = createAuditLog({ database: own.database, writer, auditLog, masterKey, now: () => 1_000, log: () => {} })
  await grow(0, 20)
  await grow(20, rows - 20)
  folder = join(temporary.path, signed.epoch)
  const [row] = await listAuditKeys(own.database.orm)
  key = verifierOf(row ?? { publicKey: '' }, signed.origin)
})
afterEach(async () => {
  await writer.close()
  await own.close()
  temporary.remove()
})

/** Who has the file can remove triggers. */
async function tamper(...statements: string[]): Promise<void> {
  const { rows: triggers } = await own.database.client.execute("select name from sqlite_master where type = 'trigger'")
  const all = [...triggers.map(({ name }) => `drop trigger ${name}`), ...statements]
  await writer.write(all.map((sql) => ({ toSQL: () => ({ sql, params: [] }) })))
}
const verify = (against: { name: string; text: string }[] = []) =>
  verifyDatabase(own.database.orm, { epoch: signed.epoch, mode: 'full', against })
const leafOf = (id: number) => `(select leaf from log_entries where kind = 1 and ref = ${id})`

describe('the database', () => {
  test('is right as it is', async () => {
    expect(await verify()).toMatchObject({
      problems: [],
      size: signed.size,
      rows: signed.size,
      checkpoints: 2,
      uncovered: 0,
    })
  })

  test.each<[string, string[], object]>([
    [
      'a row changed',
      ["update exchange_audit set subject = 'other' where id = 17"],
      { source: 'exchanges', ref: 17, problem: 'the row is not the one that was logged' },
    ],
    [
      'a row of the log itself changed',
      ["update log_records set body = '{}' where id = 1"],
      { source: 'records', ref: 1 },
    ],
    [
      'a row deleted',
      ['delete from exchange_audit where id = 17'],
      { source: 'exchanges', ref: 17, problem: 'the row is gone' },
    ],
    [
      'two rows swapped',
      [
        'update exchange_audit set id = 1000 where id = 17',
        'update exchange_audit set id = 17 where id = 18',
        'update exchange_audit set id = 18 where id = 1000',
      ],
      { source: 'exchanges', ref: 17 },
    ],
    [
      'a salt changed',
      [`update log_entries set salt = zeroblob(16) where leaf = ${leafOf(17)}`],
      { source: 'exchanges', ref: 17 },
    ],
    [
      'a time changed',
      [`update log_entries set at = at + 1 where leaf = ${leafOf(17)}`],
      { source: 'exchanges', ref: 17 },
    ],
    [
      'a leaf and its row deleted',
      ['delete from exchange_audit where id = 17', `delete from log_entries where leaf = ${leafOf(17)}`],
      { problem: 'a leaf is missing' },
    ],
    [
      'a commitment that fits a changed row',
      [`update log_entries set commitment = zeroblob(32), salt = null where leaf = ${leafOf(17)}`],
      { problem: expect.stringContaining('root of the leaves') },
    ],
    [
      'a salt removed without the record of an erasure',
      [`update log_entries set salt = null where leaf = ${leafOf(17)}`],
      { source: 'exchanges', ref: 17, problem: 'the salt is gone, and no record of an erasure says so' },
    ],
    [
      'the hash of a tile changed',
      ['update log_nodes set hash = zeroblob(32)'],
      { problem: expect.stringContaining('tile') },
    ],
    [
      'a checkpoint removed and the log shortened',
      ['delete from log_entries where leaf > 250'],
      { problem: expect.stringContaining('newest rows were removed') },
    ],
    [
      'a row added in between',
      ['delete from exchange_audit where id = 17', `update exchange_audit set id = 17 where id = ${rows}`],
      { source: 'exchanges', ref: 17 },
    ],
    [
      'a row added before the first',
      ["insert into exchange_audit (id, at, request_id, outcome) values (-1, 1000, 'x', 'issued')"],
      { source: 'exchanges', ref: -1, problem: 'the row has no leaf: it was added later' },
    ],
    [
      'a request added before the first',
      [
        `insert into usage (id, at, request_id, organization_id, workspace_id, key_id, endpoint, status, streamed, completed, duration_milliseconds, usage_source)
          values (-1, 1000, 'x', 'acme', 'acme-workspace', 'acme-key', '/chat/completions', 200, 0, 1, 1, 'none')`,
      ],
      { problem: 'row -1 of the ledger is in no day: it was added later' },
    ],
    [
      'the log made to skip rows',
      ["update log_positions set ref = ref + 1 where source = 'exchanges'"],
      { problem: expect.stringContaining('more rows') },
    ],
  ])('shows %s', async (_, statements, problem) => {
    await tamper(...statements)
    expect((await verify()).problems).toContainEqual(expect.objectContaining(problem))
  })

  test('shows a leaf that is missing at the end of what is read at once', async () => {
    await grow(rows, 800)
    await tamper('delete from log_entries where leaf = 1023')
    expect((await verify()).problems).toContainEqual({ problem: 'a leaf is missing', leaf: 1023 })
  })

  test('without its newest rows, leaves and checkpoints is found by a checkpoint that was kept elsewhere, and by nothing else', async () => {
    const office = { name: 'office', text: signed.note }
    await tamper(
      'delete from exchange_audit where id > 290',
      'delete from log_entries where leaf > 280',
      'delete from log_checkpoints where size > 200',
      `update log_positions set ref = (select max(ref) from log_entries where kind = 1) where source = 'exchanges'`,
    )
    await tamper('delete from exchange_audit where id > (select max(ref) from log_entries where kind = 1)')
    expect((await verify()).problems).toEqual([])
    expect((await verify([office])).problems).toMatchObject([{ problem: expect.stringContaining('office has') }])
  })
})

describe('a node with an old copy', () => {
  let copy: Database
  let copyWriter: Writer
  beforeEach(async () => {
    const path = join(temporary.path, 'copy.db')
    await own.database.client.execute(`vacuum into '${path}'`)
    const opened = await openDatabase({ path, create: false, synchronous: 'normal' })
    if ('refused' in opened) throw new Error(opened.message)
    copy = opened
    copyWriter = createWriter(copy, () => {})
  })
  afterEach(async () => {
    await copyWriter.close()
    await copy.close()
  })
  const signOnCopy = async (into: string, count: number) => {
    const others = Array.from({ length: count }, (_, index) => copyWriter.appendAudit(auditRow(`other ${index}`)))
    await Promise.all(others)
    const auditLog = { mode: 'full', folder: into } as const
    const database = copy
    const other = createAuditLog({ database, writer: copyWriter, auditLog, masterKey, now: () => 2_000, log: () => {} })
    return other.checkpoint()
  }

  test('that sees the folder of the newer one begins its own log', async () => {
    await grow(rows, 40)
    expect((await signOnCopy(temporary.path, 40)).epoch).not.toBe(signed.epoch)
  })

  test('that sees nothing of the newer one signs the same size again, which checkpoints and witnesses show', async () => {
    const witness = createSignerKey('office', 'witness', Buffer.alloc(32, 3))
    const input = { logKey: key, witness, now: 5_000 }
    await grow(rows, 40)
    const known = await cosign({ ...input, folder, known: undefined })
    const elsewhere = join(temporary.path, 'elsewhere')
    const second = await signOnCopy(elsewhere, 40)
    expect([second.origin, second.size]).toEqual([signed.origin, signed.size])
    const against = [{ name: 'second', text: second.note }]
    const inFolder = await verifyFolder({ folder, keys: [key], against })
    expect(inFolder.problems).toEqual([expect.stringContaining('rewritten, or signed twice')])
    expect((await verify(against)).problems).toMatchObject([{ problem: expect.stringContaining('was rewritten') }])
    const cosigned = { ...input, folder: join(elsewhere, second.epoch), known: 'note' in known ? known.note : '' }
    expect(await cosign(cosigned)).toEqual({ refused: 'inconsistent' })
  })
})

/** The size of the first checkpoint. */
const oldest = () => {
  const names = readdirSync(join(folder, 'checkpoints'))
  return names.toSorted((one, other) => Number(one) - Number(other))[0] ?? ''
}

describe('the folder', () => {
  const check = (against: { name: string; text: string }[] = []) => verifyFolder({ folder, keys: [key], against })
  const change = (path: string, at: number) => {
    const bytes = readFileSync(join(folder, path))
    bytes[at] = (bytes[at] ?? 0) ^ 1
    writeFileSync(join(folder, path), bytes)
  }

  test('is right as it is', async () => {
    expect(await check()).toMatchObject({ problems: [], size: signed.size, checkpoints: 2, kinds: { exchange: rows } })
  })

  test.each<[string, () => void, string]>([
    ['an entry changed', () => change('tile/entries/000', 60), 'tile/0/000'],
    ['a hash changed', () => change('tile/0/000', 60), 'tile/0/000: its hashes are not those of the entries'],
    ['a hash of a higher level changed', () => change('tile/1/000.p/1', 3), 'tile/1/000.p/1'],
    ['a tile removed', () => rmSync(join(folder, 'tile/0/000')), 'tile/0/000: it is missing'],
    [
      'a tile cut',
      () => writeFileSync(join(folder, 'tile/entries/000'), 'x'),
      'tile/entries/000: it is missing or damaged',
    ],
    ['no checkpoint', () => rmSync(join(folder, 'checkpoint')), 'checkpoint: it is missing'],
    [
      'a changed checkpoint',
      () => change('checkpoint', signed.origin.length + 1),
      'checkpoint: its signature is wrong',
    ],
    [
      'an old checkpoint under another size',
      () => copyFileSync(join(folder, 'checkpoint'), join(folder, 'checkpoints/7')),
      'checkpoints/7: it has the size',
    ],
    [
      'a folder that went back',
      () => copyFileSync(join(folder, 'checkpoints', oldest()), join(folder, 'checkpoint')),
      'the log is shorter now',
    ],
  ])('shows %s', async (_, damage, problem) => {
    damage()
    expect((await check()).problems.join('\n')).toContain(problem)
  })

  test.each(['entries', '0'])('shows a change in a tile of level %s from when it had fewer entries', async (level) => {
    const older = `tile/${level}/001.p/${signed.size - 256}`
    await grow(rows, 20)
    expect((await check()).problems).toEqual([])
    change(older, 40)
    expect((await check()).problems).toEqual([expect.stringContaining(`${older}: it is damaged, or not how`)])
  })

  test('shows a change in a tile that is newer than the checkpoint', async () => {
    const older = signed.note
    await grow(rows, 20)
    writeFileSync(join(folder, 'checkpoint'), older)
    for (const name of readdirSync(join(folder, 'checkpoints')))
      if (name === String(signed.size)) rmSync(join(folder, 'checkpoints', name))
    expect((await check()).problems).toEqual([])
    const newer = `tile/0/001.p/${signed.size - 256}`
    change(newer, 3)
    expect((await check()).problems).toEqual([expect.stringContaining(newer)])
  })

  test('shows a checkpoint that the same key signed of the same size with other contents', async () => {
    const { origin, size } = parseCheckpoint(signed.note) ?? { origin: '', size: 0 }
    const seed = Buffer.alloc(32, 5)
    const liar = createSignerKey(origin, 'log', seed)
    const text = checkpointText({ origin, size, root: Buffer.alloc(32, 9) })
    const second = formatNote({ text, signatures: [signNote(text, liar, 0)] })
    const found = await verifyFolder({ folder, keys: [key, liar], against: [{ name: 'second', text: second }] })
    expect(found.problems).toEqual([expect.stringContaining('second: the entries have another root')])
  })
})

describe('a proof', () => {
  async function proofOf(id: number): Promise<string> {
    const { orm } = own.database
    const entry = (await readEntries(orm, 0, signed.size)).find(({ kind, ref }) => kind === 1 && ref === id)
    const [row] = await readLoggedRows(orm, 'exchanges', { after: id - 1, last: id, most: 1 })
    if (entry === undefined || row === undefined) throw new Error('no such row')
    const proven = { entry: entryText(entry), salt: entry.salt?.toString('hex') ?? '', row: row.line }
    return formatRowProof({
      index: entry.leaf,
      hashes: await hashesOf(orm, inclusionParts(entry.leaf, signed.size)),
      checkpoint: signed.note,
      row: proven,
    })
  }
  const withRow = (text: string, edit: (row: Record<string, string>) => Record<string, string>) =>
    text.replace(
      /^extra (.*)$/m,
      (_, extra) =>
        `extra ${Buffer.from(JSON.stringify(edit(JSON.parse(Buffer.from(extra, 'base64').toString())))).toString('base64')}`,
    )

  test('verifies with the key alone', async () => {
    const found = checkRowProof(await proofOf(17), key)
    expect(found).toMatchObject({ problem: undefined, kind: 'exchange', size: signed.size, origin: signed.origin })
    expect(found.problem === undefined && JSON.parse(found.row)).toMatchObject({ request_id: 'request 16' })
  })

  test.each<[string, (text: string) => string, string]>([
    [
      'another row',
      (text) => withRow(text, (row) => ({ ...row, row: (row.row ?? '').replace('request 16', 'request 15') })),
      'other_row',
    ],
    ['another salt', (text) => withRow(text, (row) => ({ ...row, salt: '0'.repeat(32) })), 'other_row'],
    [
      'another entry',
      (text) => withRow(text, (row) => ({ ...row, entry: (row.entry ?? '').replace('"exchange"', '"change"') })),
      'not_included',
    ],
    ['another index', (text) => text.replace(/^index \d+/m, 'index 3'), 'not_included'],
    ['another size', (text) => text.replace(`\n${signed.size}\n`, `\n${signed.size + 1}\n`), 'wrong_signature'],
    ['no row', (text) => text.replace(/^extra .*\n/m, ''), 'no_row'],
    ['a member more', (text) => withRow(text, (row) => ({ ...row, more: '' })), 'no_row'],
    ['no signature of the key', (text) => text.replace(/^— .*$/m, `— ${signed.origin} AAAAAAAA`), 'unsigned'],
    ['text in front', (text) => `x${text}`, 'malformed'],
    ['no text', () => '', 'empty'],
  ])('with %s is refused', async (_, edit, problem) => {
    const text = await proofOf(17)
    expect(checkRowProof(edit(text), key).problem).toBe(problem as never)
  })
})

describe('a witness', () => {
  const witness = createSignerKey('office', 'witness', Buffer.alloc(32, 3))
  const sign = (known: string | undefined, from = folder) =>
    cosign({ folder: from, logKey: key, witness, known, now: 5_000 })

  test('signs what grew from what it knows, and its signature is in the folder once it is brought back', async () => {
    const first = await sign(undefined)
    if ('refused' in first) throw new Error(first.refused)
    await grow(rows, 400)
    const second = await sign(first.note)
    if ('refused' in second) throw new Error(second.refused)
    expect(second.size).toBe(signed.size)
    writeFileSync(join(folder, 'checkpoint'), second.note)
    const found = await verifyFolder({ folder, keys: [key], witnessKeys: [witness] })
    expect(found).toMatchObject({ problems: [], witnesses: [{ name: 'office', at: 5_000 }] })
  })

  test('that is trusted and has signed no checkpoint is missed', async () => {
    const trusting = () => verifyFolder({ folder, keys: [key], witnessKeys: [witness] })
    expect((await trusting()).problems).toEqual([
      expect.stringContaining('no checkpoint has the signature of a witness'),
    ])
    const first = await sign(undefined)
    if ('refused' in first) throw new Error(first.refused)
    await grow(rows, 20)
    const against = [{ name: 'cosigned', text: first.note }]
    const found = await verifyFolder({ folder, keys: [key], witnessKeys: [witness], against })
    expect(found).toMatchObject({ problems: [], witnesses: [{ name: 'office', size: first.size }] })
  })

  test('has its signature in the folder once it was imported, though the log grew meanwhile', async () => {
    const { size, note } = await sign(undefined).then((each) => ('refused' in each ? { size: 0, note: '' } : each))
    await grow(rows, 20)
    const known = await findCheckpoint(own.database.orm, signed.epoch, size)
    if (known === undefined) throw new Error('There is no such checkpoint')
    await writer.write([updateCheckpointNote(own.database.orm, { ...known, note, cosignedAt: 5_000 })])
    signed = await log.checkpoint()
    const found = await verifyFolder({ folder, keys: [key], witnessKeys: [witness] })
    expect(found).toMatchObject({ problems: [], witnesses: [{ name: 'office', at: 5_000, size }] })
  })

  test('that has not signed the checkpoint of a proof is missed', async () => {
    const [row] = await readLoggedRows(own.database.orm, 'exchanges', { after: 0, last: 1, most: 1 })
    const proven = await proveRow(own.database.orm, signed, 'exchanges', row?.id ?? 0)
    expect(checkRowProof(proven?.proof ?? '', key)).toMatchObject({ problem: undefined })
    expect(checkRowProof(proven?.proof ?? '', key, [witness])).toEqual({ problem: 'no_witness' })
  })

  test.each<[string, () => void | Promise<void>, string]>([
    [
      'a shorter log',
      () => writeFileSync(join(folder, 'checkpoint'), readFileSync(join(folder, 'checkpoints', oldest()))),
      'shorter',
    ],
    [
      'missing tiles',
      async () => {
        await grow(rows, 300)
        rmSync(join(folder, 'tile/0'), { recursive: true })
      },
      'no_tiles',
    ],
    ['a checkpoint that is not signed', () => appendFileSync(join(folder, 'checkpoint'), 'x'), 'malformed'],
  ])('does not sign %s', async (_, damage, refused) => {
    const first = await sign(undefined)
    await damage()
    expect(await sign('refused' in first ? '' : first.note)).toEqual({ refused } as never)
  })

  test('does not sign a log that was rewritten, though its own key signed it', async () => {
    const first = await sign(undefined)
    cpSync(folder, `${folder}-kept`, { recursive: true })
    await tamper(
      "update exchange_audit set subject = 'other' where id = 17",
      'delete from log_entries',
      'delete from log_nodes',
      'delete from log_checkpoints',
      'delete from log_positions',
    )
    rmSync(folder, { recursive: true })
    rmSync(`${own.path}.audit-checkpoint`, { force: true })
    await grow(rows, 60)
    expect(await sign('refused' in first ? '' : first.note)).toEqual({ refused: 'inconsistent' })
  })
})
