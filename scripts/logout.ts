// `latchkey logout`, which src/agent/commands/login.ts describes.
import type { Command } from 'commander'
import { logoutCommand as described } from '../src/agent/commands/login.ts'
import { makeAgentCommand } from './shared/agent-command.ts'
import { runAlone } from './shared/command-line.ts'

export function logoutCommand(): Command {
  return makeAgentCommand(described)
}

if (import.meta.main) await runAlone(logoutCommand())
