// What a database server carries for all nodes together: refreshes each second, and commits each second by the rows that share one.

import type { Database } from '../../db/file/open.ts'
import { openServerDatabase } from '../../db/remote/server-database.ts'
import { firstPosition } from '../../db/remote/shared-database.ts'
import type { UsageRow } from '../../db/schema/record-schema.ts'
import { createLedgerQueue } from '../../db/write/ledger-queue.ts'
import { connectTo } from '../../src/nodes/server-connection.ts'
import { type Contestant, median, quantile, rounds } from './measure.ts'
import type { NodeArm } from './node-arms.ts'
import { createNodeResults } from './node-limits.ts'
import type { Result } from './report.ts'

/** As four nodes send them. */
const atOnce = 4
const cellMilliseconds = 700
const rowsOfCommits = [1, 10, 100, 250]

export async function benchDatabase({ databaseUrl: url, keyId }: NodeArm): Promise<Result[]> {
  const send = connectTo({ caFile: undefined })
  const database = await openServerDatabase({ url, token: undefined, create: false, send })
  if ('refused' in database) throw new Error(database.message)
  const found = await database.client.execute(
    `select organization_id, workspace_id from api_keys where id = '${keyId}'`,
  )
  const [row] = found.rows
  const ids = { keyId, organizationId: String(row?.organization_id), workspaceId: String(row?.workspace_id) }
  const arms: (Pick<Contestant, 'name'> & { works: (() => Promise<unknown>)[] })[] = [
    { name: 'refreshes', works: Array.from({ length: atOnce }, () => () => refresh(database)) },
    ...rowsOfCommits.map((rows) => ({
      name: `commits with ${rows} row${rows === 1 ? '' : 's'}`,
      works: Array.from({ length: atOnce }, () => createCommitting(database, rows, ids)),
    })),
  ]
  const { add, results } = createNodeResults()
  for (const { works } of arms) await repeat(works)
  for (let round = 0; round < rounds; round++)
    for (const arm of round % 2 === 0 ? arms : arms.toReversed()) {
      const { perSecond, latencies } = await repeat(arm.works)
      const times = { p50Milliseconds: median(latencies), p99Milliseconds: quantile(latencies, 0.99) }
      add(`a database server, ${atOnce} at a time`, arm, { perSecond, ...times })
    }
  await database.close()
  return results()
}

type Ids = Pick<UsageRow, 'keyId' | 'organizationId' | 'workspaceId'>

const refresh = async (database: Database) =>
  database.shared?.refresh({ ...firstPosition, usageId: Number.MAX_SAFE_INTEGER })

/** Commits rows of the ledger and their totals, as a node does. */
function createCommitting(database: Database, rows: number, ids: Ids): () => Promise<unknown> {
  const ledger = createLedgerQueue((statements) => database.commit(statements))
  return () => Promise.all(Array.from({ length: rows }, () => ledger.appendUsage(newRow(ids))))
}

function newRow(ids: Ids): UsageRow {
  const nothing = {
    policyId: null,
    issuerId: null,
    subject: null,
    accessTokenId: null,
    modelAsked: null,
    upstream: null,
    attribution: null,
    endUser: null,
    sessionId: null,
    metadata: null,
    unit: null,
    units: null,
    price: null,
    attempts: null,
    error: null,
  }
  const tokens = {
    promptTokens: 412,
    completionTokens: 187,
    totalTokens: 599,
    cachedTokens: null,
    reasoningTokens: null,
  }
  const outcome = {
    status: 200,
    streamed: false,
    completed: true,
    clientLeft: false,
    estimated: false,
    usageSource: 'upstream' as const,
  }
  const request = { at: Date.now(), requestId: crypto.randomUUID(), endpoint: '/chat/completions', model: 'bench' }
  const rest = { presetVersion: null, costNanodollars: 599_000, firstByteMilliseconds: 12, durationMilliseconds: 900 }
  return { ...ids, ...nothing, ...tokens, ...outcome, ...request, ...rest }
}

async function repeat(works: (() => Promise<unknown>)[]): Promise<{ perSecond: number; latencies: number[] }> {
  const latencies: number[] = []
  const startedAt = performance.now()
  const worker = async (work: () => Promise<unknown>) => {
    while (performance.now() - startedAt < cellMilliseconds) {
      const sentAt = performance.now()
      await work()
      latencies.push(performance.now() - sentAt)
    }
  }
  await Promise.all(works.map(worker))
  return { perSecond: latencies.length / ((performance.now() - startedAt) / 1_000), latencies }
}
