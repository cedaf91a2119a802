// What the audit log costs: CPU time to cover an exchange beside a server that keeps no log, the longest hold while it does, bytes for each
// entry, a proof from many entries, and the verification of a folder with as many. BENCH_AUDIT_ENTRIES is their number, 10^7 by default.
import { hash, randomBytes } from 'node:crypto'
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createWriter, type Writer } from '../../db/write/write.ts'
import { createAuditLog } from '../../src/audit-log/audit-log.ts'
import { entryText } from '../../src/audit-log/entry.ts'
import { proveRow } from '../../src/audit-log/prove.ts'
import { checkpointText } from '../../src/audit-log/transparency/checkpoint.ts'
import { createFrontier } from '../../src/audit-log/transparency/frontier.ts'
import { hashLeaf, perfectHash } from '../../src/audit-log/transparency/merkle.ts'
import { createSignerKey, formatNote, type SignerKey, signNote } from '../../src/audit-log/transparency/note.ts'
import { formatBundle, tilePath, tileWidth } from '../../src/audit-log/transparency/tiles.ts'
import { verifyDatabase } from '../../src/audit-log/verify-database.ts'
import { verifyFolder } from '../../src/audit-log/verify-folder.ts'
import { createDatabase, insertOrganizationRows, organizationRows, type TestDatabase } from '../support/rows.ts'
import { benchFolder } from './measure.ts'
import { addRound, type Figures, type Result } from './report.ts'

export const manyEntries = Number(process.env.BENCH_AUDIT_ENTRIES ?? 10_000_000)
const exchanges = 100_000
const at = 1_795_000_000_000
const masterKey = { kind: 'value', hex: 'a'.repeat(64) } as const

export async function benchAudit(note: (text: string) => void): Promise<Result[]> {
  const results: Result[] = []
  const add = (load: string, figures: Figures) => {
    const result: Result = { bench: 'audit', load, concurrency: 0, arm: 'latchkey', figures: {} }
    addRound(result, figures)
    results.push(result)
  }
  await measureCovering(add)
  await measureProof(add)
  await measureFolder(add)
  note(`${manyEntries} entries for a proof and a folder`)
  return results
}

type Add = (load: string, figures: Figures) => void

const cpuMilliseconds = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

async function open(): Promise<TestDatabase & { writer: Writer }> {
  const own = await createDatabase()
  const writer = createWriter(own.database, () => {})
  await writer.write(insertOrganizationRows(own.database, organizationRows('acme')))
  return { ...own, writer }
}

const exchangeRow = (
  ids: string,
  rows: string,
) => `insert into exchange_audit (id, at, request_id, outcome, organization_id, policy_id,
    issuer_id, key_id, policy_named, subject, subject_token_id, subject_token_sha256, access_token_id, access_token_expires_at,
    client_address, recorded_claims)
  select ${ids}, ${at}, '01a1feb6-0bde-7947-b3a3-' || printf('%012x', ${ids}), 'issued', 'acme', 'acme-policy', 'acme-issuer', 'acme-key',
    'acme-policy', 'repo:acme/service:ref:refs/heads/main', lower(hex(randomblob(16))), lower(hex(randomblob(32))),
    lower(hex(randomblob(16))), ${at + 900_000}, '10.0.0.7', '{"environment":"production","ref":"refs/heads/main","actor":"someone"}'
  from ${rows}`
const numbers = (count: number) =>
  `(with recursive n(value) as (select 1 union all select value + 1 from n where value < ${count}) select value from n)`

/** Rows are covered as a server covers them, into a folder too. A hold counts CPU time of the process: other processes do not lengthen it. */
async function measureCovering(add: Add): Promise<void> {
  const { database, writer, close } = await open()
  await database.client.execute(exchangeRow('value', numbers(exchanges)))
  const pages = async () =>
    Number((await database.client.execute('select page_count from pragma_page_count')).rows[0]?.[0])
  const folder = join(benchFolder(), 'log')
  const auditLog = { mode: 'full', folder } as const
  const log = createAuditLog({ database, writer, auditLog, masterKey, now: () => at, log: () => {} })
  const pagesBefore = await pages()
  const hold = watchHolds()
  const cpuBefore = cpuMilliseconds()
  const signed = await log.checkpoint()
  const cpu = cpuMilliseconds() - cpuBefore
  add('an exchange beside off', { microseconds: (cpu * 1_000) / exchanges, longestMilliseconds: hold.end() })
  add('an entry in the database', { bytes: (((await pages()) - pagesBefore) * 4_096) / signed.size })
  add('an entry in the folder', { bytes: (await sizeOf(folder)) / signed.size })
  const [cpuVerify, startedAt] = [cpuMilliseconds(), performance.now()]
  const found = await verifyDatabase(database.reader, { epoch: signed.epoch, mode: 'full' })
  if (found.problems.length > 0) throw new Error(found.problems[0]?.problem)
  // 10^7 in 60 seconds: the rows are read in another thread, so the clock counts.
  add('an entry verified in the database', { microseconds: ((performance.now() - startedAt) * 1_000) / signed.size })
  add('CPU time of that', { microseconds: ((cpuMilliseconds() - cpuVerify) * 1_000) / signed.size })
  await writer.close()
  await close()
}

