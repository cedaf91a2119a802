// Refreshes whose answers the test gives: what a request waits for, what a failed refresh does, and what a node takes in.
import { expect, test } from 'bun:test'
import { type Client, createClient } from '@libsql/client'
import { refreshFrom, usageRowsMax } from '../../db/remote/refresh.ts'
import { isUnreachable } from '../../db/remote/server-errors.ts'
import { firstPosition, type Position, type RefreshResult, type Revision } from '../../db/remote/shared-database.ts'
import { type FollowOptions, followOthers } from '../../src/nodes/follow.ts'
import { setbackOf } from '../../src/nodes/setback.ts'
import { rejectionOf } from '../support/rejection.ts'
import { createDatabase } from '../support/rows.ts'
import { until } from '../support/until.ts'

/** A node whose refreshes the test answers, at times that it chooses. */
function followInSteps(orm = {} as FollowOptions['orm']) {
  const refreshes: PromiseWithResolvers<RefreshResult>[] = []
  const asked: Position[] = []
  const spent: number[] = []
  const clock = { skipped: 0 }
  const refresh = (position: Position) => {
    const next = Promise.withResolvers<RefreshResult>()
    asked.push({ ...position })
    refreshes.push(next)
    return next.promise
  }
  const ended: string[] = []
  const { fresh, following, liveNodes } = followOthers({
    shared: {
      refresh,
      commitChange: async () => undefined,
      readCopy: undefined,
      weaknesses: async () => [],
      servers: async () => [],
      beginServing: () => {},
      beginEnd: () => {},
    },
    orm,
    registry: {} as FollowOptions['registry'],
    spending: { add: (_keyId, _at, cost) => spent.push(cost) },
    reload: () => Promise.reject(new Error('not asked')),
    start: { ...firstPosition, installation: 'one' },
    monotonic: () => performance.now() + clock.skipped,
    onRefresh: () => {},
    onReplaced: ({ message }) => ended.push(message),
  })
  return { ask: async () => fresh(), following, liveNodes, ended, refreshes, asked, spent, clock }
}

const nothing: RefreshResult = {
  ...firstPosition,
  isContinued: true,
  hasOwnCommits: true,
  installation: 'one',
  liveNodes: 1,
  hasMoreUsage: false,
  spent: [],
}

test('requests that wait for a refresh that fails fail with it, and the next one refreshes again', async () => {
  const { ask, refreshes, clock } = followInSteps()
  const startedAt = performance.now()
  const first = rejectionOf(ask())
  await until('the first refresh', () => refreshes.length === 1)
  const second = rejectionOf(ask())
  clock.skipped = 600
  refreshes[0]?.reject(new Error('away'))
  expect([(await first).message, (await second).message]).toEqual(['away', 'away'])
  // A node that fails at once would attract the requests of a load balancer.
  expect(performance.now() - startedAt).toBeGreaterThan(300)
  expect(refreshes).toHaveLength(1)
  const third = ask()
  await until('the second refresh', () => refreshes.length === 2)
  refreshes[1]?.resolve(nothing)
  await third
})

test('a request that comes during a refresh waits for another one, which begins after it', async () => {
  const { ask, refreshes } = followInSteps()
  const first = ask()
  await until('the first refresh', () => refreshes.length === 1)
  const second = ask()
  refreshes[0]?.resolve(nothing)
  await first
  await Promise.race([second, until('the second refresh', () => refreshes.length === 2)])
  expect(refreshes).toHaveLength(2)
  refreshes[1]?.resolve(nothing)
  await second
})

test('a node that is gone counts no longer, and this one always does', async () => {
  const { ask, refreshes, liveNodes } = followInSteps()
  const counted: number[] = []
  for (const seen of [3, 1, 0]) {
    const refreshed = ask()
    await until('the refresh', () => refreshes.length > counted.length)
    refreshes.at(-1)?.resolve({ ...nothing, liveNodes: seen })
    await refreshed
    counted.push(liveNodes())
  }
  expect(counted).toEqual([3, 1, 1])
})

