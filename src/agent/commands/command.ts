// What the commands of the workload share. The program and the portable file both build their command lines from these
// records.
import { Fault } from '../../fault.ts'
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
  /** What follows the options: `<command...>` with its own options, or one word such as `[url]`, which options may follow. */
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

/**
 * Reads a secret from `env:NAME` or `file:PATH`; undefined without a source. It is never an argument, because other users can read
 * arguments in the process list. Throws a `usage` fault.
 */
export async function readSecret(
  source: string | undefined,
  option: string,
  { platform }: AgentContext,
): Promise<string | undefined> {
  if (source === undefined) return undefined
  const [, kind, name = ''] = /^(env|file):(.+)$/.exec(source) ?? []
  if (kind === undefined) throw new Fault('usage', `The value of --${option} is not valid: use env:NAME or file:PATH`)
  const text = kind === 'env' ? platform.environment[name] : await platform.readFile(name).catch(() => undefined)
  if (text !== undefined && text.trim() !== '') return text.trim()
  throw new Fault('usage', `The secret of --${option} ${source} is missing or empty`)
}
