// Copies of a policy under other names and ids, straight into the database. `bun copy-policies.ts DATABASE POLICY_ID COUNT`
import { insertPolicy } from '../../db/policies.ts'
import { loadConfig } from '../../src/config.ts'
import { openContext } from '../../src/context.ts'
import { outboundFetch, resolveHost } from '../../src/runtime/outbound.ts'

const [, , databasePath = '', id = '', count = '0'] = process.argv
const context = await openContext(
  loadConfig({ flags: { LATCHKEY_DATABASE_URL: `file:${databasePath}` }, environment: {} }),
  {
    now: Date.now,
    monotonic: () => performance.now(),
    random: Math.random,
    fetch: outboundFetch,
    resolve: resolveHost,
    usesProxy: false,
    log: () => {},
    onBroken: () => {},
  },
  { create: false },
)
const policy = context.registry.policies.get(id)
if (policy === undefined) throw new Error('There is no policy to copy')
for (let made = 0; made < Number(count); made += 1_000) {
  const copies = Array.from({ length: Math.min(1_000, Number(count) - made) }, (_, index) =>
    insertPolicy(context.orm, { ...policy, id: crypto.randomUUID(), name: `copy-${made + index}` }),
  )
  await context.writer.write(copies)
}
await context.writer.close()
await context.database.close()
