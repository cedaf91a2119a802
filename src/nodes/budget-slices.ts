// The slices of budgets that this node of a server database has, and how it takes them. Others count them while it reports every second.
import type { Orm } from '../../db/file/open.ts'
import { nodeMilliseconds } from '../../db/schema/node-schema.ts'
import { dropSlices, listSlices, renewSlices, takeSlice } from '../../db/tables/budget-slices.ts'
import type { Statement } from '../../db/write/rows.ts'
import type { Writer } from '../../db/write/write.ts'
import type { Budgets } from '../spending/budgets.ts'
import type { Slices } from '../spending/slices.ts'
import { rememberUsed } from '../spending/used-before.ts'
import type { Follow } from './follow.ts'

type SlicePorts = {
  orm: Orm
  writer: Pick<Writer, 'write'>
  follow: Pick<Follow, 'fresh' | 'liveNodes'>
  monotonic: () => number
}

export type NodeSlices = {
  /** The id under which this node reports. */
  nodeId: string
  /** Sends a report with the slices of this node. `milliseconds`: how long others count them (default: 5,000). */
  report: (send: (more: Statement[]) => Promise<void>, milliseconds?: number) => Promise<void>
  /** Gives back all slices, once no request runs. */
  end: () => Promise<void>
}

/** Others count slices for five seconds after a report, by the clock of the database. */
const currentMilliseconds = 4_000

/** Lets budgets share what is left near their limits. */
export function shareBudgets(
  { orm, writer, follow, monotonic }: SlicePorts,
  budgets: Budgets,
  now: () => number,
): NodeSlices {
  const nodeId = crypto.randomUUID()
  let reportedAt = Number.NEGATIVE_INFINITY
  let reporting: Promise<unknown> = Promise.resolve()
  const slices: Slices = {
    nodes: follow.liveNodes,
    isCurrent: () => monotonic() - reportedAt < currentMilliseconds,
    counted: async () => {
      await follow.fresh()
    },
    usedBefore: rememberUsed(monotonic, nodeMilliseconds),
    take: async (counter, asked) => {
      // A report that is on its way has the slices as they were, and could arrive later.
      await reporting
      await writer.write([takeSlice(nodeId, counter, asked)])
      const slices = await listSlices(orm, counter)
      const own = slices.find((slice) => slice.nodeId === nodeId)
      const others = { requests: 0, tokens: 0, nanodollars: 0 }
      for (const { nodeId: id, requests, tokens, nanodollars } of slices) {
        if (id === nodeId) continue
        others.requests += requests
        others.tokens += tokens
        others.nanodollars += nanodollars
      }
      return own && { own, others }
    },
  }
  const list = budgets.share(slices, now)
  return {
    nodeId,
    report: async (send, milliseconds) => {
      const beganAt = monotonic()
      const sent = send(renewSlices(nodeId, list(), milliseconds))
      reporting = sent.catch(() => {})
      await sent
      reportedAt = beganAt
    },
    end: () => writer.write([dropSlices(nodeId)]),
  }
}
