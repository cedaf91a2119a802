// What the looks at a cluster's servers say of elections, and of how far each server is behind.
import { expect, spyOn, test } from 'bun:test'
import type { ServerState } from '../../db/remote/server-client.ts'
import { watchDatabaseServers } from '../../src/nodes/database-servers.ts'

const stateOf = (address: string, numbers: Partial<ServerState>): ServerState =>
  ({
    ...{ id: address, address, isUp: true, isLeader: false, isVoter: true, term: 1, committed: 10, applied: 10 },
    ...numbers,
  }) as ServerState

test('each term after the first look is an election, and a server that has applied more than the leader said is not behind', async () => {
  let found: ServerState[] = []
  const watch = watchDatabaseServers({ servers: async () => found })
  await watch.look()
  expect(watch.leaderChanges()).toBeUndefined()
  const follower = stateOf('b', { applied: 12 })
  found = [stateOf('a', { isLeader: true, term: 3 }), follower]
  await watch.look()
  expect([watch.leaderChanges(), watch.behind(follower)]).toEqual([0, 0])
  expect(watch.behind(stateOf('c', { applied: 7 }))).toBe(3)
  found = [stateOf('a', { term: 5 })]
  await watch.look()
  expect([watch.leaderChanges(), watch.behind(follower)]).toEqual([2, undefined])
  // The server that knew the newest term is down, and comes back.
  for (const term of [4, 5]) {
    found = [stateOf('a', { term })]
    await watch.look()
  }
  expect(watch.leaderChanges()).toBe(2)
})

test('a database file has no servers to look at', () => {
  const timers = spyOn(globalThis, 'setInterval')
  watchDatabaseServers(undefined).begin()()
  const count = timers.mock.calls.length
  timers.mockRestore()
  expect(count).toBe(0)
})