test('a node ends when the database lacks the change that it obeys, and stops refreshing', async () => {
  const { ask, refreshes, ended } = followInSteps()
  const first = rejectionOf(ask())
  await until('the first refresh', () => refreshes.length === 1)
  const second = rejectionOf(ask())
  const setback = { ...nothing, isContinued: false }
  refreshes[0]?.resolve(setback)
  // It looks again, since a replica would show the change now.
  for (let number = 1; ended.length === 0; number++) {
    await until('the next look or the end', () => refreshes.length > number || ended.length > 0)
    refreshes[number]?.resolve(setback)
  }
  for (const { message } of await Promise.all([first, second])) expect(message).toContain('gone back to an older state')
  const looks = refreshes.length
  await rejectionOf(ask())
  expect([ended.length, refreshes.length]).toEqual([1, looks])
})

const setbacks: [what: string, seen: Partial<RefreshResult>, message: string][] = [
  ['another installation', { installation: 'two' }, 'a different database'],
  ['a lower revision', { isContinued: false, revision: { id: 6, lineage: 'f' } }, 'revision 6 after 7'],
  ['another change of this revision', { isContinued: false }, 'lacks the admin change of revision 7'],
  ['fewer requests', { usageId: 4 }, 'request 4 of the ledger after 5'],
  ['fewer exchanges', { auditId: 2 }, 'exchange 2 of the audit after 3'],
  ['no commit that it has confirmed', { hasOwnCommits: false }, 'lacks a commit that it has confirmed'],
]
for (const [what, seen, message] of setbacks)
  test(`a database with ${what} does not continue what was known`, () => {
    const known: Position = { revision: { id: 7, lineage: 'g' }, usageId: 5, auditId: 3, commit: 9 }
    expect(setbackOf({ ...nothing, ...known }, known, 'one')).toBeUndefined()
    expect(setbackOf({ ...nothing, ...known, ...seen }, known, 'one')).toContain(message)
  })

test('a node on a replica, which shows its commit late, ends and says so', async () => {
  const { ask, refreshes, ended } = followInSteps()
  const asked = rejectionOf(ask())
  await until('the first refresh', () => refreshes.length === 1)
  refreshes[0]?.resolve({ ...nothing, hasOwnCommits: false })
  await until('another look', () => refreshes.length === 2)
  refreshes[1]?.resolve(nothing)
  expect((await asked).message).toContain('LATCHKEY_DATABASE_URL reaches a replica')
  expect(ended).toHaveLength(1)
})

test('an own change is not loaded over a newer one that a refresh has loaded before', async () => {
  const own = await createDatabase()
  const { ask, refreshes, following } = followInSteps(own.database.orm)
  const refreshed = ask()
  await until('the first refresh', () => refreshes.length === 1)
  const [first, second, third] = [1, 2, 3].map((id) => ({ id, lineage: String(id) })) as [Revision, Revision, Revision]
  refreshes[0]?.resolve({ ...nothing, revision: second })
  await refreshed
  const loaded: string[] = []
  const load = (name: string) => async () => loaded.push(name) > 0
  await following.takeIn({ basis: firstPosition.revision, revision: first }, load('overtaken'))
  expect(following.revision()).toEqual(second)
  await following.takeIn({ basis: second, revision: third }, load('newest'))
  expect(following.revision()).toEqual(third)
  expect(loaded).toEqual(['newest'])
  await own.close()
})

test('a refresh finds the change of a node by its id and its lineage, and that of an older program by its time and target', async () => {
  const client = createClient({ url: ':memory:' })
  await client.executeMultiple(`create table usage (id integer primary key, key_id text, at integer, cost_nanodollars integer);
    create table admin_changes (id, at, target_id, lineage); create table installation (id text); create table nodes (last_seen_at);
    create table exchange_audit (id); create table batches (number);
    insert into installation values ('one')`)
  const isContinued = async (id: number, lineage: string) =>
    (await refreshFrom(client, { ...firstPosition, revision: { id, lineage } })).isContinued
  expect(await isContinued(0, '')).toBe(true)
  expect(await isContinued(1, 'a')).toBe(false)
  await client.executeMultiple("insert into admin_changes values (1, 5, 'key', 'a'), (2, 6, 'key', null)")
  expect((await refreshFrom(client, firstPosition)).revision).toEqual({
    id: 2,
    lineage: '6 key',
  })
  const held: [number, string][] = [
    [0, ''],
    [1, 'a'],
    [2, '6 key'],
    [1, 'b'],
    [1, ''],
    [2, '7 key'],
    [2, '6 other'],
    [3, 'c'],
  ]
  const seen = await Promise.all(held.map(([id, lineage]) => isContinued(id, lineage)))
  expect(seen).toEqual([true, true, true, false, false, false, false, false])
  client.close()
})

