// `bun run bench`: what an exchange, an inference request and a preset cost, as ratios measured side by side in one run. `bun run bench exchange`,
// `… gateway` and `… presets` measure one of the three. Linux only, by its CPU times.
import { benchExchange } from './exchange.ts'
import { benchGateway } from './gateway.ts'
import { benchPresets } from './presets.ts'

const benches = { exchange: benchExchange, gateway: benchGateway, presets: benchPresets }
const named = process.argv.slice(2)
const unknown = named.find((name) => !(name in benches))
if (unknown !== undefined)
  throw new Error(`There is no bench ${JSON.stringify(unknown)}; there are ${Object.keys(benches).join(', ')}`)
for (const [name, bench] of Object.entries(benches)) if (named.length === 0 || named.includes(name)) await bench()
process.exit(0)
