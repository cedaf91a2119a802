// When a commit over a connection that breaks is repeated, and what is reported of it in the end. Its clock is the test's.
import { describe, expect, test } from 'bun:test'
import { LibsqlBatchError, LibsqlError, type ResultSet } from '@libsql/client'
import { type CommitOptions, createCommits, dropOldBatches, type Send } from '../../../db/remote/commit-once.ts'
import { asNotReached, asUnreachable, isUnknownOutcome, isUnreachable } from '../../../db/remote/server-errors.ts'
import { databaseTime } from '../../../db/schema/node-schema.ts'
import { createLedgerQueue } from '../../../db/write/ledger-queue.ts'
import type { BoundStatement } from '../../../db/write/rows.ts'
import { watchedCommits } from '../../../scripts/shared/watched-commits.ts'
import { rejectionOf } from '../../support/rejection.ts'
import { createDatabase } from '../../support/rows.ts'
import { until } from '../../support/until.ts'

const second = 1_000
const lost = () => asUnreachable(new Error('The socket was closed'))
const refused = () => asNotReached(new Error('ECONNREFUSED'))
const locked = () => new LibsqlError('database is locked', 'SQLITE_BUSY')
const repeated = () => new LibsqlError('UNIQUE constraint failed: batches.id', 'SQLITE_CONSTRAINT')

/** The answer to the question whether a commit with this id was made. */
const rowsFound = (count: number) => () => [{ rows: new Array(count).fill({}) } as unknown as ResultSet]

/** Each attempt ends as `state.outcome` says; undefined is a commit. */
function start(outcome: (() => Error) | undefined, more: Partial<CommitOptions> = {}, answer = rowsFound(0)) {
  const state = { outcome, now: 0, attempts: 0, asked: 0, ids: new Set<unknown>(), unknown: [] as string[], answer }
  const send: Send = async ([first]) => {
    if (first?.sql.startsWith('select 1 from batches')) {
      state.asked += 1
      return state.answer()
    }
    state.attempts += 1
    if (Array.isArray(first?.args)) state.ids.add(first.args[0])
    if (state.outcome !== undefined) throw state.outcome()
    return []
  }
  const commits = createCommits({
    send,
    monotonic: () => state.now,
    onUnknown: (batchId) => state.unknown.push(batchId),
    patienceMilliseconds: 2 * second,
    ...more,
  })
  const attempt = async () => {
    const { attempts } = state
    await until('another attempt', () => state.attempts > attempts)
  }
  return { state, commits, attempt }
}

for (const [what, outcome] of [
  ['is committed then', undefined],
  ['was committed before', repeated],
] as const)
  test(`a commit without a response for minutes is repeated under its id, and succeeds if it ${what}`, async () => {
    const { state, commits, attempt } = start(lost)
    const committed = commits.commit([])
    await attempt()
    expect(commits.isOverdue()).toBe(false)
    state.now = 29 * 60 * second
    await attempt()
    expect(commits.isOverdue()).toBe(true)
    state.outcome = outcome
    expect(await committed).toEqual(outcome === undefined ? [] : undefined)
    expect(commits.isOverdue()).toBe(false)
    expect([state.ids.size, state.unknown]).toEqual([1, []])
  })

test('a commit that the server refuses for long makes no request wait: it was certainly not made', async () => {
  const { state, commits, attempt } = start(locked)
  const committed = rejectionOf(commits.commit([]))
  await attempt()
  // The attempt that is running may be the last one.
  state.now = 11 * second
  expect(commits.isOverdue()).toBe(false)
  await committed
})

test('a process that was stopped for hours between two attempts does not send the commit again', async () => {
  const { state, commits } = start(() => {
    setImmediate(() => {
      state.now = 3 * 60 * 60 * second
    })
    return lost()
  })
  expect(isUnknownOutcome(await rejectionOf(commits.commit([])))).toBe(true)
  expect([state.attempts, state.unknown.length]).toEqual([1, 1])
})

test('a commit that the server keeps refusing fails after ten seconds, and was certainly not made', async () => {
  const { state, commits, attempt } = start(locked)
  const failed = commits.commit([]).catch((error: unknown) => error)
  await attempt()
  state.now = 11 * second
  const error = await failed
  expect([isUnreachable(error), isUnknownOutcome(error), state.unknown]).toEqual([true, false, []])
})

for (const [what, isPatient, seconds] of [
  ['', false, 2],
  [' and records what has happened', true, 10],
] as const)
  test(`a commit that was never sent${what} fails after ${seconds} seconds, and was certainly not made`, async () => {
    const { state, commits, attempt } = start(refused)
    const failed = commits.commit([], { isPatient }).catch((error: unknown) => error)
    state.now = seconds * second - 1
    await attempt()
    await attempt()
    state.now = seconds * second + 1
    const error = await failed
    expect([isUnreachable(error), isUnknownOutcome(error), state.unknown]).toEqual([true, false, []])
  })

