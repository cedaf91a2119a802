// Which of the addresses belong to the cluster, and which of its members are at none of them. Rules only: servers.ts asks the nodes. A
// node that was removed, or that began a separate cluster, goes on responding beside the cluster.
import type { Weakness } from '../server-client.ts'

/** `address` is that of the protocol between nodes. Only voters count for a majority. */
export type Member = { id: string; address: string; isVoter: boolean }

/** A node as it describes itself. `leaderId` is empty while it knows no leader, and `applied` is the newest entry that is in its database. */
export type NodeStatus = {
  id: string
  isLeader: boolean
  leaderId: string
  members: readonly Member[]
  term: number
  committed: number
  applied: number
  bytes: number
}

/** An address without its scheme, and what the node there says; undefined if it says nothing. */
export type AddressStatus = { host: string; status: NodeStatus | undefined }

/** `own` if it leads another cluster, and `none` if it is in no cluster or does not know yet that it was removed. */
export type Outsider = { host: string; cluster: 'own' | 'none' }

/** The nodes that respond and are not part of the cluster. None while no node knows a leader. */
export function outsidersOf(asked: readonly AddressStatus[]): Outsider[] {
  const cluster = clusterOf(asked)
  if (cluster === undefined) return []
  return asked.flatMap(({ host, status }): Outsider[] => {
    if (status === undefined) return []
    if (status.isLeader && status.id !== cluster.leaderId && !includes(status.members, cluster.leaderId))
      return [{ host, cluster: 'own' }]
    if (includes(cluster.members, status.id)) return []
    return [{ host, cluster: status.isLeader ? 'own' : 'none' }]
  })
}

const reread = 'latchkey help availability, "Replace a machine"'

/** What the members make weak. */
export function weaknessesOfMembers(asked: readonly AddressStatus[]): Weakness[] {
  const cluster = clusterOf(asked)
  if (cluster === undefined) return []
  const beside = outsidersOf(asked).map(({ host, cluster }): Weakness => {
    if (cluster === 'own') {
      const action = `Stop rqlited there, and move its data folder away: ${reread}`
      return { level: 'error', what: `its node ${host} leads a separate cluster`, action }
    }
    const what = `its node ${host} runs beside the cluster, of which it is no member`
    const action = `Stop rqlited there and take it out of LATCHKEY_DATABASE_URL, or let it join again: ${reread}`
    return { level: 'error', what, action }
  })
  const missing = missingMembers(asked, cluster).map(({ id, address }): Weakness => {
    const what = `its member ${id} (${address}) is at none of the addresses in LATCHKEY_DATABASE_URL that respond`
    return {
      level: 'warning',
      what,
      action: `Put its address in on each node, or remove it from the cluster: ${reread}`,
    }
  })
  const isPair = cluster.members.filter(({ isVoter }) => isVoter).length === 2
  const pair: Weakness = {
    level: 'error',
    what: 'it has two members: while one of them is down, it cannot commit',
    action: `Let a third one join: ${reread}`,
  }
  return [...beside, ...missing, ...(isPair ? [pair] : [])]
}

type Cluster = { leaderId: string; members: readonly Member[] }

/** As its leader knows it, or a node that follows one. Of several, the one that has most of the nodes. */
function clusterOf(asked: readonly AddressStatus[]): Cluster | undefined {
  const statuses = asked.flatMap(({ status }) => (status === undefined ? [] : [status]))
  const sizeOf = ({ members }: NodeStatus) => statuses.filter(({ id }) => includes(members, id)).length
  const bySize = (one: NodeStatus, other: NodeStatus) =>
    Number(other.isLeader) - Number(one.isLeader) || sizeOf(other) - sizeOf(one) || other.term - one.term
  const [best] = statuses.filter(({ leaderId }) => leaderId !== '').toSorted(bySize)
  return best && { leaderId: best.leaderId, members: best.members }
}

/** Voters that no responding node is. A node that does not respond is taken for a member on its machine. */
function missingMembers(asked: readonly AddressStatus[], { members }: Cluster): Member[] {
  const found = asked.flatMap(({ status }) => (status === undefined ? [] : [status.id]))
  const silent = asked.flatMap(({ host, status }) => (status === undefined ? [machineOf(host)] : []))
  return members.filter(({ id, address, isVoter }) => {
    if (!isVoter || found.includes(id)) return false
    const place = silent.indexOf(machineOf(address))
    if (place !== -1) silent.splice(place, 1)
    return place === -1
  })
}

const includes = (members: readonly Member[], id: string) => members.some((member) => member.id === id)
const machineOf = (address: string) => address.replace(/:\d+$/, '')
