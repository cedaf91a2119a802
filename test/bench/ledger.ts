// How long the first request of each view of the admin page takes with ten million requests in the ledger: `bun test/bench/ledger.ts`.
// BENCH_ROWS has another number of them.
import { fill } from './growth.ts'
import { installLatchkey } from './measure.ts'

const rows = Number(process.env.BENCH_ROWS ?? 10_000_000)
const [viewMillisecondsMax, groupings] = [
  1_000,
  ['key', 'policy', 'model', 'attribution', 'day', 'upstream', 'preset', 'subject', 'user', 'session'],
]

const { run, folder, serve } = await installLatchkey({ LATCHKEY_UPSTREAM_URL: 'http://127.0.0.1:9/v1' })
const { key: management } = await run('keys', 'create', '--name', 'admin', '--management')
await run('keys', 'create', '--name', 'caller')
await run('issuers', 'add', '--name', 'idp', '--issuer-url', 'https://idp.example.com')
await fill(folder, { keys: 150, policies: 150, spread: rows, spreadExchanges: rows / 50 })
const { baseUrl, stop } = await serve()
console.log(`filled with ${rows} requests of 150 keys`)

/** Milliseconds, and since when the response counts. */
async function ask(path: string): Promise<{ milliseconds: number; since: string }> {
  const startedAt = performance.now()
  const response = await fetch(baseUrl + path, { headers: { authorization: `Bearer ${management}` } })
  const answer = (await response.json()) as { counted_since?: string }
  if (!response.ok) throw new Error(`${path}: ${JSON.stringify(answer)}`)
  return { milliseconds: performance.now() - startedAt, since: answer.counted_since ?? '' }
}

const views = [
  '/workload-identity/findings?installation=true',
  '/workload-identity/audit/counts?per=hour',
  '/workload-identity/audit/counts?per=day',
  '/workload-identity/audit?limit=50',
  '/usage/requests?limit=50',
  '/keys?limit=50',
  '/workload-identity/policies?limit=50&counts=true',
  ...groupings.map((by) => `/usage?by=${by}&per_day=true&limit=50`),
]
// The first operation loads what administration needs.
await ask('/usage?by=key&limit=1')
const missed: string[] = []
for (const path of views) {
  const { milliseconds, since } = await ask(path)
  if (milliseconds > viewMillisecondsMax) missed.push(path)
  console.log(`${path.padEnd(56)} ${milliseconds.toFixed(0).padStart(5)} ms  ${since}`)
}
console.log(missed.length === 0 ? 'target reached' : `missed: ${missed.join(', ')}`)
await stop()
process.exit(0)
