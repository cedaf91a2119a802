// A process that replaces the master key and is killed after a number of steps: `bun killed-replacement.ts STEPS
// INPUT`, with the settings in its environment.

import { dependencies } from '../../scripts/shared/command-line.ts'
import { planReplacement } from '../../src/admin/master-key.ts'
import { loadConfig } from '../../src/config.ts'
import { openContext } from '../../src/context.ts'

const [stepsText = '', inputText = ''] = process.argv.slice(2)
const config = loadConfig({ flags: {}, environment: process.env })
const context = await openContext(config, dependencies, { create: false })
const operation = { ...context, actor: { kind: 'local' as const }, operation: 'master_key.replace' }
const { steps } = await planReplacement(operation, JSON.parse(inputText))
for (const step of steps.slice(0, Number(stepsText))) await step()
process.stdout.write(`${steps.length}\n`)
process.kill(process.pid, 'SIGKILL')
