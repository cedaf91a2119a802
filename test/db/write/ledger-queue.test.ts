// How rows share commits that are on their way to a database server.
import { expect, test } from 'bun:test'
import { setImmediate } from 'node:timers/promises'
import { LibsqlError } from '@libsql/core/api'
import { asUnreachable, unknownOutcome } from '../../../db/remote/server-errors.ts'
import { createLedgerQueue } from '../../../db/write/ledger-queue.ts'
import { auditRow, organizationRows, usageRow } from '../../support/rows.ts'
import { until } from '../../support/until.ts'

/** Queues ten rows, each in its own turn of the event loop. Commits end when `answer` is called with their number. */
async function appendTen(options: { isShared: boolean; holdingMilliseconds?: number }) {
  const commits: { rows: number; answer: () => void }[] = []
  const ledger = createLedgerQueue(
    (_, rows) => new Promise((resolve) => commits.push({ rows, answer: resolve })),
    options,
  )
  const rows: Promise<void>[] = []
  for (let count = 0; count < 10; count++) {
    rows.push(ledger.appendUsedToken({ issuerId: 'issuer', tokenIdSha256: String(count), expiresAt: 1 }))
    await setImmediate()
    await setImmediate()
  }
  const rowsOfCommits = () => commits.map((commit) => commit.rows)
  const answer = (index: number) => commits[index]?.answer()
  return { ledger, rows: Promise.all(rows), rowsOfCommits, answer }
}

test('while four commits are on their way to a server, new rows share the next', async () => {
  const { rows, rowsOfCommits, answer } = await appendTen({ isShared: true })
  expect(rowsOfCommits()).toEqual([1, 1, 1, 1])
  answer(1)
  await until('the fifth commit', () => rowsOfCommits().length >= 5, rowsOfCommits)
  expect(rowsOfCommits()).toEqual([1, 1, 1, 1, 6])
  for (const index of [0, 2, 3, 4]) answer(index)
  await rows
})

test('commits that take long hold no others', async () => {
  const { rows, rowsOfCommits, answer } = await appendTen({ isShared: true, holdingMilliseconds: 20 })
  await until('ten rows', () => rowsOfCommits().reduce((sum, count) => sum + count, 0) >= 10, rowsOfCommits)
  for (const index of rowsOfCommits().keys()) answer(index)
  await rows
})

test('the end of a server waits for no slot', async () => {
  const { ledger, rows, rowsOfCommits, answer } = await appendTen({ isShared: true })
  const closed = ledger.close()
  expect(rowsOfCommits()).toEqual([1, 1, 1, 1, 6])
  for (const index of rowsOfCommits().keys()) answer(index)
  await Promise.all([closed, rows])
})

test('a database file commits in each turn', async () => {
  const { rows, rowsOfCommits, answer } = await appendTen({ isShared: false })
  expect(rowsOfCommits()).toHaveLength(10)
  for (const index of rowsOfCommits().keys()) answer(index)
  await rows
})

test('a usage row keeps its patience in the commit that it shares with rows that have none', async () => {
  const patience: boolean[] = []
  const ledger = createLedgerQueue(async (_, rows, { isPatient }) => void patience.push(rows > 1 && isPatient), {
    isShared: true,
  })
  const acme = organizationRows('acme')
  await Promise.all([ledger.appendAudit(auditRow('one')), ledger.appendUsage(usageRow('two', acme))])
  await Promise.all([
    ledger.appendAudit(auditRow('three')),
    ledger.appendUsedToken({ issuerId: 'issuer', tokenIdSha256: 'x', expiresAt: 1 }),
  ])
  expect(patience).toEqual([true, false])
})

test('rows of a commit that can have been made are not sent again, and those of one that was refused are, one by one', async () => {
  const unreachable = asUnreachable(new Error('reset'))
  const refused = new LibsqlError('no such row', 'SQLITE_CONSTRAINT')
  const sent = async (error: Error) => {
    const sizes: number[] = []
    const ledger = createLedgerQueue(async (_, rows) => {
      sizes.push(rows)
      throw error
    })
    const rows = await Promise.allSettled([ledger.appendAudit(auditRow('one')), ledger.appendAudit(auditRow('two'))])
    expect(rows.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    return sizes
  }
  expect(await sent(unreachable)).toEqual([2])
  expect(await sent(unknownOutcome('batch', unreachable))).toEqual([2])
  expect(await sent(refused)).toEqual([2, 1, 1])
})
