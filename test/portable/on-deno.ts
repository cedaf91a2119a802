// Runs the scenarios on the runtime it is started with and prints one JSON line for each.
import { startFederation } from '../support/latchkey.ts'
import { scenarios } from './scenarios.ts'

const federation = await startFederation()
for (const { name, run } of scenarios) {
  const error = await run(federation).then(
    () => null,
    (reason: unknown) => String(reason instanceof Error ? reason.stack : reason),
  )
  console.log(JSON.stringify({ name, error }))
}
await federation.stop()
