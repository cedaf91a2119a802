// What the database keeps of subject tokens and of key sets: until the very end of a token, and the newest set of an issuer.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { IssuerKeySet } from '../../../db/schema/schema.ts'
import { listIssuers, putIssuerKeySet, readIssuerKeySet } from '../../../db/tables/issuers.ts'
import {
  dropExpiredSubjectTokens,
  findUsedSubjectToken,
  listUsedSubjectTokens,
} from '../../../db/tables/used-subject-tokens.ts'
import { addUsageSums } from '../../../db/write/usage-sums.ts'
import { createWriter, type Writer } from '../../../db/write/write.ts'
import { rowsInFile } from '../../support/database-file.ts'
import {
  createDatabase,
  insertOrganizationRows,
  organizationRows,
  type TestDatabase,
  usageRow,
} from '../../support/rows.ts'

const acme = organizationRows('acme')
let own: TestDatabase
let writer: Writer
beforeEach(async () => {
  own = await createDatabase()
  writer = createWriter(own.database, () => {})
  await writer.write(insertOrganizationRows(own.database, acme))
})
afterEach(async () => {
  await writer.close()
  await own.close()
})

const issuerId = acme.issuer.id

test('a used token counts up to its expiry, and is dropped from then on', async () => {
  const { orm } = own.database
  const times = [999, 1_000, 1_001, 60_000]
  for (const expiresAt of times) await writer.appendUsedToken({ issuerId, tokenIdSha256: `${expiresAt}`, expiresAt })
  const known = (await listUsedSubjectTokens(orm, 1_000)).map(({ expiresAt }) => expiresAt)
  expect(known.toSorted((one, other) => one - other)).toEqual([1_001, 60_000])
  const found = await Promise.all(times.map((time) => findUsedSubjectToken(orm, issuerId, `${time}`, 1_000)))
  expect(found.map((row) => row?.expiresAt)).toEqual([undefined, undefined, 1_001, 60_000])
  expect(await findUsedSubjectToken(orm, 'another', '60000', 1_000)).toBeUndefined()
  await writer.write([dropExpiredSubjectTokens(orm, 1_000)])
  const left = rowsInFile(own.path, 'select expires_at from used_subject_tokens order by 1')
  expect(left.map((row) => row.expires_at)).toEqual([1_001, 60_000])
})

test('a token that is used again is noted with its later end', async () => {
  for (const expiresAt of [5, 9]) await writer.appendUsedToken({ issuerId, tokenIdSha256: 'same', expiresAt })
  expect(rowsInFile(own.path, 'select expires_at from used_subject_tokens')).toEqual([{ expires_at: 9 }])
})

test('the newest key set of an issuer takes the place of the one before', async () => {
  const { orm } = own.database
  const keySet: IssuerKeySet = { issuerId, source: 'one', jwks: '{"keys":[]}', fetchedAt: 1, freshUntil: 2 }
  const newer = { ...keySet, source: 'two', jwks: '{"keys":[{}]}', fetchedAt: 3, freshUntil: 4 }
  await writer.write([putIssuerKeySet(orm, keySet)])
  await writer.write([putIssuerKeySet(orm, newer)])
  expect(await readIssuerKeySet(orm, issuerId)).toEqual(newer)
  expect((await listIssuers(orm, [issuerId])).map(({ lastKeySet }) => lastKeySet)).toEqual([newer])
})

test('the totals of a day never leave the whole numbers, however much is added', async () => {
  const most = Number.MAX_SAFE_INTEGER
  const row = {
    ...usageRow('a', acme),
    promptTokens: most,
    completionTokens: most,
    totalTokens: most,
    costNanodollars: most,
  }
  for (let index = 0; index < 3; index++) await writer.appendUsage(row)
  await Promise.all([writer.appendUsage(row), writer.appendUsage(row)])
  await writer.write(addUsageSums)
  const columns = ['prompt_tokens', 'completion_tokens', 'total_tokens', 'cost_nanodollars']
  const wanted = columns.map((name) => `${name} = ${most} as ${name}`).join(', ')
  expect(rowsInFile(own.path, `select requests, ${wanted} from day_totals`)).toEqual([
    { requests: 5, ...Object.fromEntries(columns.map((name) => [name, 1])) },
  ])
})
