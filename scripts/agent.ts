// `latchkey agent`, which src/agent/commands/agent.ts describes.
import type { Command } from 'commander'
import { agentCommand as described } from '../src/agent/commands/agent.ts'
import { makeAgentCommand } from './shared/agent-command.ts'
import { runAlone } from './shared/command-line.ts'

export function agentCommand(): Command {
  return makeAgentCommand(described)
}

if (import.meta.main) await runAlone(agentCommand())
