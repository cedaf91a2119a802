// What all commands share: settings as flags, parsed arguments, and running a program. Each command has its own file.
import { Command, Help, InvalidArgumentError, Option } from 'commander'
import { Fault } from '../../src/fault.ts'
import { standardError } from '../../src/observe/line-sink.ts'
import { createLog } from '../../src/observe/log.ts'
import { hasProxy, outboundFetch, resolveHost } from '../../src/runtime/outbound.ts'
import type { Dependencies } from '../../src/server/context.ts'
import { type Config, type ConfigSources, loadConfig } from '../../src/settings/config.ts'
import type { Setting } from '../../src/settings/setting.ts'
import { isBoolean } from '../../src/settings/setting-values.ts'
import { configFileSetting, flagOf, type SettingName, settings } from '../../src/settings/settings.ts'
import { exitCodeFailed, pathOf, prepareCommands, reportError } from './program.ts'

export type Options = Record<string, string | boolean | undefined>
export type Arguments = { words: string[]; options: Options }

/** A group of commands, e.g. `latchkey keys …`. No help shows those that are `former`. */
export function group(name: string, description: string, commands: Command[], former: Command[] = []): Command {
  const made = withSettingsBefore(new Command(name).description(description))
  for (const command of commands) made.addCommand(command)
  for (const command of former) made.addCommand(command, { hidden: true })
  return made
}

/** The commands of a group without its former ones. */
export function shownIn(made: Command): Command[] {
  const shown = new Help().visibleCommands(made)
  return made.commands.filter((command) => shown.includes(command))
}

/** Creates a command that takes settings and `--json`. The example lines end its help. */
export function command(nameAndArguments: string, description: string, examples: string[]): Command {
  const made = new Command(nameAndArguments.split(' ')[0]).description(description)
  for (const argument of nameAndArguments.split(' ').slice(1)) made.argument(argument)
  return made.addHelpText('after', `\nExamples:\n${examples.map((line) => `  $ latchkey ${line}`).join('\n')}`)
}

type SettingsShown = { shown: readonly SettingName[]; defaults?: Partial<Record<SettingName, string>> }

/**
 * Adds the settings as flags. All settings work; help shows only those that matter to the command, with its defaults.
 */
export function withSettings(made: Command, { shown, defaults = {} }: SettingsShown): Command {
  for (const option of commonOptions()) made.addOption(option)
  for (const setting of settings) {
    const option = settingOption(setting, defaults[setting.env])
    made.addOption(shown.includes(setting.env) ? option : option.hideHelp())
  }
  return made
}

/** Adds the same options to a group of commands. Options given before a command apply to it. */
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
  throw new InvalidArgumentError(`before a command, write ${long}=true or ${long}=false`)
}

export function readConfig(options: Options, defaults: Partial<Record<SettingName, string>> = {}): Config {
  return loadConfig(settingSources(options, defaults))
}

/** Returns the sources of this command's settings: its flags, the environment and the settings file. */
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
  usesProxy: hasProxy,
  log: createLog(standardError.write),
  onBroken: () => {
    // Running requests first get a 500. Then the process ends, because this connection can lose writes.
    // A reader of the log that has stalled must not keep the process alive.
    setTimeout(() => standardError.flush(1_000).then(() => process.exit(exitCodeFailed)), 100)
  },
}

/**
 * Reads the arguments of a Commander action: the arguments, the options and, last, the command itself. Options given
 * before the command apply unless they are repeated after it.
 */
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

/** Printed if a list has rows, but none matches the filters. */
export const nothingMatches = 'No matches'

export function isNarrowed(options: Options, filters: string[]): boolean {
  return filters.some((name) => options[name] !== undefined)
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/**
 * Runs a program, prints errors to standard error and sets the exit code. Every exit of the process goes through here.
 */
export async function runProgram(program: Command, argv: string[]): Promise<void> {
  // Only the current user can read files that this process creates, such as the database and its keys.
  process.umask(0o077)
  // A closed pipe is not a failure. A full disk is, because printed output such as a key is lost.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    const lost = new Fault('internal', `The command succeeded, but its output could not be written: ${error.message}`)
    void reportError(lost, argv.includes('--json')).then((code) => process.exit(code))
  })
  prepareCommands(program, argv.includes('--json'))
  try {
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    // A failed command can leave a listener open, which would keep the process alive.
    process.exit(await reportError(error, argv.includes('--json')))
  }
}

/** Runs the command of a script that is started on its own. */
export function runAlone(made: Command): Promise<void> {
  return runProgram(made, process.argv.slice(2))
}
