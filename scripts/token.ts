// `latchkey token`, which src/agent/commands/token.ts describes.
import type { Command } from 'commander'
import { tokenCommand as described } from '../src/agent/commands/token.ts'
import { makeAgentCommand } from './shared/agent-command.ts'
import { runAlone } from './shared/command-line.ts'

export function tokenCommand(): Command {
  return makeAgentCommand(described)
}

if (import.meta.main) await runAlone(tokenCommand())
