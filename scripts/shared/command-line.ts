// What all commands share: settings as flags, what was given, and how a program runs. Each command itself is in the file of its name.
import { Command, InvalidArgumentError, Option } from 'commander'
import { type Config, type ConfigSources, loadConfig } from '../../src/config.ts'
import type { Dependencies } from '../../src/context.ts'
import { Fault } from '../../src/fault.ts'
import { createLog } from '../../src/observe/log.ts'
import { isBehindProxy, outboundFetch, resolveHost } from '../../src/runtime/outbound.ts'
import { isBoolean } from '../../src/setting-values.ts'
import { configFileSetting, flagOf, type Setting, type SettingName, settings } from '../../src/settings.ts'
import { exitCodeFailed, pathOf, prepareCommands, reportError } from './program.ts'

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

/** The same options for a group of commands: given before the command, they apply to it. */
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

/** The word after a switch is its value if it is a boolean. Otherwise it is probably the command. */
function switchBeforeCommand({ long }: Option, text: string): string {
  if (isBoolean(text)) return text
  throw new InvalidArgumentError(`Before a command, write ${long}=true or ${long}=false.`)
}

export function readConfig(options: Options, defaults: Partial<Record<SettingName, string>> = {}): Config {
  return loadConfig(settingSources(options, defaults))
}

/** Where the settings of this command come from: its flags, the environment of this process and the settings file. */
export function settingSources(options: Options, defaults: Partial<Record<SettingName, string>> = {}): ConfigSources {
  const flags: Record<string, string> = {}
  for (const name of [configFileSetting, ...settings.map(({ env }) => env)]) {
    const value = options[flagOf(name).replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())]
    if (value !== undefined) flags[name] = String(value)
  }
  return { flags, environment: process.env, defaults }
}

/** The dependencies of a command: real time, real network, a log on standard error. */
export const dependencies: Dependencies = {
  now: Date.now,
  monotonic: () => performance.now(),
  random: Math.random,
  fetch: outboundFetch,
  resolve: resolveHost,
  usesProxy: isBehindProxy(),
  log: createLog((line) => process.stderr.write(line)),
  onBroken: () => {
    // Running requests get a 500 first. Then the process ends, since this connection may lose writes.
    setTimeout(() => process.exit(exitCodeFailed), 100)
  },
}

/** Commander passes the arguments, the options and last the command itself. Options given before the command apply unless repeated after it. */
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

/** What a list says when rows exist, but none matches the filters. */
export const nothingMatches = 'No matches'

export function isNarrowed(options: Options, filters: string[]): boolean {
  return filters.some((name) => options[name] !== undefined)
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Runs a program to its exit code, with errors on standard error. Every exit of the process goes through here. */
export async function runProgram(program: Command, argv: string[]): Promise<void> {
  // Only its user can read the files that this process creates, such as the database and its keys.
  process.umask(0o077)
  // A reader that stops reading is not a failure. A full disk is: what was printed, such as a key, is lost.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    const lost = new Fault('internal', `The command succeeded, but its output could not be written: ${error.message}`)
    void reportError(lost, argv.includes('--json')).then((code) => process.exit(code))
  })
  prepareCommands(program)
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    // A command that failed may have left a listener open, which would keep the process alive.
    process.exit(await reportError(error, argv.includes('--json')))
  }
}

/** Runs one script's command when that script is the program. */
export function runAlone(made: Command): Promise<void> {
  return runProgram(made, process.argv.slice(2))
}
