// The proof of an inference request: its reader needs the file and the verifier key, and each part that is changed is found. Requests that
// nothing proves are refused, with the reason. The tests change one database, in their order.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { listAuditKeys } from '../../db/tables/audit-checkpoints.ts'
import { createWriter, type Writer } from '../../db/write/write.ts'
import { verifierOf } from '../../src/audit-log/audit-key.ts'
import { type AuditLog, createAuditLog } from '../../src/audit-log/audit-log.ts'
import { openDayPlace } from '../../src/audit-log/day-place.ts'
import { eraseSubject } from '../../src/audit-log/erase.ts'
import { proveRequest } from '../../src/audit-log/prove-request.ts'
import { checkRowProof } from '../../src/audit-log/row-proof.ts'
import { hashLeafText } from '../../src/audit-log/transparency/merkle.ts'
import type { VerifierKey } from '../../src/audit-log/transparency/note.ts'
import {
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
  usageRow,
} from '../support/rows.ts'

const day = 24 * 60 * 60 * 1_000
const start = Date.UTC(2026, 10, 20)
const [acme, globex] = [organizationRows('acme'), organizationRows('globex')]

let own: TestDatabase
let writer: Writer
let log: AuditLog
let now: number
let key: VerifierKey
let proof: string
beforeAll(async () => {
  now = start + day + 60 * 60_000
  own = await createDatabase()
  const { database } = own
  writer = createWriter(database, () => {})
  await writer.write([...insertOrganizationRows(database, acme), ...insertOrganizationRows(database, globex)])
  const masterKey = { kind: 'value', hex: 'a'.repeat(64) } as const
  const auditLog = { mode: 'full', folder: undefined } as const
  log = createAuditLog({ database, writer, auditLog, masterKey, now: () => now, log: () => {} })
  for (let id = 1; id <= 7; id += 1) await add(start + id, id % 3 === 0 ? globex : acme, `subject ${id}`)
  await add(start + day + 1)
  // Committed after its day was closed, so that another record has it.
  const { origin } = await log.checkpoint()
  await add(start + 9)
  const [row] = await listAuditKeys(database.orm)
  key = verifierOf(row ?? { publicKey: '' }, origin)
  proof = await proofOf(4)
})
afterAll(async () => {
  await writer.close()
  await own.close()
})

/** Of the rows, in the order of their ids. */
const ats: number[] = []
const add = (at: number, of = acme, subject: string | null = null) => {
  ats.push(at)
  const more = { at, subject, issuerId: of.issuer.id, costNanodollars: 10 }
  return writer.appendUsage({ ...usageRow(`request ${at - start}`, of), ...more })
}
async function prove(id: number, of = acme) {
  const signed = await log.checkpoint()
  return proveRequest(own.database.reader, signed, { id, at: ats[id - 1] ?? 0, organizationId: of.organization.id })
}
async function proofOf(id: number, of = acme): Promise<string> {
  const found = await prove(id, of)
  if (typeof found === 'string') throw new Error(found)
  return found.proof
}
/** Who has the file can remove triggers. */
async function tamper(sql: string): Promise<void> {
  const { rows } = await own.database.client.execute("select name from sqlite_master where type = 'trigger'")
  const all = [...rows.map(({ name }) => `drop trigger ${name}`), sql]
  await writer.write(all.map((each) => ({ toSQL: () => ({ sql: each, params: [] }) })))
}

test.each([1, 2, 4, 5, 7])('request %d of a closed day is proven with the key alone', async (id) => {
  const found = checkRowProof(await proofOf(id), key)
  if (found.problem !== undefined) throw new Error(found.problem)
  const { kind, request } = found
  expect([kind, request?.day, request?.rows]).toEqual(['usage_day', '2026-11-20', 5])
  expect(JSON.parse(request?.row ?? '')).toMatchObject({ id, request_id: `request ${id}`, cost_nanodollars: 10 })
})

test('a request of another organization is in the tree of that', async () => {
  const found = checkRowProof(await proofOf(3, globex), key)
  expect(found).toMatchObject({ problem: undefined, request: { index: 0, rows: 2 } })
})

type Extra = { entry: string; salt: string; row: string; request: { row: string; index: number; hashes: string[] } }
const withExtra = (text: string, edit: (extra: Extra) => unknown) =>
  text.replace(/^extra (.*)$/m, (_, extra) => {
    const edited = edit(JSON.parse(Buffer.from(extra, 'base64').toString()))
    return `extra ${Buffer.from(JSON.stringify(edited)).toString('base64')}`
  })
const withRequest = (edit: (request: Extra['request']) => object) => (text: string) =>
  withExtra(text, (extra) => ({ ...extra, request: { ...extra.request, ...edit(extra.request) } }))

