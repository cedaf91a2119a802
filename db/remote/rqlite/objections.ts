// What is checked of a cluster before it is used. The nodes of a cluster are configured each on its own, so each address is asked.
import { LibsqlError } from '@libsql/core/api'
import type { Weakness } from '../server-client.ts'
import { isUnreachable } from '../server-errors.ts'
import { serverError } from '../server-failure.ts'
import { outsidersOf, weaknessesOfMembers } from './members.ts'
import type { Post } from './post.ts'
import { parseResponse } from './results.ts'
import { askServers, hostOf, type ReadStatus } from './servers.ts'

/** The oldest that was tried with this program. It has a SQLite without the WAL-reset bug. */
const majorVersionMin = 10
const checkMilliseconds = 2_000
/** How far the clocks of the nodes may differ: a new leader brings its own. */
const clockMillisecondsMax = 30_000

type NodeAccess = { post: Post; readStatus: ReadStatus }
type Node = { address: string; version: string; hasForeignKeys: boolean; now: number }

/**
 * Returns why the cluster cannot be used. An address that does not respond is not judged: one of three may be down.
 * @throws an error that is `isUnreachable` if no address responds
 */
export async function objectionTo(
  addresses: readonly string[],
  { post, readStatus }: NodeAccess,
): Promise<string | undefined> {
  const [asked, servers] = await Promise.all([askAll(addresses, post), askServers(addresses, readStatus)])
  const nodes = asked.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  const [failure] = asked.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []))
  if (nodes.length === 0) throw failure
  const [first] = outsidersOf(servers).filter(({ cluster }) => cluster === 'own')
  if (first !== undefined) return objectionToOutsider(first.host)
  return nodes.map(objectionToNode).find((each) => each !== undefined) ?? objectionToClocks(nodes)
}

const askAll = (addresses: readonly string[], post: Post) =>
  Promise.allSettled(addresses.map((address) => ask(address, post)))

/** A node of Latchkey that asks it first would commit there what the cluster never has. */
function objectionToOutsider(host: string): string {
  return `its node ${host} leads a separate cluster, beside that of the other addresses: stop rqlited there, and see latchkey help availability, "Replace a machine"`
}

/** The same while the cluster is used, which of its nodes do not respond, and whether the addresses are those of its members. */
export async function weaknessesOf(
  addresses: readonly string[],
  { post, readStatus }: NodeAccess,
): Promise<Weakness[]> {
  const [asked, servers] = await Promise.all([askAll(addresses, post), askServers(addresses, readStatus)])
  const nodes = asked.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  const silent = addresses.filter((_, index) => asked[index]?.status === 'rejected')
  const found = [...nodes.map(objectionToNode), objectionToClocks(nodes)].filter((each) => each !== undefined)
  const all = [...silent.map((address) => `its node ${hostOf(address)} does not respond`), ...found]
  return [...all.map((what): Weakness => ({ level: 'error', what })), ...weaknessesOfMembers(servers)]
}

async function ask(address: string, post: Post): Promise<Node> {
  // Its own answer, not the leader's.
  const body = [['pragma foreign_keys'], ["select unixepoch('subsec')"]]
  const { headers, body: received } = await post(address, '/db/query?level=none&noparse', body, checkMilliseconds)
  const responded = await parseResponse(received).catch((error: unknown) => {
    if (isUnreachable(error)) throw error
    throw serverError(`${address} is not a node of rqlite: check LATCHKEY_DATABASE_URL`, 'SERVER_ERROR')
  })
  if ('error' in responded) throw new LibsqlError(responded.error, 'SERVER_ERROR')
  const [keys, time] = responded.results.map(({ values }) => values?.[0]?.[0])
  return {
    address,
    version: headers.get('x-rqlite-version') ?? '',
    hasForeignKeys: keys === 1,
    now: Number(time) * 1_000 - performance.now(),
  }
}

function objectionToNode({ address, version, hasForeignKeys }: Node): string | undefined {
  const host = hostOf(address)
  const major = Number(/^v?(\d+)/.exec(version)?.[1] ?? 0)
  if (major < majorVersionMin)
    return `its node ${host} is ${major === 0 ? 'not rqlite, or does not say its version' : `rqlite ${major}`}: use rqlite ${majorVersionMin} or newer on all nodes`
  if (!hasForeignKeys) return `its node ${host} does not enforce foreign keys: start rqlited with -fk on all nodes`
  return undefined
}

function objectionToClocks(nodes: readonly Node[]): string | undefined {
  const [first, last] = [Math.min(...nodes.map(({ now }) => now)), Math.max(...nodes.map(({ now }) => now))]
  if (!(last - first > clockMillisecondsMax)) return undefined
  return `the clocks of its nodes differ by ${Math.round((last - first) / 1_000)} s: synchronize them, as with NTP`
}
