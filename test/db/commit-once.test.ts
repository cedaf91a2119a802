// When a commit over a connection that breaks is repeated, and what is reported of it in the end. Its clock is the test's.
import { expect, test } from 'bun:test'
import { LibsqlError } from '@libsql/client'
import {
  asNotReached,
  asUnreachable,
  type CommitOptions,
  createCommits,
  isUnknownOutcome,
  isUnreachable,
  type Send,
} from '../../db/commit-once.ts'
import { createLedgerQueue } from '../../db/ledger-queue.ts'
import { watchedCommits } from '../../scripts/shared/watched-commits.ts'
import { until } from '../support/until.ts'

const second = 1_000
const lost = () => asUnreachable(new Error('The socket was closed'))
const refused = () => asNotReached(new Error('ECONNREFUSED'))
const locked = () => new LibsqlError('database is locked', 'SQLITE_BUSY')
const repeated = () => new LibsqlError('UNIQUE constraint failed: batches.id', 'SQLITE_CONSTRAINT')

/** Each attempt ends as `state.outcome` says; undefined is a commit. */
function start(outcome: (() => Error) | undefined, more: Partial<CommitOptions> = {}) {
  const state = { outcome, now: 0, attempts: 0, ids: new Set<unknown>(), unknown: [] as string[] }
  const send: Send = async ([first]) => {
    state.attempts += 1
    if (Array.isArray(first?.args)) state.ids.add(first.args[0])
    if (state.outcome !== undefined) throw state.outcome()
    return []
  }
  const commits = createCommits({
    send,
    monotonic: () => state.now,
    onUnknown: (batchId) => state.unknown.push(batchId),
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
  state.outcome = () => new LibsqlError('malformed JSON', 'SQLITE_UNKNOWN')
  expect(String(await failed)).toContain('malformed JSON')
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
