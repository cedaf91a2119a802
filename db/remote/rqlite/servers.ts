// The nodes of a cluster as each describes itself: whether it leads, its term, how far it has applied the log, and its members.
import type { ServerState } from '../server-client.ts'
import { type AddressStatus, type Member, type NodeStatus, outsidersOf } from './members.ts'

/** Returns what a node reports of itself, as JSON. */
export type ReadStatus = (address: string) => Promise<unknown>

/** Throws nothing: one that does not respond, or responds with something else, has no status. */
export function askServers(addresses: readonly string[], readStatus: ReadStatus): Promise<AddressStatus[]> {
  return Promise.all(
    addresses.map(async (address) => ({
      host: hostOf(address),
      status: toStatus(await readStatus(address).catch(() => undefined)),
    })),
  )
}

/** One that has no status is down, and so is one that runs beside the cluster. */
export async function readServers(addresses: readonly string[], readStatus: ReadStatus): Promise<ServerState[]> {
  const asked = await askServers(addresses, readStatus)
  const outside = outsidersOf(asked).map(({ host }) => host)
  return asked.map(({ host: server, status }) => {
    if (status === undefined || outside.includes(server)) return { server, isUp: false }
    const { isLeader, term, committed, applied, bytes } = status
    return { server, isUp: true, isLeader, term, committed, applied, bytes }
  })
}

export function hostOf(address: string): string {
  return address.replace(/^https?:\/\//, '')
}

function toStatus(json: unknown): NodeStatus | undefined {
  const store = memberOf(json, 'store')
  const raft = memberOf(store, 'raft')
  const texts = { id: memberOf(store, 'node_id'), leaderId: memberOf(memberOf(store, 'leader'), 'node_id') }
  const numbers = {
    term: memberOf(raft, 'term'),
    committed: memberOf(raft, 'commit_index'),
    applied: memberOf(raft, 'applied_index'),
    bytes: memberOf(store, 'dir_size'),
  }
  const members = toMembers(memberOf(store, 'nodes'))
  if (!Object.values(numbers).every(Number.isSafeInteger) || members === undefined) return undefined
  if (!Object.values(texts).every((text) => typeof text === 'string')) return undefined
  return {
    ...{ isLeader: memberOf(raft, 'state') === 'Leader', members },
    ...(texts as Record<keyof typeof texts, string>),
    ...(numbers as Record<keyof typeof numbers, number>),
  }
}

/** Far more than a cluster has. */
const membersMax = 64

function toMembers(json: unknown): Member[] | undefined {
  if (!Array.isArray(json) || json.length > membersMax) return undefined
  const members = json.map((each: unknown) => ({
    id: memberOf(each, 'id'),
    address: memberOf(each, 'addr'),
    isVoter: memberOf(each, 'suffrage') === 'voter',
  }))
  const isMember = (each: (typeof members)[number]): each is Member =>
    typeof each.id === 'string' && typeof each.address === 'string'
  return members.every(isMember) ? members : undefined
}

function memberOf(json: unknown, name: string): unknown {
  return typeof json === 'object' && json !== null ? (json as Record<string, unknown>)[name] : undefined
}
