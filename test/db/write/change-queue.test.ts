// Admin changes share a transaction when they wait together. Each fails alone, and a change is planned after those before it are in force.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { isStale } from '../../../db/remote/refresh.ts'
import { asNotReached, asUnreachable, unknownOutcome } from '../../../db/remote/server-errors.ts'
import type { Revision } from '../../../db/remote/shared-database.ts'
import { insertOrganization } from '../../../db/tables/organizations.ts'
import { changesPerCommitMax, createChangeQueue } from '../../../db/write/change-queue.ts'
import { createBulk } from '../../../db/write/rows.ts'
import { createWriter, type Writer } from '../../../db/write/write.ts'
import { busyError, type Watched, watchBatches } from '../../support/batches.ts'
import { rowsInFile } from '../../support/database-file.ts'
import { createDatabase, organizationRows, type TestDatabase } from '../../support/rows.ts'

const { organization: row } = organizationRows('acme')

let own: TestDatabase
let watched: Watched
let writer: Writer
let inForce: string[]
beforeEach(async () => {
  own = await createDatabase()
  watched = watchBatches(own.database)
  writer = createWriter(watched.database, () => {})
  inForce = []
})
afterEach(async () => {
  await writer.close()
  await own.close()
})

const insert = (name: string) => insertOrganization(own.database.orm, { ...row, id: name, name })
const load = (name: string) => async () => void inForce.push(name)
const create = (name: string) => writer.change(() => ({ statements: [insert(name)], load: load(name) }))
const namesInFile = () => rowsInFile(own.path, 'select name from organizations order by rowid').map(({ name }) => name)

test('changes of one turn of the event loop share a transaction, up to a number', async () => {
  const names = Array.from({ length: changesPerCommitMax + 1 }, (_, index) => String(index))
  await Promise.all(names.map(create))
  expect(watched.batches).toEqual([changesPerCommitMax, 1])
  expect(namesInFile()).toEqual(names)
  expect(inForce).toEqual(names)
})

test('a change that the database refuses fails alone; the others are planned and committed again', async () => {
  const plans: object[] = []
  const planned = writer.change((transaction) => {
    plans.push(transaction)
    return { statements: [insert('three')], load: load('three') }
  })
  const outcomes = await Promise.allSettled([create('one'), create('one'), planned])
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(new Set(plans).size).toBe(2)
  expect(namesInFile().toSorted()).toEqual(['one', 'three'])
  expect(inForce.toSorted()).toEqual(['one', 'three'])
})

test('a change whose plan fails leaves the others together', async () => {
  const failing = writer.change(() => {
    throw new Error('refused')
  })
  const outcomes = await Promise.allSettled([create('one'), failing, create('two')])
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(watched.batches).toEqual([2])
})

test('a change that comes during a transaction is planned when that one is in force', async () => {
  const seen: string[][] = []
  const first = create('one')
  watched.before = () => {
    watched.before = () => {}
    void writer.change(() => {
      seen.push([...inForce])
      return { statements: [insert('two')], load: load('two') }
    })
  }
  await first
  await writer.close()
  expect(seen).toEqual([['one']])
  expect(namesInFile()).toEqual(['one', 'two'])
})

test('a change that is committed and cannot be loaded fails alone', async () => {
  const failing = writer.change(() => ({
    statements: [insert('one')],
    load: () => Promise.reject(new Error('not loaded')),
  }))
  const outcomes = await Promise.allSettled([failing, create('two')])
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled'])
  expect(namesInFile()).toEqual(['one', 'two'])
})

test('after SQLITE_BUSY no change is tried again', async () => {
  watched.before = () => {
    throw busyError()
  }
  const outcomes = await Promise.allSettled(['one', 'two'].map(create))
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(watched.batches).toEqual([2])
})

test('items of one kind share statements, but not across a statement that stands between them', async () => {
  const calls: string[][] = []
  const bulk = createBulk((names: string[]) => {
    calls.push(names)
    return names.map(insert)
  })
  const createAll = (statements: ReturnType<typeof bulk>[]) => writer.change(() => ({ statements, load: () => {} }))
  await Promise.all([createAll([bulk('one')]), createAll([bulk('two')]), create('three'), createAll([bulk('four')])])
  expect(calls).toEqual([['one', 'two'], ['four']])
  expect(namesInFile()).toEqual(['one', 'two', 'three', 'four'])
})

test('a change that was planned on an older revision than memory has is stale, and is not committed', async () => {
  const committed: number[] = []
  const revision: Revision = { id: 5, lineage: 'five' }
  const queue = createChangeQueue(
    async (statements, basis) => {
      committed.push([...statements].length)
      return { id: basis.id + 1, lineage: 'six' }
    },
    { revision: () => revision, refresh: async () => {}, takeIn: async () => {} },
  )
  const plannedOn = (on: number) =>
    queue.change(() => ({ statements: [insert('one')], basis: { revision: on }, load: () => {} }))
  const outcomes = await Promise.allSettled([plannedOn(4), plannedOn(5), plannedOn(6)])
  expect(outcomes.map((outcome) => (outcome.status === 'rejected' ? isStale(outcome.reason) : outcome.status))).toEqual(
    [true, 'fulfilled', true],
  )
  expect(committed).toEqual([1])
})

test.each([
  ['is unknown', () => unknownOutcome('id', asUnreachable(new Error('The socket was closed')))],
  ['was not reached in time', () => asUnreachable(new Error('The socket was closed'))],
  ['was never sent', () => asNotReached(new Error('ECONNREFUSED'))],
] as const)('changes that share a commit whose outcome %s are not sent again one by one', async (_what, outcome) => {
  const error = outcome()
  const committed: number[] = []
  const queue = createChangeQueue((statements) => {
    committed.push([...statements].length)
    return Promise.reject(error)
  })
  const create = (name: string) => queue.change(() => ({ statements: [insert(name)], load: load(name) }))
  const outcomes = await Promise.allSettled([create('one'), create('two')])
  expect(outcomes).toEqual([
    { status: 'rejected', reason: error },
    { status: 'rejected', reason: error },
  ])
  expect(committed).toEqual([2])
  expect(inForce).toEqual([])
})
