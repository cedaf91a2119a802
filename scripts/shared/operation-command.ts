// Commands that run one admin operation: the command line provides the input, and the response is printed.
import type { Command } from 'commander'
import type { OperationName, OperationResponse } from '../../src/admin/operations.ts'
import type { SettingName } from '../../src/settings/settings.ts'
import { type CommandInput, callOperation } from './call-operation.ts'
import { type Arguments, command, dependencies, givenTo, print, readConfig, withSettings } from './command-line.ts'
import { deletionOptions, isDeletion, mayDelete } from './deletion.ts'
import { exitCodeFailed } from './program.ts'
import { createProgress, type ProgressUnit } from './progress.ts'
import { printable } from './render.ts'

type OperationCommandOptions<Name extends OperationName> = {
  /** Settings that the help shows in addition to the database. */
  moreShown?: readonly SettingName[]
  /** Reports whether a successful response means no. The exit code is then 1. */
  isNegative?: (response: OperationResponse<Name>, given: Arguments) => boolean
  /** What to say about a response on standard error. */
  warningOf?: (response: OperationResponse<Name>) => string | undefined
  /** What the progress counts. */
  unit?: ProgressUnit
  /** Removes the reason of a refusal, and reports whether the operation should run once more. */
  remedy?: (refusal: unknown, given: Arguments) => Promise<boolean>
}

/**
 * Creates a command that runs one admin operation. `toInput` reads the command line, and `draw` formats the response
 * for people.
 */
export function operationCommand<Name extends OperationName>(
  made: Command,
  name: Name | ((given: Arguments) => Name),
  toInput: (given: Arguments) => CommandInput<Name>,
  draw: (response: OperationResponse<Name>, given: Arguments) => string,
  { moreShown = [], isNegative, warningOf, unit, remedy }: OperationCommandOptions<Name> = {},
): Command {
  const shown = ['LATCHKEY_DATABASE_URL', ...moreShown] as const
  const forcible = typeof name === 'string' && editing.includes(name) ? made.option(...forceOption) : made
  if (typeof name === 'string' && isDeletion(name)) for (const [flag, help] of deletionOptions) made.option(flag, help)
  return withSettings(forcible, { shown }).action(async (...all: unknown[]) => {
    const given = givenTo(all)
    const operation = typeof name === 'string' ? name : name(given)
    const input = toInput(given)
    const { onProgress, end } = createProgress(process.stderr, dependencies.monotonic, unit)
    const config = readConfig(given.options)
    const calling = { onProgress, force: given.options.force === true }
    if (!(await mayDelete(operation, config, given))) return
    const run = () => callOperation(config, dependencies, operation, input, calling).finally(end)
    const response = await run().catch(async (refusal: unknown) => {
      if ((await remedy?.(refusal, given)) !== true) throw refusal
      return run()
    })
    warnOf(response)
    const warning = warningOf?.(response)
    if (warning !== undefined) warnOf({ warnings: [warning] })
    print(given.options.json === true ? JSON.stringify(response, null, 2) : draw(response, given))
    if (isNegative?.(response, given) === true) process.exitCode = exitCodeFailed
  })
}

/** Operations that may change what a configuration document made. */
const editing: readonly string[] = [
  ...['issuers.update', 'issuers.delete', 'keys.update', 'keys.disable', 'keys.enable', 'keys.delete'],
  ...['policies.update', 'policies.pause', 'policies.resume', 'policies.delete', 'presets.update', 'presets.archive'],
  ...['presets.save', 'presets.restore', 'upstreams.update', 'upstreams.remove', 'prices.set', 'prices.remove'],
  ...['budgets.update', 'budgets.top_up', 'budgets.delete', 'webhooks.update', 'webhooks.delete'],
]
export const forceOption = ['--force', 'change it even if a configuration document locks it'] as const

/** Prints the warnings of a response. */
export function warnOf(response: object): void {
  const { warnings = [] } = response as { warnings?: string[] }
  for (const warning of warnings) process.stderr.write(`Warning: ${printable(warning)}\n`)
}

export function inOrganization(made: Command): Command {
  return made.option('--organization <organization>', 'organization, by name or id (default: the only one, or default)')
}

/** Creates a command on one thing named by its argument, such as `keys disable <key>`. */
export function commandOnOne<Name extends OperationName>(
  kind: string,
  verb: string,
  description: string,
  name: Name,
  draw: (response: OperationResponse<Name>) => string,
  { isCommon = false }: { isCommon?: boolean } = {},
): Command {
  const listing = name.split('.')[0]
  const plain = command(`${verb} <${kind}>`, description, [`${listing} ${verb} my-${kind}`])
  // Things that belong to the whole installation have no organization.
  const made = isCommon ? plain : inOrganization(plain)
  const toInput = ({ words, options }: Arguments) =>
    ({ [kind]: words[0], organization: options.organization }) as CommandInput<Name>
  return operationCommand(made, name, toInput, draw)
}
