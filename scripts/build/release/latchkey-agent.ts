// The portable file `latchkey-agent.mjs`: the commands of the workload for Node, Bun and Deno, without dependencies. The
// release bundles it (portable-files.ts).
import { parseArgs } from 'node:util'
import { agentCommand } from '../../../src/agent/commands/agent.ts'
import type { AgentCommand, AgentContext } from '../../../src/agent/commands/command.ts'
import { execCommand } from '../../../src/agent/commands/exec.ts'
import { loginCommand, logoutCommand } from '../../../src/agent/commands/login.ts'
import { tokenCommand } from '../../../src/agent/commands/token.ts'
import { formerNameWarning } from '../../../src/agent/source-options.ts'
import { thisMachine } from '../../../src/agent/this-machine.ts'
import { describeError, Fault, tellForCommands } from '../../../src/fault.ts'
import { printable } from '../../shared/render.ts'

declare const LATCHKEY_VERSION: string | undefined
const version = typeof LATCHKEY_VERSION === 'undefined' ? 'source' : LATCHKEY_VERSION
const program = 'latchkey-agent.mjs'
const commands = [tokenCommand, execCommand, agentCommand, loginCommand, logoutCommand]

const context: AgentContext = {
  platform: thisMachine,
  now: Date.now,
  userAgent: `latchkey-agent/${version}`,
  print: (text) => void process.stdout.write(`${text}\n`),
  log: (line) => void process.stderr.write(`${line}\n`),
}

async function run([word = '', ...args]: string[]): Promise<number> {
  if (word === '--version' || word === '-V') return show(version)
  if (word === '--help' || word === '-h' || word === '') return show(overview(), word === '' ? 2 : 0)
  const command = commands.find(({ name }) => name === word)
  if (command === undefined)
    throw new Fault('usage', `${JSON.stringify(word)} is not a command of ${program}; see --help`)
  const { values, positionals } = parse(command, args)
  if (values.help !== undefined) return show(helpOf(command))
  return command.run(values, positionals, context)
}

type Flag = { type: 'boolean' | 'string'; short?: string }

/** Returns the options by name, each as text, and what follows them. */
function parse({ name, options: described, operands }: AgentCommand, args: string[]) {
  const options: Record<string, Flag> = { help: { type: 'boolean', short: 'h' } }
  for (const { name: flag, former = flag, value } of described)
    options[flag] = options[former] = { type: value === undefined ? 'boolean' : 'string' }
  // The options after the first operand belong to the command that it names.
  const passesOn = operands?.endsWith('...>') === true
  const end = passesOn ? firstOperand(args, options) : args.length
  const own = args.slice(0, end)
  const allowPositionals = operands !== undefined && !passesOn
  try {
    const { values, positionals: words } = parseArgs({
      args: own.at(-1) === '--' ? own.slice(0, -1) : own,
      options,
      allowPositionals,
    })
    if (words.length > 1) throw new Error(`Unexpected argument ${JSON.stringify(words[1])}`)
    const positionals = passesOn ? args.slice(end) : words
    const texts = Object.entries(values).map(([flag, value]): [string, string | undefined] => [flag, String(value)])
    return { values: renameFormer(described, Object.fromEntries(texts)), positionals }
  } catch (error) {
    throw new Fault('usage', `${describeError(error)}; see: ${program} ${name} --help`)
  }
}

/** Gives options by their names that were given by former ones, with a warning. */
function renameFormer(described: AgentCommand['options'], values: Record<string, string | undefined>) {
  const renamed = { ...values }
  for (const { name, former } of described) {
    if (former === undefined || values[former] === undefined) continue
    renamed[name] ??= values[former]
    context.log(formerNameWarning(`--${former}`, `--${name}`))
  }
  return renamed
}

/** The place of what follows `--` or the options, whichever comes first. */
function firstOperand(args: string[], options: Record<string, Flag>): number {
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? ''
    if (arg === '--') return at + 1
    if (!arg.startsWith('-')) return at
    if (options[arg.slice(2)]?.type === 'string') at++
  }
  return args.length
}

function show(text: string, code = 0): number {
  context.print(text)
  return code
}

function overview(): string {
  const lines = commands.map(({ name, description }) => `  ${name.padEnd(7)} ${description}`)
  return `Usage: node ${program} COMMAND [options]   (Node 20 or later, Bun, or deno run -A)

Commands:
${lines.join('\n')}

node ${program} COMMAND --help shows its options. Exit codes: 0 done, 1 failed, 2 wrong usage`
}

function helpOf({ name, description, operands, options, examples, notes }: AgentCommand): string {
  const flags = options.map(
    (option) => [`--${option.name}${option.value === undefined ? '' : ` <${option.value}>`}`, option.help] as const,
  )
  const width = Math.max(...flags.map(([flag]) => flag.length))
  return `Usage: node ${program} ${name} [options]${operands === undefined ? '' : ` ${operands}`}

${description}

Options:
${flags.map(([flag, help]) => `  ${flag.padEnd(width)}  ${help}`).join('\n')}

Examples:
${examples.map((line) => `  $ node ${program} ${line}`).join('\n')}

${notes}`
}

function report(error: unknown): number {
  const fault = error instanceof Fault ? error : new Fault('internal', describeError(error), { cause: error })
  const message = tellForCommands(fault)
  const asJson = process.argv.includes('--json')
  const text = message.split('\n').map(printable).join('\n')
  context.log(asJson ? JSON.stringify({ error: { code: fault.code, message } }) : `latchkey: ${text}`)
  return fault.code === 'usage' ? 2 : 1
}

// Node and Deno end a process that writes to a pipe without a reader. A command of `exec` would lose its agent.
process.stderr.on('error', () => {})
// Only this user can read the files and sockets that this process creates.
process.umask(0o077)
process.exitCode = await run(process.argv.slice(2)).catch(report)
