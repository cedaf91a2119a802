// The kinds of databases side by side: one Latchkey on a file, one on a libSQL server and one on an rqlite cluster of one node, with the server 0,
// 1 and 5 ms away. Behind the stand-in of the tests, which adds the delay, are the programs that LATCHKEY_TEST_SQLD and LATCHKEY_TEST_RQLITE name.
import { type Cell, contest, drive } from './contest.ts'
import { startIssuer } from './exchange.ts'
import { concurrencies } from './measure.ts'
import { startArm } from './node-arms.ts'
import { exchangeAt, inferAt } from './nodes.ts'
import { startUpstream } from './proxies.ts'
import type { Result } from './report.ts'

const cellMilliseconds = 700
const warmUpMilliseconds = Number(process.env.BENCH_WARM_UP ?? 2_000)
const delays = [0, 1, 5]

export async function benchDatabases(note: (text: string) => void): Promise<Result[]> {
  const { LATCHKEY_TEST_SQLD: sqld, LATCHKEY_TEST_RQLITE: rqlite } = process.env
  if (sqld === undefined) note('left out: a real libSQL server (LATCHKEY_TEST_SQLD); its stand-in is measured')
  if (rqlite === undefined) note('left out: a real rqlite (LATCHKEY_TEST_RQLITE); its stand-in is measured')
  const issuer = await startIssuer()
  const upstream = await startUpstream()
  const start = async (name: string, kind?: string) => ({
    ...(await startArm(kind === undefined ? 0 : 1, issuer.url, upstream.origin, kind)),
    name,
  })
  const arms = [await start('file'), await start('sqld', 'server'), await start('rqlite', 'rqlite')]
  const act = (arm: (typeof arms)[number], { load }: Cell, index: number) =>
    load.startsWith('exchange') ? exchangeAt(arm, issuer.tokens.ES256 ?? [], index) : inferAt(arm, index)
  for (const load of ['exchange', 'inference'])
    for (const arm of arms) await drive(arm, { load, concurrency: 32, milliseconds: warmUpMilliseconds }, act)
  const results: Result[] = []
  for (const delay of delays) {
    for (const arm of arms) await arm.delayDatabase(delay)
    const away = delay === 0 ? '' : `, database ${delay} ms away`
    results.push(
      ...(await contest({
        ...{ bench: 'databases', arms, warmUpMilliseconds: 0, act },
        cells: ['exchange', 'inference'].flatMap((load) =>
          (concurrencies ?? [8, 64]).map((concurrency) => ({
            load: `${load}${away}`,
            concurrency,
            milliseconds: cellMilliseconds,
          })),
        ),
        watch: async (arm) => arm.count(),
        onFailure: (arm, error) => note(`left out: ${arm} failed: ${error}`),
      })),
    )
  }
  for (const { stop } of arms) await stop()
  await upstream.stop()
  await issuer.stop()
  return results
}
