// The nodes of a cluster as each describes itself: whether it leads, its term, and how far it has applied the log.
import type { ServerState } from '../server-client.ts'
import { hostOf } from './objections.ts'

/** One that does not respond, or responds with something else, is down. */
export function readServers(
  addresses: readonly string[],
  readStatus: (address: string) => Promise<unknown>,
): Promise<ServerState[]> {
  return Promise.all(
    addresses.map(async (address): Promise<ServerState> => {
      const server = hostOf(address)
      const found = toState(await readStatus(address).catch(() => undefined))
      return found === undefined ? { server, isUp: false } : { server, isUp: true, ...found }
    }),
  )
}

function toState(status: unknown) {
  const store = memberOf(status, 'store')
  const raft = memberOf(store, 'raft')
  const numbers = {
    term: memberOf(raft, 'term'),
    committed: memberOf(raft, 'commit_index'),
    applied: memberOf(raft, 'applied_index'),
    bytes: memberOf(store, 'dir_size'),
  }
  if (!Object.values(numbers).every(Number.isSafeInteger)) return undefined
  return { isLeader: memberOf(raft, 'state') === 'Leader', ...(numbers as Record<keyof typeof numbers, number>) }
}

function memberOf(json: unknown, name: string): unknown {
  return typeof json === 'object' && json !== null ? (json as Record<string, unknown>)[name] : undefined
}