function watchHolds(): { end: () => number } {
  let [longest, cpu] = [0, cpuMilliseconds()]
  const timer = setInterval(() => {
    const now = cpuMilliseconds()
    longest = Math.max(longest, now - cpu)
    cpu = now
  }, 1)
  return {
    end: () => {
      clearInterval(timer)
      return longest
    },
  }
}

async function sizeOf(folder: string): Promise<number> {
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((each) => each.isFile())
  const sizes = await Promise.all(files.map(({ parentPath, name }) => stat(join(parentPath, name))))
  return sizes.reduce((sum, { size }) => sum + size, 0)
}

/** The tables have as many rows as a log of that size, with random hashes: what a proof reads does not depend on them. */
async function measureProof(add: Add): Promise<void> {
  const { database, writer, close } = await open()
  const { client } = database
  const row = Math.floor(manyEntries * 0.77)
  await client.execute(exchangeRow(String(row), '(select 1)'))
  await client.execute(
    `insert into log_entries select value - 1, 1, value, ${at}, randomblob(16), randomblob(32) from ${numbers(manyEntries)}`,
  )
  for (
    let [level, count] = [1, Math.floor(manyEntries / tileWidth)];
    count > 0;
    level += 1, count = Math.floor(count / tileWidth)
  )
    await client.execute(`insert into log_nodes select ${level}, value - 1, randomblob(32) from ${numbers(count)}`)
  const times: number[] = []
  for (let run = 0; run < 20; run += 1) {
    const startedAt = performance.now()
    const found = await proveRow(database.reader, { size: manyEntries, note: 'note\n' }, 'exchanges', row)
    if (found?.proof === undefined) throw new Error('There is no proof')
    times.push(performance.now() - startedAt)
  }
  add('a proof', {
    milliseconds: times.toSorted((one, other) => one - other)[10] ?? 0,
    longestMilliseconds: Math.max(...times),
  })
  await writer.close()
  await close()
}

async function measureFolder(add: Add): Promise<void> {
  const folder = join(benchFolder(), 'many')
  const key = createSignerKey('bench', 'log', randomBytes(32))
  await writeLog(folder, key)
  const startedAt = performance.now()
  let steps = 0
  const found = await verifyFolder({ folder, keys: [key] }, () => {
    steps += 1
  })
  const milliseconds = performance.now() - startedAt
  if (found.problems.length > 0 || found.size !== manyEntries || steps < 2) throw new Error(found.problems[0])
  add('a folder verified', { milliseconds })
  await rm(folder, { recursive: true })
}

async function writeLog(folder: string, key: SignerKey): Promise<void> {
  const frontier = createFrontier()
  const levels: Uint8Array[][] = []
  const write = async (path: string, bytes: Uint8Array | string) => {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), bytes)
  }
  const addHash = async (level: number, hashes: Uint8Array[], index: number): Promise<void> => {
    await write(tilePath({ level, index, width: hashes.length }), Buffer.concat(hashes))
    if (hashes.length < tileWidth) return
    const above = [...(levels[level + 1] ?? []), perfectHash(hashes)]
    levels[level + 1] = above.length === tileWidth ? [] : above
    if (above.length === tileWidth) await addHash(level + 1, above, Math.floor(index / tileWidth))
  }
  for (let start = 0; start < manyEntries; start += tileWidth) {
    const width = Math.min(tileWidth, manyEntries - start)
    const entries = Array.from({ length: width }, (_, index) => {
      const commitment = hash('sha256', String(start + index), 'buffer')
      return Buffer.from(entryText({ kind: 1, at: at + start, commitment }))
    })
    await write(tilePath({ level: 'entries', index: start / tileWidth, width }), formatBundle(entries))
    const leaves = entries.map(hashLeaf)
    for (const leaf of leaves) frontier.add(leaf)
    await addHash(0, leaves, start / tileWidth)
  }
  for (const [level, hashes] of levels.entries()) {
    if (level === 0 || hashes === undefined || hashes.length === 0) continue
    const index = Math.floor(Math.floor(manyEntries / tileWidth ** level) / tileWidth)
    await write(tilePath({ level, index, width: hashes.length }), Buffer.concat(hashes))
  }
  const text = checkpointText({ origin: key.name, size: manyEntries, root: frontier.root() })
  await write('checkpoint', formatNote({ text, signatures: [signNote(text, key, at)] }))
}
