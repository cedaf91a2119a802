// What all commands share: settings as flags, JSON or text, errors and exit codes. Each command itself is in the file of its name.
import { Command, InvalidArgumentError, Option } from 'commander'
import type { OperationName } from '../../src/admin/operations.ts'
import { type Config, loadConfig } from '../../src/config.ts'
import type { Dependencies } from '../../src/context.ts'
import { Fault } from '../../src/fault.ts'
import { createLog } from '../../src/observe/log.ts'
import { isBehindProxy, outboundFetch, resolveHost } from '../../src/runtime/outbound.ts'
import { isBoolean } from '../../src/setting-values.ts'
import { configFileSetting, flagOf, type Setting, type SettingName, settings } from '../../src/settings.ts'
import { readTime } from '../../src/values/time-text.ts'
import { callOperation } from './call-operation.ts'
import { exitCodeFailed, pathOf, prepareCommands, reportError } from './program.ts'
import { createProgress } from './progress.ts'

export type Options = Record<string, string | boolean | undefined>
export type Arguments = { words: string[]; options: Options }

/** A group of commands, e.g. `latchkey keys …`. */
export function group(name: string, description: string, commands: Command[]): Command {
  const made = withSettingsBefore(new Command(name).description(description))
  for (const command of commands) made.addCommand(command)
  return made
}

/** A command that takes settings and `--json`; the example lines end its help. */
export function command(nameAndArguments: string, description: string, examples: string[]): Command {
  const made = new Command(nameAndArguments.split(' ')[0]).description(description)
  for (const argument of nameAndArguments.split(' ').slice(1)) made.argument(argument)
  return made.addHelpText('after', `\nExamples:\n${examples.map((line) => `  $ latchkey ${line}`).join('\n')}`)
}

type SettingsShown = { shown: readonly SettingName[]; defaults?: Partial<Record<SettingName, string>> }

/** Adds the settings as flags. All work; help shows those that matter to the command, with its own defaults. */
export function withSettings(made: Command, { shown, defaults = {} }: SettingsShown): Command {
  for (const option of commonOptions()) made.addOption(option)
  for (const setting of settings) {
    const option = settingOption(setting, defaults[setting.env])
    made.addOption(shown.includes(setting.env) ? option : option.hideHelp())
  }
  return made
}

/** The same options for what has commands below it: given there, they count for the command. */
export function withSettingsBefore(made: Command, { isShown = false }: { isShown?: boolean } = {}): Command {
  for (const option of commonOptions()) made.addOption(isShown ? option : option.hideHelp())
  for (const setting of settings) {
    const option = settingOption(setting).hideHelp()
    made.addOption(option.optional ? option.argParser((text) => switchBeforeCommand(option, text)) : option)
  }
  return made
}

function commonOptions(): Option[] {
  return [
    new Option('--json', 'print JSON, also for errors (on standard error)'),
    new Option('--config <file>', `settings file of NAME=value lines (${configFileSetting})`),
  ]
}

function settingOption(
  { env, value, help, default: common }: Setting,
  ownDefault: string | undefined = common,
): Option {
  const text = `${help}${ownDefault === undefined ? '' : ` (default: ${ownDefault})`} (${env})`
  return new Option(`--${flagOf(env)} ${value === 'BOOLEAN' ? '[true|false]' : `<${value.toLowerCase()}>`}`, text)
}

/** The word after a switch is its value when it is one, and otherwise most likely the command. */
function switchBeforeCommand({ long }: Option, text: string): string {
  if (isBoolean(text)) return text
  throw new InvalidArgumentError(`Before a command, write ${long}=true or ${long}=false.`)
}

export function readConfig(options: Options, defaults: Partial<Record<SettingName, string>> = {}): Config {
  const flags: Record<string, string> = {}
  for (const name of [configFileSetting, ...settings.map(({ env }) => env)]) {
    const value = options[flagOf(name).replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())]
    if (value !== undefined) flags[name] = String(value)
  }
  return loadConfig({ flags, environment: process.env, defaults })
}

/** What a command has around it: real time, real network, a log on standard error. */
export const dependencies: Dependencies = {
  now: Date.now,
  monotonic: () => performance.now(),
  random: Math.random,
  fetch: outboundFetch,
  resolve: resolveHost,
  usesProxy: isBehindProxy(),
  log: createLog((line) => process.stderr.write(line)),
  onBroken: () => {
    // A moment for the running requests to be answered with 500; then a restart, since this connection may lose writes.
    setTimeout(() => process.exit(exitCodeFailed), 100)
  },
}

type OperationCommandOptions = {
  /** Settings that its help shows besides the database. */
  moreShown?: readonly SettingName[]
  /** Whether an answer, though the operation succeeded, says no: the exit code is 1 then. */
  isNegative?: (answer: never) => boolean
}