test.each<[string, (text: string) => string, string]>([
  ['another cost', withRequest(({ row }) => ({ row: row.replace(':10,', ':11,') })), 'other_request'],
  ['another subject', withRequest(({ row }) => ({ row: row.replace('subject 4', 'subject 5') })), 'other_request'],
  ['another place', withRequest(({ index }) => ({ index: index + 1 })), 'other_request'],
  ['a hash less', withRequest(({ hashes }) => ({ hashes: hashes.slice(1) })), 'other_request'],
  [
    'a hash twice',
    withRequest(({ hashes: [first, ...rest] }) => ({ hashes: [first, first, ...rest] })),
    'other_request',
  ],
  ['hashes exchanged', withRequest(({ hashes }) => ({ hashes: hashes.toReversed() })), 'other_request'],
  ['a hash of another length', withRequest(({ hashes }) => ({ hashes: [...hashes, 'AAAA'] })), 'other_request'],
  ['a row that is no JSON', withRequest(() => ({ row: 'x' })), 'other_request'],
  ['a negative place', withRequest(() => ({ index: -1 })), 'no_row'],
  ['a member more', withRequest(() => ({ more: '' })), 'no_row'],
  [
    'other totals of the day',
    (text) => withExtra(text, (extra) => ({ ...extra, row: extra.row.replace('rows', 'Rows') })),
    'other_row',
  ],
  ['another salt', (text) => withExtra(text, (extra) => ({ ...extra, salt: '0'.repeat(32) })), 'other_row'],
  ['another entry', (text) => text.replace(/^index \d+/m, 'index 0'), 'not_included'],
  ['another checkpoint', (text) => text.replace(/^(latchkey\/.*\n)(\d+)$/m, '$19$2'), 'wrong_signature'],
])('with %s, a proof is refused', (_, edit, problem) => {
  const edited = edit(proof)
  expect(edited).not.toBe(proof)
  expect(checkRowProof(edited, key).problem as string).toBe(problem)
})

test.each([
  ['of the same day and organization', {}, '2026-11-20'],
  ['of another day', { at: start - 1 }, undefined],
  ['of another organization', { organization_id: 'globex' }, undefined],
])('a record that has a row %s in its tree proves it only for its own day', (_, more, day) => {
  const row = JSON.stringify({ at: start, organization_id: 'acme', ...more })
  const root = Buffer.from(hashLeafText(row)).toString('hex')
  const body = JSON.stringify({ day: '2026-11-20', organization_id: 'acme', rows: 1, root })
  const record = JSON.stringify({ kind: 'usage_day', body })
  expect(openDayPlace(record, { row, index: 0, hashes: [] })?.day).toBe(day)
  const other = JSON.stringify({ kind: 'erasure', body })
  expect(openDayPlace(other, { row, index: 0, hashes: [] })).toBeUndefined()
})

test('a request of a day that is not closed has no proof', async () => {
  expect(await prove(8)).toBe('open')
})

test('a request that was committed after its day was closed is proven by the record that has it', async () => {
  expect(await prove(9)).toBe('open')
  now += day
  const found = checkRowProof(await proofOf(9), key)
  expect(found).toMatchObject({ problem: undefined, request: { day: '2026-11-20', index: 0, rows: 1 } })
})

test('the place of a request proves nothing beside a record of another day or kind', async () => {
  const other = await proofOf(8)
  const extraOf = (text: string) => JSON.parse(Buffer.from(/^extra (.*)$/m.exec(text)?.[1] ?? '', 'base64').toString())
  const moved = withExtra(other, (extra) => ({ ...extra, request: extraOf(proof).request }))
  expect(checkRowProof(moved, key).problem).toBe('other_request')
})

test('an erasure on its day leaves a request without a new proof, and with those that it has', async () => {
  const { orm, reader } = own.database
  const context = { orm, reader, writer, mode: 'full', now: () => now } as const
  const by = { actor: 'local', key_id: null, os_user: null }
  const reason = { because: 'x', by, organization_id: acme.organization.id, issuer_id: acme.issuer.id }
  await eraseSubject(context, { issuerId: acme.issuer.id, subject: 'subject 5' }, reason)
  expect(await prove(4)).toBe('erased')
  expect(checkRowProof(proof, key)).toMatchObject({ problem: undefined, request: { index: 2 } })
  expect(checkRowProof(await proofOf(6, globex), key).problem).toBeUndefined()
})

const insertedArchive = `insert into archives (kind, before, folder, file, state, first_row_id, last_row_id, first_at, last_at, row_count,
  organizations, created_at, bytes, sha256) values ('usage', 1, '', '', 'finished', 1, 3, 0, 0, 3, '[]', 0, 1, '${'0'.repeat(64)}')`
test.each([
  ['was changed', 'update usage set cost_nanodollars = 0 where id = 3', 'different'],
  ['is gone', 'delete from usage where id = 6', 'different'],
  ['is gone with those before it', 'delete from usage where id <= 3', 'different'],
  ['is in an archive', insertedArchive, 'archived'],
])('no request of a day is proven of which a row %s', async (_, sql, problem) => {
  await tamper(sql)
  const found = await prove(6, globex)
  expect(found).toBe(problem as never)
})
