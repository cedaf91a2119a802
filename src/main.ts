#!/usr/bin/env bun
// Entry of the program and of the binary: argv → command → exit code. It imports what the command needs, and nothing more.
import { raiseOutboundLimit } from './runtime/outbound-limit.ts'
import { copyProcessWord } from './runtime/own-process.ts'

const argv = process.argv.slice(2)
const [word = ''] = argv
// This restarts the process, so it comes before anything is loaded.
if (['serve', 'dev', 'agent', 'exec'].includes(word)) raiseOutboundLimit()
// A backup starts this process, and no person does.
if (word === copyProcessWord) await (await import('./backup/copy-process.ts')).runCopyProcess()
const { runLatchkey } = await import('../scripts/latchkey.ts')
await runLatchkey(argv)
