// Shared by the whole program: how commands are parsed, how errors are printed, and the exit codes.
import { type Command, CommanderError } from 'commander'
import { describeError, Fault, type FaultCode, tellForCommands } from '../../src/fault.ts'
import { alternatives } from '../../src/values/alternatives.ts'
import { acceptFormerNames } from './former-names.ts'
import { printable } from './render.ts'

/** Exit code 0 is success. */
export const exitCodeConfiguration = 3
const exitCodes: Partial<Record<FaultCode, number>> = { usage: 2, invalid: 2, configuration: exitCodeConfiguration }
export const exitCodeFailed = 1
/** Nothing failed, but what is saved is not what a document says. */
export const exitCodeDrift = 4

/** Returns the path of a command, such as `keys create`. */
export function pathOf(made: Command): string {
  return made.parent === null ? made.name() : `${pathOf(made.parent)} ${made.name()}`.replace(/^latchkey /, '')
}

function helpOf(made: Command): string {
  const path = pathOf(made)
  return path === 'latchkey' ? 'latchkey --help' : `latchkey ${path} --help`
}

/** Makes this command and all its subcommands throw errors instead of printing them. */
export function prepareCommands(made: Command, asJson: boolean): void {
  made
    .exitOverride((error) => {
      throw usageFault(error, made) ?? error
    })
    // A script that reads JSON does not want the help of a group.
    .configureOutput({ outputError: () => {}, ...(asJson && { writeErr: () => {} }) })
    .showHelpAfterError(false)
    // Options after a command belong to that command, even if its parent has the same option.
    .enablePositionalOptions()
  acceptFormerNames(made, pathOf(made))
  requireLate(made)
  for (const child of made.commands) prepareCommands(child, asJson)
}

/**
 * Checks required options after all others. Commander checks them first, and would report a misspelled option as a
 * missing one.
 */
function requireLate(made: Command): void {
  const required = made.options.filter(({ mandatory }) => mandatory)
  for (const option of required) option.mandatory = false
  made.hook('preAction', () => {
    const missing = required.filter((option) => made.getOptionValue(option.attributeName()) === undefined)
    if (missing.length === 0) return
    const flags = missing.map((option) => option.flags).join(' and ')
    throw new Fault('usage', `${flags} must be given; see: ${helpOf(made)}`)
  })
}

/** What Commander found wrong, in our words; undefined for the end of help or of the version. */
function usageFault({ code, exitCode, message }: CommanderError, made: Command): Fault | undefined {
  if (exitCode === 0 || code === 'commander.help') return undefined
  const text = message
    .replace(/^error: /, '')
    .replace(/^option '(--[\w-]+)[^']*' argument '(.*)' is invalid\. /s, (_, flag: string, value: string) => {
      return `${JSON.stringify(value)} is not a valid value for ${flag}: `
    })
    .replace(/Allowed choices are (.*)\.$/, (_, choices: string) => `use ${alternatives(choices.split(', '))}`)
    .replace(/^option '(--[\w-]+)[^']*' argument missing$/, 'Option $1 needs a value')
    .replace(/\n\(Did you mean /, ' (did you mean ')
    .replace(/\.$/, '')
  return new Fault('usage', `${text.charAt(0).toUpperCase()}${text.slice(1)}; see: ${helpOf(made)}`)
}

/** Prints an error to standard error, as JSON or text. Returns the exit code. */
export async function reportError(error: unknown, asJson: boolean): Promise<number> {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0
    // A group without a command has already printed its help.
    if (error.code === 'commander.help' && !asJson) return exitCodes.usage ?? exitCodeFailed
  }
  const fault = isHelp(error)
    ? withoutCommand
    : error instanceof Fault
      ? error
      : new Fault('internal', describeError(error), { cause: error })
  const message = tellForCommands(fault)
  const line = asJson
    ? JSON.stringify({ error: { code: fault.code, message } })
    : `latchkey: ${message.split('\n').map(printable).join('\n')}`
  await new Promise((written) => process.stderr.write(`${line}\n`, written))
  return exitCodes[fault.code] ?? exitCodeFailed
}

const isHelp = (error: unknown): boolean => error instanceof CommanderError && error.code === 'commander.help'

const withoutCommand = new Fault('usage', 'A command is missing after the name of the group; add --help to list them')
