// What several nodes on a database server cost and admit, beside one process on a database file: CPU time of the nodes, latency, refreshes and
// commits for each request; the same with the database 5 ms away; how far a budget is exceeded; and how exactly rates hold.
import { type Cell, contest, drive } from './contest.ts'
import { exchange, startIssuer } from './exchange.ts'
import { concurrencies } from './measure.ts'
import { isStandIn, type NodeArm, startArm } from './node-arms.ts'
import { benchDatabase } from './node-database.ts'
import { benchBudgets, benchRates, infer } from './node-limits.ts'
import { startUpstream } from './proxies.ts'
import type { Result } from './report.ts'

const cellMilliseconds = 700
const warmUpMilliseconds = Number(process.env.BENCH_WARM_UP ?? 3_000)
const nodesOfArms = [0, 1, 2, 4]
const awayMilliseconds = Number(process.env.BENCH_AWAY ?? 5)
const away = `, database ${awayMilliseconds} ms away`

export async function benchNodes(note: (text: string) => void): Promise<Result[]> {
  const issuer = await startIssuer()
  const upstream = await startUpstream()
  const arms: NodeArm[] = []
  for (const total of nodesOfArms) arms.push(await startArm(total, issuer.url, upstream.origin))
  const act = (arm: NodeArm, { load }: Cell, index: number) =>
    load.startsWith('exchange') ? exchangeAt(arm, issuer.tokens.ES256 ?? [], index) : inferAt(arm, index)
  const compare = (loads: string[], compared: NodeArm[]) =>
    contest({
      ...{ bench: 'nodes', arms: compared, warmUpMilliseconds: 0, act },
      cells: loads.flatMap((load) =>
        (concurrencies ?? [8, 64]).map((concurrency) => ({ load, concurrency, milliseconds: cellMilliseconds })),
      ),
      watch: async (arm, { load }) => {
        await arm.delayDatabase(load.endsWith(away) ? awayMilliseconds : 0)
        return arm.count()
      },
      onFailure: (arm, error) => note(`left out: ${arm} failed: ${error}`),
    })
  // Each process alone, or four would share what warms one up.
  for (const load of ['exchange', 'inference'])
    for (const arm of arms)
      for (const node of arm.nodes)
        await drive({ ...arm, nodes: [node] }, { load, concurrency: 32, milliseconds: warmUpMilliseconds }, act)
  const results = await compare(['exchange', 'inference'], arms)
  const [file, one, two, four] = arms
  if (file === undefined || one === undefined || two === undefined || four === undefined) return results
  if (isStandIn) results.push(...(await compare([`exchange${away}`, `inference${away}`], [file, one, two])))
  else note(`left out: ${away.slice(2)}, which only the stand-in can be`)
  for (const arm of arms) await arm.delayDatabase(0)

  await four.nodes.pop()?.stop()
  const three = { ...four, name: 'latchkey, 3 nodes' }
  results.push(
    ...(await benchBudgets([file, three])),
    ...(await benchRates([one, two], three)),
    ...(await benchDatabase(one)),
  )
  for (const { stop } of arms) await stop()
  await upstream.stop()
  await issuer.stop()
  return results
}

export function exchangeAt(arm: NodeArm, tokens: string[], index: number): Promise<undefined> {
  const url = `http://${arm.nodes[index % arm.nodes.length]?.listening}/v1/oauth/token`
  return exchange({ ...arm, url, fields: { federation_policy_id: arm.policyId } }, tokens, index)
}

export async function inferAt({ nodes, apiKey }: NodeArm, index: number): Promise<undefined> {
  const status = await infer(nodes[index % nodes.length]?.listening ?? '', apiKey)
  if (status !== 200) throw new Error(`An inference request got ${status}`)
}
