// A process that replaces the master key, and is killed in the end: `bun killed-replacement.ts INPUT`, with the settings
// in its environment. Before its first step and after each, it prints how many it took, and stands still until a line comes.

import { once } from 'node:events'
import { dependencies } from '../../scripts/shared/command-line.ts'
import { planReplacement } from '../../src/admin/master-key.ts'
import { openContext } from '../../src/server/context.ts'
import { loadConfig } from '../../src/settings/config.ts'

const [inputText = ''] = process.argv.slice(2)
const config = loadConfig({ flags: {}, environment: process.env })
const context = await openContext(config, dependencies, { create: false })
const operation = { ...context, actor: { kind: 'local' as const }, operation: 'master_key.replace' }
const { steps } = await planReplacement(operation, JSON.parse(inputText))
async function standStill(taken: number): Promise<void> {
  process.stdout.write(`${taken} of ${steps.length}\n`)
  await once(process.stdin, 'data')
}
await standStill(0)
for (const [index, step] of steps.entries()) {
  await step()
  await standStill(index + 1)
}
process.kill(process.pid, 'SIGKILL')