/** A command that is one admin operation: `toInput` reads the command line, `present` draws the answer for people. */
export function operationCommand(
  made: Command,
  name: OperationName | ((given: Arguments) => OperationName),
  toInput: (given: Arguments) => Record<string, unknown>,
  present: (answer: never, given: Arguments) => string,
  { moreShown = [], isNegative }: OperationCommandOptions = {},
): Command {
  const shown = ['LATCHKEY_DATABASE_URL', ...moreShown] as const
  return withSettings(made, { shown }).action(async (...all: unknown[]) => {
    const given = givenTo(all)
    const operation = typeof name === 'string' ? name : name(given)
    const input = withoutUndefined(toInput(given))
    const { onProgress, end } = createProgress(process.stderr, dependencies.monotonic)
    const answer = await callOperation(readConfig(given.options), dependencies, operation, input, onProgress).finally(
      end,
    )
    print(given.options.json === true ? JSON.stringify(answer, null, 2) : present(answer as never, given))
    if (isNegative?.(answer as never) === true) process.exitCode = exitCodeFailed
  })
}

export function inOrganization(made: Command): Command {
  return made.option('--organization <organization>', 'organization, by name or id (default: the only one, or default)')
}

/** A command on one thing named by its argument, e.g. `keys disable <key>`. */
export function commandOnOne(
  kind: string,
  verb: string,
  description: string,
  name: OperationName,
  present: (answer: never) => string,
  { isCommon = false }: { isCommon?: boolean } = {},
): Command {
  const listing = name.split('.')[0]
  const plain = command(`${verb} <${kind}>`, description, [`${listing} ${verb} my-${kind}`])
  // What belongs to the whole installation has no organization.
  const made = isCommon ? plain : inOrganization(plain)
  return operationCommand(
    made,
    name,
    ({ words, options }) => ({ [kind]: words[0], organization: options.organization }),
    present,
  )
}

/** Commander hands over the arguments, the options and last the command itself. What was given before it counts too, unless repeated. */
export function givenTo(all: unknown[]): Arguments {
  const made = all.at(-1) as Command
  return { words: made.args, options: { ...givenBefore(made), ...made.opts() } }
}

function givenBefore(made: Command): Options {
  const given: Options = {}
  for (let above = made.parent; above !== null; above = above.parent) {
    for (const [name, value] of Object.entries(above.opts<Options>())) {
      if (above.getOptionValueSource(name) !== 'cli') continue
      if (!made.options.some((option) => option.attributeName() === name))
        throw new Fault(
          'usage',
          `${longFlag(above, name)} is not an option of ${JSON.stringify(pathOf(made))}; see --help`,
        )
      given[name] ??= value
    }
  }
  return given
}

function longFlag(made: Command, name: string): string {
  return made.options.find((option) => option.attributeName() === name)?.long ?? name
}

/** What a list says instead of how to begin when a filter has left nothing of it. */
export const nothingMatches = 'Nothing that matches'

export function isNarrowed(options: Options, filters: string[]): boolean {
  return filters.some((name) => options[name] !== undefined)
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

function withoutUndefined(input: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))
}

/** An option that `--no-…` removes: null then, and undefined when neither is given, which Commander tells as true. */
export function removable(value: string | boolean | undefined): string | null | undefined {
  if (value === false) return null
  return value === true ? undefined : value
}

/** For options that are numbers. */
export function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}

/** For options that are US dollars. */
export function money(text: string): number {
  if (!/^\d{1,7}(\.\d{1,9})?$/.test(text)) throw new InvalidArgumentError('It must be an amount such as 0.15.')
  return Number(text)
}

/** `2026-11-21`, `2026-11-21T09:30:00Z`, or a time ago such as `30m`, `24h`, `7d`. Without a zone it is UTC, as all times here are. */
export function momentText(text: string): string {
  const ago = durationOf(text)
  const moment = ago === undefined ? readTime(text) : Date.now() - ago
  if (moment === undefined)
    throw new InvalidArgumentError('It must be a time such as 2026-11-21T09:30:00Z, or a time ago such as 24h.')
  return new Date(moment).toISOString()
}

/** `2027-01-01`, `2027-01-01T09:30:00Z`, or a time ahead such as `12h` or `30d`. */
export function futureText(text: string): string {
  const ahead = durationOf(text)
  const moment = ahead === undefined ? readTime(text) : Date.now() + ahead
  if (moment === undefined)
    throw new InvalidArgumentError('It must be a time such as 2027-01-01T00:00:00Z, or a time ahead such as 30d.')
  return new Date(moment).toISOString()
}

function durationOf(text: string): number | undefined {
  const given = /^(\d{1,6})([mhd])$/.exec(text)
  const unit = { m: 60_000, h: 3_600_000, d: 86_400_000 }[given?.[2] ?? '']
  return unit === undefined ? undefined : Number(given?.[1]) * unit
}

/** Runs a program to its exit code, telling errors on standard error. Every way out of the process goes through here. */
export async function runProgram(program: Command, argv: string[]): Promise<void> {
  // Whatever this process makes, the database and its keys above all, is for its user alone.
  process.umask(0o077)
  // A reader that has seen enough is no failure; a full disk is, and what was printed, a key above all, is lost.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    const lost = new Fault('internal', `The command succeeded, but its output could not be written: ${error.message}`)
    void reportError(lost, argv.includes('--json')).then((code) => process.exit(code))
  })
  prepareCommands(program)
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    // A command that failed half-way may have left a listener open; it is not to keep the process alive.
    process.exit(await reportError(error, argv.includes('--json')))
  }
}

/** Runs one script's command when that script is the program. */
export function runAlone(made: Command): Promise<void> {
  return runProgram(made, process.argv.slice(2))
}
