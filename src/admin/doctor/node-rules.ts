// When the nodes of a server database need attention: clocks, versions, settings, and nodes that are gone. Rules only.
import type { ListedNode } from '../../../db/tables/nodes.ts'
import { durationText, type Finding, finding, listNames } from './findings.ts'

const area = 'nodes'
const clockOffsetMillisecondsMax = 30_000
const mixedMillisecondsMax = 24 * 60 * 60 * 1_000
/** More than this is not loaded change by change. A node that keeps up is behind for moments. */
const lagMax = 1_000

export function judgeNodes(nodes: readonly ListedNode[]): Finding[] {
  const live = nodes.filter(({ isLive }) => isLive)
  const hasComeBack = ({ name, lastSeenAt }: ListedNode) =>
    live.some((other) => other.name === name && other.startedAt >= lastSeenAt)
  const present = nodes.filter((node) => node.isLive || !hasComeBack(node))
  return [...present.flatMap(judgeNode), ...judgeVersions(live), ...judgeBaseUrls(live)]
}

function judgeNode({ name, isLive, idleMilliseconds, lag, clockOffset }: ListedNode): Finding[] {
  const who = `The node ${JSON.stringify(name)}`
  if (!isLive) {
    const message = `${who} stopped silently ${durationText(idleMilliseconds / 1_000)} ago`
    const action = 'Read its log, and start it again; a node that is gone for good is forgotten after a day'
    return [finding({ level: 'warning', area, code: 'node_gone', message, action }, [name])]
  }
  const found: Finding[] = []
  if (clockOffset !== null && Math.abs(clockOffset) > clockOffsetMillisecondsMax) {
    const side = clockOffset > 0 ? 'ahead of' : 'behind'
    const message = `The clock of the node ${JSON.stringify(name)} is ${durationText(clockOffset / 1_000)} ${side} the database`
    const action = 'Synchronize the clocks of the nodes and the database server (NTP)'
    found.push(finding({ level: 'warning', area, code: 'node_clock', message, action }, [name]))
  }
  if (lag > lagMax) {
    const message = `${who} had not seen ${lag} changes when it last reported`
    const action = 'Look at its CPU, and at its connection to the database: latchkey_look_duration_seconds'
    found.push(finding({ level: 'warning', area, code: 'node_behind', message, action }, [name]))
  }
  return found
}

/** A rolling upgrade has nodes of two versions for a while. Times are by the clock of the database. */
function judgeVersions(live: readonly ListedNode[]): Finding[] {
  const groups = [...Map.groupBy(live, ({ version }) => version)]
  const [any] = live
  if (groups.length < 2 || any === undefined) return []
  const mixedSince = Math.max(...groups.map(([, nodes]) => Math.min(...nodes.map(({ startedAt }) => startedAt))))
  const milliseconds = any.lastSeenAt + any.idleMilliseconds - mixedSince
  if (milliseconds <= mixedMillisecondsMax) return []
  const versions = groups.map(([version, nodes]) => `${version} (${listNames(nodes.map(({ name }) => name))})`)
  const message = `Nodes run different versions for ${durationText(milliseconds / 1_000)}: ${versions.join(', ')}`
  const action = 'Upgrade the others: latchkey help cluster'
  return [finding({ level: 'warning', area, code: 'node_versions', message, action }, groups.map(first))]
}

function judgeBaseUrls(live: readonly ListedNode[]): Finding[] {
  const groups = [...Map.groupBy(live, ({ baseUrl }) => baseUrl)].filter(([url]) => url !== null)
  if (groups.length < 2) return []
  const urls = groups.map(([url, nodes]) => `${url} (${listNames(nodes.map(({ name }) => name))})`)
  const message = `Nodes have different base URLs, so they reject each other's access tokens: ${urls.join(', ')}`
  const action = 'Set LATCHKEY_BASE_URL to the same value on every node'
  return [finding({ level: 'error', area, code: 'node_base_urls', message, action }, urls)]
}

function first([version]: readonly [string, unknown]): string {
  return version
}
