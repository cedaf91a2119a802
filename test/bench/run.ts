// `bun run bench`: what an exchange, an inference request, a preset, the queue, the audit log, several nodes, budgets and a large installation cost, beside bare limits and other programs that
// are measured in the same run. `bun run bench gateway` measures one of them, `--json` prints JSON. Linux only, by its CPU times.

import { benchAudit } from './audit.ts'
import { benchBudgetObjects } from './budgets.ts'
import { benchCores } from './cores.ts'
import { benchDatabases } from './databases.ts'
import { benchDocuments } from './documents.ts'
import { benchExchange } from './exchange.ts'
import { benchGateway } from './gateway.ts'
import { benchGrowth } from './growth.ts'
import { rounds } from './measure.ts'
import { benchNodes } from './nodes.ts'
import { benchPresets } from './presets.ts'
import { benchQueue } from './queue.ts'
import { benchRate } from './rate.ts'
import { printResults, type Result } from './report.ts'
import { benchReview } from './review.ts'
import { benchStart } from './start.ts'
import { findUnjudged, judgeTargets, printVerdicts } from './verdicts.ts'

/** A bench says with `note` what it leaves out. */
export type Bench = (note: (text: string) => void) => Promise<Result[]>

const benches: Record<string, Bench> = {
  exchange: benchExchange,
  gateway: benchGateway,
  rate: benchRate,
  cores: benchCores,
  presets: benchPresets,
  queue: benchQueue,
  nodes: benchNodes,
  databases: benchDatabases,
  budgets: benchBudgetObjects,
  growth: benchGrowth,
  audit: benchAudit,
  start: benchStart,
  review: benchReview,
  documents: benchDocuments,
}
const named = process.argv.slice(2).filter((name) => name !== '--json')
const isJson = process.argv.includes('--json')
const unknown = named.find((name) => !(name in benches))
if (unknown !== undefined)
  throw new Error(`${JSON.stringify(unknown)} is not a bench: choose from ${Object.keys(benches).join(', ')}`)

const print = isJson ? console.error : console.log
const notes: string[] = []
const note = (text: string) => {
  notes.push(text)
  print(`  ${text}`)
}
const results: Result[] = []
const startedAt = performance.now()
for (const [name, bench] of Object.entries(benches)) {
  if (named.length > 0 && !named.includes(name)) continue
  print(`${name}, ${rounds} rounds …`)
  const found = await bench(note)
  results.push(...found)
  if (!isJson) printResults(found, print)
}
const verdicts = judgeTargets(results)
const unjudged = findUnjudged(results)
if (!isJson) printVerdicts(verdicts, unjudged, print)
const seconds = Math.round((performance.now() - startedAt) / 1_000)
print(`\n${seconds} s, ${rounds} rounds, Bun ${Bun.version}${notes.map((text) => `; ${text}`).join('')}`)
if (isJson)
  await Bun.write(
    Bun.stdout,
    `${JSON.stringify({ bun: Bun.version, rounds, seconds, notes, results, targets: verdicts, unjudged })}\n`,
  )
process.exit(0)
