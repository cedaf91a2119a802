// A node whose database does not respond makes each request wait for one look, and not for two.
import { expect, test } from 'bun:test'
import type { Client } from '@libsql/client'
import { lookAt } from '../../db/look.ts'
import type { Looked } from '../../db/shared-database.ts'
import { type FollowOptions, followOthers } from '../../src/nodes/follow.ts'
import { rejectionOf } from '../support/rejection.ts'
import { until } from '../support/until.ts'

test('requests that wait for a look that fails fail with it, and the next one looks again', async () => {
  let skipped = 0
  const looks: PromiseWithResolvers<Looked>[] = []
  const look = () => {
    const next = Promise.withResolvers<Looked>()
    looks.push(next)
    return next.promise
  }
  const { fresh } = followOthers({
    shared: { look, commitChange: async () => undefined, beginEnd: () => {} },
    orm: {} as FollowOptions['orm'],
    registry: {} as FollowOptions['registry'],
    spending: { add: () => {} },
    reload: () => Promise.reject(new Error('not asked')),
    start: { revision: 0, usageId: 0, installation: 'one' },
    monotonic: () => performance.now() + skipped,
    onLook: () => {},
    onReplaced: () => {},
  })
  const ask = async () => fresh()
  const startedAt = performance.now()
  const first = rejectionOf(ask())
  await until('the first look', () => looks.length === 1)
  const second = rejectionOf(ask())
  skipped = 600
  looks[0]?.reject(new Error('away'))
  expect([(await first).message, (await second).message]).toEqual(['away', 'away'])
  // A node that fails at once would attract the requests of a load balancer.
  expect(performance.now() - startedAt).toBeGreaterThan(300)
  expect(looks).toHaveLength(1)
  const third = ask()
  await until('the second look', () => looks.length === 2)
  looks[1]?.resolve({ revision: 0, usageId: 0, installation: 'one', liveNodes: 1, spent: [] })
  await third
})

test('a look without numbers fails: a revision that is not a number would hide every later change', async () => {
  const row = { revision: 1, usage_id: 1, installation: 'one', live_nodes: 1, spent: '[]' }
  const lookWith = (some: object) =>
    lookAt({ execute: async () => ({ rows: [{ ...row, ...some }] }) } as unknown as Client, { revision: 0, usageId: 0 })
  expect(await lookWith({})).toMatchObject({ revision: 1, liveNodes: 1 })
  for (const column of ['revision', 'usage_id', 'live_nodes'])
    for (const value of [null, 'x', 1.5, undefined])
      expect((await rejectionOf(lookWith({ [column]: value }))).message).toBe('A look shows numbers')
})
