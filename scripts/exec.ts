// `latchkey exec`, which src/agent/commands/exec.ts describes.
import type { Command } from 'commander'
import { execCommand as described } from '../src/agent/commands/exec.ts'
import { makeAgentCommand } from './shared/agent-command.ts'
import { runAlone } from './shared/command-line.ts'

export function execCommand(): Command {
  return makeAgentCommand(described)
}

if (import.meta.main) await runAlone(execCommand())