test('a refused connection after a lost response leaves the outcome unknown', async () => {
  const { state, commits, attempt } = start(lost)
  const committed = commits.commit([])
  await attempt()
  state.outcome = refused
  state.now = 11 * second
  await attempt()
  expect(commits.isOverdue()).toBe(true)
  state.outcome = repeated
  expect(await committed).toBeUndefined()
})

test('an error of the server after a lost response is its outcome', async () => {
  const { state, commits, attempt } = start(lost)
  const failed = commits.commit([]).catch((error: unknown) => error)
  await attempt()
  state.outcome = () => new LibsqlBatchError('malformed JSON', 1, 'SQLITE_UNKNOWN')
  expect(String(await failed)).toContain('malformed JSON')
  expect(state.asked).toBe(0)
})

test('a failed attempt after a lost response is repeated, because the lost one can still arrive', async () => {
  const { state, commits, attempt } = start(lost)
  const committed = commits.commit([])
  await attempt()
  state.outcome = () => new LibsqlError('disk I/O error', 'SQLITE_IOERR')
  await attempt()
  await attempt()
  state.outcome = repeated
  expect(await committed).toBeUndefined()
  expect([state.ids.size, state.unknown]).toEqual([1, []])
})

describe('a commit that ends with an error that can follow it', () => {
  const errors: Error[] = [
    new LibsqlError('disk I/O error', 'SQLITE_IOERR'),
    new LibsqlBatchError('interrupted', 1, 'SQLITE_INTERRUPT'),
    new LibsqlError('Response is too large', 'RESPONSE_TOO_LARGE'),
    new LibsqlError('cannot commit', 'SQLITE_CONSTRAINT'),
    new TypeError('Cannot read this response'),
  ]
  for (const error of errors) {
    test(`succeeds if the server has it (${error.message})`, async () => {
      const { state, commits } = start(() => error, {}, rowsFound(1))
      expect(await commits.commit([])).toBeUndefined()
      expect([state.attempts, state.asked]).toEqual([1, 1])
    })

    test(`fails with that error if the server does not have it (${error.message})`, async () => {
      const { state, commits } = start(() => error)
      expect<unknown>(await rejectionOf(commits.commit([]))).toBe(error)
      expect([state.attempts, state.asked, state.unknown]).toEqual([1, 1, []])
    })
  }

  test('is repeated under its id if the server does not say whether it has it', async () => {
    const answer = () => {
      throw lost()
    }
    const { state, commits, attempt } = start(() => new LibsqlError('disk I/O error', 'SQLITE_IOERR'), {}, answer)
    const committed = commits.commit([])
    await attempt()
    await attempt()
    state.now = 11 * second
    expect(commits.isOverdue()).toBe(true)
    state.outcome = repeated
    expect(await committed).toBeUndefined()
    expect(state.ids.size).toBe(1)
  })
})

for (const [what, after, ends, more] of [
  ['ten seconds into the end of the process', 11 * second, true, {}],
  ['half an hour', 31 * 60 * second, false, {}],
  ['two minutes of a command', 121 * second, false, watchedCommits],
] as const)
  test(`after ${what} the outcome is reported as unknown`, async () => {
    const { state, commits, attempt } = start(lost, more)
    const failed = commits.commit([]).catch((error: unknown) => error)
    await attempt()
    if (ends) commits.beginEnd()
    state.now = after
    const error = await failed
    expect([isUnreachable(error), isUnknownOutcome(error)]).toEqual([false, true])
    expect(state.unknown).toEqual([String([...state.ids][0])])
    expect(String(error)).toContain(String(state.unknown[0]))
    await commits.settle()
  })

test('rows that share a commit with an unknown outcome are not sent again one by one', async () => {
  const { state, commits, attempt } = start(lost)
  const ledger = createLedgerQueue(async (statements) => void (await commits.commit(statements)))
  const row = { issuerId: 'issuer', tokenIdSha256: 'x', expiresAt: 1 }
  const both = Promise.allSettled([ledger.appendUsedToken(row), ledger.appendUsedToken(row)])
  await attempt()
  commits.beginEnd()
  state.now = 11 * second
  expect((await both).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(state.ids.size).toBe(1)
})

test('the id of a commit is kept for an hour by the clock of the database', async () => {
  const { database, close } = await createDatabase()
  const insert = (id: string, minutes: number): BoundStatement => ({
    sql: `insert into batches (id, at) values (?, ${databaseTime} - ${minutes} * 60000)`,
    args: [id],
  })
  await database.commit([insert('old', 61), insert('kept', 59), insert('new', 0), dropOldBatches])
  const { rows } = await database.client.execute(
    "select id from batches where id in ('old', 'kept', 'new') order by number",
  )
  expect(rows.map(({ id }) => id)).toEqual(['kept', 'new'])
  await close()
})
