// `latchkey presets`: named, versioned request settings, which callers use by name.
import { type Command, Option } from 'commander'
import { Fault } from '../src/fault.ts'
import { targets } from '../src/presets/apply.ts'
import { dialects } from '../src/presets/preset.ts'
import { exportPresetsCommand, importPresetsCommand } from './preset-files.ts'
import { type Arguments, command, group, runAlone } from './shared/command-line.ts'
import { operationCommand } from './shared/operation-command.ts'
import { removable, wholeNumber } from './shared/option-values.ts'
import { inWorkspace, inWorkspaceOf, readBodyFile } from './shared/preset-input.ts'
import {
  drawDiff,
  drawList,
  drawVersions,
  pretty,
  show,
  showVersion,
  state,
  stateAndKept,
} from './shared/preset-views.ts'

export function presetsCommand(): Command {
  const commands = [
    saveCommand(),
    listCommand(),
    showCommand(),
    versionsCommand(),
    diffCommand(),
    designateCommand(),
    updateCommand(),
    onOne('disable', 'Hide a preset from callers (404)', 'presets.update', { status: 'disabled' }),
    onOne('enable', 'Make a disabled preset available again', 'presets.update', { status: 'active' }),
    onOne('archive', 'Archive a preset; its slug stays reserved', 'presets.archive'),
    onOne('restore', 'Make an archived preset available again', 'presets.restore'),
  ]
  const about = 'Named, versioned request settings, which callers use by name'
  return group('presets', about, commands, [importPresetsCommand(), exportPresetsCommand()])
}

function saveCommand(): Command {
  const made = command('save <preset> <file>', 'Save the body of a request as the next version of a preset', [
    'presets save support body.json',
    'presets save support messages.json --dialect messages',
  ])
    .addOption(new Option('--dialect <kind>', 'format of the body').choices([...dialects]).default('chat'))
    .addHelpText('after', '\nTo keep presets in a repository, see config export --only presets and config apply.')
  return operationCommand(
    inWorkspace(made),
    'presets.save',
    (given) => ({ ...oneOf(given), dialect: given.options.dialect, body: readBodyFile(given.words[1] ?? '') }),
    stateAndKept,
  )
}

function listCommand(): Command {
  const made = command('list', 'List the presets, most recently updated first', [
    'presets list',
    'presets list --archived',
  ])
  return operationCommand(
    paged(made).option('--archived', 'include archived presets'),
    'presets.list',
    (given) => ({ ...inWorkspaceOf(given), ...pageOf(given), archived: given.options.archived, last_use: true }),
    drawList,
  )
}

function showCommand(): Command {
  const made = command('show <preset>', 'Show a preset or one of its versions, or apply it to a request', [
    'presets show support',
    'presets show support@3',
    'presets show support --apply body.json',
    'presets show support --apply messages.json --target messages',
  ])
    .option('--apply <file>', "a caller's request as JSON; print it as the preset completes it")
    .addOption(new Option('--target <kind>', 'endpoint of the request').choices([...targets]).default('chat'))
  return operationCommand(
    inWorkspace(made),
    showOperation,
    (given) => ({
      ...oneOf(given),
      archived: true,
      ...applyInput(given),
      ...(showOperation(given) === 'presets.show' ? { last_use: true } : {}),
    }),
    (response) =>
      'body' in response ? pretty(response.body) : 'config' in response ? showVersion(response) : show(response),
  )
}

function showOperation({ words, options }: Arguments): 'presets.apply' | 'presets.version' | 'presets.show' {
  return options.apply !== undefined ? 'presets.apply' : words[0]?.includes('@') ? 'presets.version' : 'presets.show'
}

function versionsCommand(): Command {
  const made = command('versions <preset>', 'List the versions of a preset, oldest first', ['presets versions support'])
  return operationCommand(
    paged(made),
    'presets.versions',
    (given) => ({ ...oneOf(given), ...pageOf(given), archived: true }),
    drawVersions,
  )
}

function diffCommand(): Command {
  const made = command('diff <preset@version> <preset@version>', 'Show the differences between two versions', [
    'presets diff support@1 support@3',
  ])
  return operationCommand(
    inWorkspace(made),
    'presets.diff',
    (given) => ({ ...inWorkspaceOf(given), from: given.words[0], to: given.words[1] }),
    drawDiff,
  )
}

function designateCommand(): Command {
  const made = command('designate <preset@version>', 'Make this the version that callers get', [
    'presets designate support@2',
  ])
  return operationCommand(inWorkspace(made), 'presets.update', designateInput, state)
}

function updateCommand(): Command {
  const made = command('update <preset>', 'Change the name or description of a preset', [
    'presets update support --name "Support desk" --description "Tier one"',
  ])
    .option('--name <name>', 'new name; the slug stays the same')
    .option('--description <text>', 'new description')
    .option('--no-description', 'remove the description')
  return operationCommand(
    inWorkspace(made),
    'presets.update',
    (given) => ({ ...oneOf(given), name: given.options.name, description: removable(given.options.description) }),
    show,
  )
}

function paged(made: Command): Command {
  return inWorkspace(made)
    .option('--limit <rows>', 'maximum number of rows, up to 100 (default: 50)', wholeNumber)
    .option('--offset <rows>', 'number of rows to skip, for the next page', wholeNumber)
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
    throw new Fault('usage', 'Give the preset with a version, as in: latchkey presets designate support@2')
  return { ...inWorkspaceOf(given), preset, designated_version: Number(version) }
}

if (import.meta.main) await runAlone(presetsCommand())
