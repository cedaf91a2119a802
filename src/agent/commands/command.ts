// What the commands of the workload share. The program and the portable file both build their command lines from these
// records.
import type { AgentDependencies } from '../access-token.ts'
import type { AgentOption, GivenOptions } from '../source-options.ts'

export type AgentContext = AgentDependencies & {
  /** Writes a line to standard output. */
  print: (text: string) => void
  /** Writes a line to standard error. */
  log: (line: string) => void
}

export type AgentCommand = {
  name: string
  description: string
  /** What follows the options, such as `<command...>`. */
  operands?: string
  options: readonly AgentOption[]
  examples: readonly string[]
  notes: string
  /** Resolves with the exit code. Throws a fault. */
  run: (given: GivenOptions, operands: readonly string[], context: AgentContext) => Promise<number>
}

/** What every command has. */
export const commonOptions: readonly AgentOption[] = [
  { name: 'json', help: 'print JSON, also for errors (on standard error)' },
]
