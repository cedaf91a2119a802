// Uses of subject tokens that nodes share: a use goes only when its token has expired by the clock of the database and of the
// node, since a node whose clock is behind still accepts the token.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { dropExpiredSubjectTokens, dropSubjectTokens } from '../../../db/tables/used-subject-tokens.ts'
import { createLedgerQueue } from '../../../db/write/ledger-queue.ts'
import { isUsedElsewhere } from '../../../db/write/ledger-tables.ts'
import { createWriter, type Writer } from '../../../db/write/write.ts'
import { rejectionOf } from '../../support/rejection.ts'
import { createDatabase, insertOrganizationRows, organizationRows, type TestDatabase } from '../../support/rows.ts'

const minute = 60_000
const hour = 60 * minute
const acme = organizationRows('acme')
const issuerId = acme.issuer.id
let own: TestDatabase
let writer: Writer
let now: number
beforeEach(async () => {
  own = await createDatabase()
  writer = createWriter(own.database, () => {})
  await writer.write(insertOrganizationRows(own.database, acme))
  now = Date.now()
})
afterEach(async () => {
  await writer.close()
  await own.close()
})

/** A queue of a node that shares the database. */
function use(tokenIdSha256: string, expiresAt: number): Promise<void> {
  const { appendUsedToken } = createLedgerQueue((statements) => own.database.commit(statements), { isShared: true })
  return appendUsedToken({ issuerId, tokenIdSha256, expiresAt })
}
async function uses(): Promise<[unknown, unknown][]> {
  const { rows } = await own.database.client.execute(
    'select token_id_sha256 as id, expires_at from used_subject_tokens order by 1',
  )
  return rows.map(({ id, expires_at }) => [id, expires_at])
}

test('a token that has expired by the clock of the database is refused again where a clock is behind', async () => {
  await use('once', now - minute)
  expect(isUsedElsewhere(await rejectionOf(use('once', now - minute)))).toBe(true)
  expect(await uses()).toEqual([['once', now - minute]])
})

test('a later token under the same id does not free an earlier one before that has expired', async () => {
  await use('id', now + minute)
  expect(isUsedElsewhere(await rejectionOf(use('id', now + hour)))).toBe(true)
  expect(await uses()).toEqual([['id', now + minute]])
})

test('a later token under the id of one that has expired takes its place, and no other', async () => {
  await use('id', now - minute)
  await use('other', now - minute)
  await use('id', now + hour)
  expect(await uses()).toEqual([
    ['id', now + hour],
    ['other', now - minute],
  ])
})

const clocks: [what: string, nodeTime: (now: number) => number, kept: string[]][] = [
  ['is right', (time) => time, ['good']],
  ['is an hour ahead', (time) => time + hour, ['good']],
  ['is an hour behind', (time) => time - hour, ['expired', 'good']],
]
test.each(clocks)(
  'a sweep of a node whose clock %s keeps each use that any of both clocks needs',
  async (_, nodeTime, kept) => {
    await use('expired', now - minute)
    await use('good', now + minute)
    await writer.write([dropExpiredSubjectTokens(own.database.orm, nodeTime(now), { isShared: true })])
    expect((await uses()).map(([id]) => id)).toEqual(kept)
  },
)

test('of tokens that have expired at a node whose clock is ahead, those that are good at the database stay', async () => {
  await use('expired', now - minute)
  await use('good', now + minute)
  const both = ['expired', 'good'].map((tokenIdSha256) => ({ issuerId, tokenIdSha256 }))
  await writer.write(dropSubjectTokens(both, { isShared: true }))
  expect((await uses()).map(([id]) => id)).toEqual(['good'])
})
