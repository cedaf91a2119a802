// `bun run bench`: what an exchange and what an inference request costs, as ratios measured side by side in one run. `bun run bench exchange`
// and `bun run bench gateway` measure one of the two. Linux only, by its CPU times.
import { benchExchange } from './exchange.ts'
import { benchGateway } from './gateway.ts'

const benches = { exchange: benchExchange, gateway: benchGateway }
const named = process.argv.slice(2)
const unknown = named.find((name) => !(name in benches))
if (unknown !== undefined)
  throw new Error(`There is no bench ${JSON.stringify(unknown)}; there are exchange and gateway`)
for (const [name, bench] of Object.entries(benches)) if (named.length === 0 || named.includes(name)) await bench()
process.exit(0)