test('a refresh without numbers fails: a revision that is not a number would hide every later change', async () => {
  const row = {
    revision: 1,
    lineage: 'first',
    is_continued: 1,
    usage_id: 1,
    audit_id: 1,
    newest_commit: 1,
    installation: 'one',
    live_nodes: 1,
    spent: null,
  }
  const refreshWith = (some: object) =>
    refreshFrom({ execute: async () => ({ rows: [{ ...row, ...some }] }) } as unknown as Client, firstPosition)
  expect(await refreshWith({})).toMatchObject({
    revision: { id: 1, lineage: 'first' },
    isContinued: true,
    liveNodes: 1,
  })
  for (const column of ['revision', 'usage_id', 'audit_id', 'newest_commit', 'live_nodes'])
    for (const value of [null, 'x', 1.5, undefined])
      expect((await rejectionOf(refreshWith({ [column]: value }))).message).toBe('A refresh shows numbers')
  for (const spent of ['key 1', 'key x 1', 'key 1 NaN', '['.repeat(4_000_000), '\n'.repeat(4_000_000)])
    expect((await rejectionOf(refreshWith({ spent }))).message).toBe('A refresh shows numbers')
})

test('a node that was away for long reads what was spent in parts, and goes on where it ran out of time', async () => {
  const { ask, refreshes, asked, spent, clock } = followInSteps()
  const part = (usageId: number): RefreshResult => ({
    ...nothing,
    usageId,
    hasMoreUsage: true,
    spent: [['key', 1, usageId]],
  })
  const first = rejectionOf(ask())
  await until('the first refresh', () => refreshes.length === 1)
  refreshes[0]?.resolve(part(10))
  await until('the second refresh', () => refreshes.length === 2)
  clock.skipped = 2_100
  refreshes[1]?.resolve(part(20))
  expect(isUnreachable(await first)).toBe(true)
  const second = ask()
  await until('the third refresh', () => refreshes.length === 3)
  refreshes[2]?.resolve({ ...part(25), hasMoreUsage: false })
  await second
  expect(asked.map(({ usageId }) => usageId)).toEqual([0, 10, 20])
  expect(spent).toEqual([10, 20, 25])
})

test('refreshes count each row once, however many there are', async () => {
  const client = createClient({ url: ':memory:' })
  const rows = 2 * usageRowsMax + 1
  await client.executeMultiple(`create table usage (id integer primary key, key_id text, at integer, cost_nanodollars integer);
    create table admin_changes (id, at, target_id, lineage); create table installation (id text); create table nodes (last_seen_at);
    create table exchange_audit (id); create table batches (number);
    insert into installation values ('one');
    with recursive s(n) as (select 1 union all select n + 1 from s limit ${rows})
      insert into usage select n, 'key' || (n % 2), 5 * 86400000, 3 from s;`)
  const found: RefreshResult[] = []
  do found.push(await refreshFrom(client, { ...firstPosition, usageId: found.at(-1)?.usageId ?? 0 }))
  while (found.at(-1)?.hasMoreUsage)
  expect(found.map(({ usageId }) => usageId)).toEqual([usageRowsMax, 2 * usageRowsMax, rows])
  expect(found.flatMap(({ spent }) => spent).reduce((sum, [, , cost]) => sum + cost, 0)).toBe(3 * rows)
  expect(found[2]?.spent).toEqual([['key1', 5, 3]])
  expect((await refreshFrom(client, { ...firstPosition, usageId: rows })).spent).toEqual([])
  client.close()
})
