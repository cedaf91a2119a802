// `latchkey presets`: named, versioned settings of requests, which callers use by name.
import { type Command, Option } from 'commander'
import { Fault } from '../src/fault.ts'
import { targets } from '../src/presets/apply.ts'
import { exportCommand, importCommand, inWorkspace, inWorkspaceOf, readBodyFile } from './preset-files.ts'
import { drawDiff, drawList, drawVersions, pretty, show, showVersion, state } from './preset-views.ts'
import { type Arguments, command, group, runAlone } from './shared/command-line.ts'
import { operationCommand } from './shared/operation-command.ts'
import { removable, wholeNumber } from './shared/option-values.ts'

export function presetsCommand(): Command {
  const shown = command('show <preset>', 'Show a preset or one of its versions, or what it makes of a request', [
    'presets show support',
    'presets show support@3',
    'presets show support --apply body.json',
    'presets show support --apply messages.json --target messages',
  ])
    .option('--apply <file>', "a caller's request as JSON; prints the request as the preset completes it")
    .addOption(new Option('--target <kind>', 'which endpoint the request is for').choices([...targets]).default('chat'))
  const update = command('update <preset>', 'Rename or describe a preset', [
    'presets update support --name "Support desk" --description "Tier one"',
  ])
    .option('--name <name>', 'what to call it; its slug stays')
    .option('--description <text>', 'what it is for')
    .option('--no-description', 'remove the description')
  const versions = command('versions <preset>', 'List the versions of a preset, oldest first', [
    'presets versions support',
  ])
  return group('presets', 'Presets: named, versioned settings of requests, which callers use by name', [
    operationCommand(
      paged(
        command('list', 'List the presets, the last updated first', ['presets list', 'presets list --archived']),
      ).option('--archived', 'archived ones too'),
      'presets.list',
      (given) => ({ ...inWorkspaceOf(given), ...pageOf(given), archived: given.options.archived }),
      drawList,
    ),
    operationCommand(
      inWorkspace(shown),
      ({ words, options }): 'presets.apply' | 'presets.version' | 'presets.show' =>
        options.apply !== undefined ? 'presets.apply' : words[0]?.includes('@') ? 'presets.version' : 'presets.show',
      (given) => ({ ...oneOf(given), archived: true, ...applyInput(given) }),
      (response) =>
        'body' in response ? pretty(response.body) : 'config' in response ? showVersion(response) : show(response),
    ),
    operationCommand(
      paged(versions),
      'presets.versions',
      (given) => ({ ...oneOf(given), ...pageOf(given), archived: true }),
      drawVersions,
    ),
    operationCommand(
      inWorkspace(
        command('diff <preset@version> <preset@version>', 'Show what differs between two versions', [
          'presets diff support@1 support@3',
        ]),
      ),
      'presets.diff',
      (given) => ({ ...inWorkspaceOf(given), from: given.words[0], to: given.words[1] }),
      drawDiff,
    ),
    operationCommand(
      inWorkspace(
        command('designate <preset@version>', 'Let callers have this version from now on, older or newer', [
          'presets designate support@2',
        ]),
      ),
      'presets.update',
      designateInput,
      state,
    ),
    operationCommand(
      inWorkspace(update),
      'presets.update',
      (given) => ({ ...oneOf(given), name: given.options.name, description: removable(given.options.description) }),
      show,
    ),
    onOne('disable', 'Let a preset be found no more by callers, as if it were absent', 'presets.update', {
      status: 'disabled',
    }),
    onOne('enable', 'Undo disable', 'presets.update', { status: 'active' }),
    onOne('archive', 'Hide a preset; its slug stays taken', 'presets.archive'),
    onOne('restore', 'Undo archive', 'presets.restore'),
    importCommand(),
    exportCommand(),
  ])
}

function paged(made: Command): Command {
  return inWorkspace(made)
    .option('--limit <rows>', 'at most this many, up to 100 (default: 50)', wholeNumber)
    .option('--offset <rows>', 'how many to leave out: the next page', wholeNumber)
}

function pageOf({ options }: Arguments) {
  return { offset: options.offset, limit: options.limit }
}

function oneOf(given: Arguments) {
  return { ...inWorkspaceOf(given), preset: given.words[0] }
}

function onOne(
  verb: string,
  description: string,
  operation: 'presets.update' | 'presets.archive' | 'presets.restore',
  change: object = {},
): Command {
  return operationCommand(
    inWorkspace(command(`${verb} <preset>`, description, [`presets ${verb} support`])),
    operation,
    (given) => ({ ...oneOf(given), ...change }),
    state,
  )
}

function applyInput({ options }: Arguments): object {
  if (options.apply === undefined) return {}
  return { target: options.target, body: readBodyFile(String(options.apply)) }
}

function designateInput(given: Arguments) {
  const [preset, version, ...more] = (given.words[0] ?? '').replace(/^@preset\//, '').split('@')
  if (version === undefined || more.length > 0 || !/^\d{1,9}$/.test(version))
    throw new Fault('usage', 'Say which version, as in: latchkey presets designate support@2')
  return { ...inWorkspaceOf(given), preset, designated_version: Number(version) }
}

if (import.meta.main) await runAlone(presetsCommand())
