// `latchkey presets`: named, versioned settings of requests, which callers use by name.
import { type Command, Option } from 'commander'
import { callOperation } from '../src/admin/client.ts'
import { Fault } from '../src/fault.ts'
import { presetBodyBytesMax, socketBodyBytesMax } from '../src/limits.ts'
import { targets } from '../src/presets/apply.ts'
import { dialects } from '../src/presets/preset.ts'
import {
  type Arguments,
  command,
  givenTo,
  group,
  inOrganization,
  operationCommand,
  print,
  readConfig,
  readJsonFile,
  readTextFile,
  removable,
  runAlone,
  surroundings,
  wholeNumber,
  withSettings,
} from './command-line.ts'
import {
  type Applied,
  drawDiff,
  drawImported,
  drawList,
  drawVersions,
  type Imported,
  type Preset,
  pretty,
  show,
  showVersion,
  state,
  stateAndKept,
  type Version,
} from './preset-views.ts'

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
      ({ words, options }) =>
        options.apply !== undefined ? 'presets.apply' : words[0]?.includes('@') ? 'presets.version' : 'presets.show',
      (given) => ({ ...oneOf(given), archived: true, ...applyInput(given) }),
      (answer: Preset | Version | Applied) =>
        'body' in answer ? pretty(answer.body) : 'config' in answer ? showVersion(answer) : show(answer),
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
    operationCommand(
      inWorkspace(importing()),
      ({ options }) => (options.as === undefined ? 'presets.import' : 'presets.save'),
      importInput,
      (answer: { data: Imported[] } | Preset) => ('data' in answer ? drawImported(answer.data) : stateAndKept(answer)),
    ),
    exporting(),
  ])
}

function inWorkspace(made: Command): Command {
  return inOrganization(made).option('--workspace <workspace>', 'workspace, by name or id (default: default)')
}

function paged(made: Command): Command {
  return inWorkspace(made)
    .option('--limit <rows>', 'at most this many, up to 100 (default: 50)', wholeNumber as never)
    .option('--offset <rows>', 'how many to leave out: the next page', wholeNumber as never)
}

function pageOf({ options }: Arguments) {
  return { offset: options.offset, limit: options.limit }
}

function inWorkspaceOf({ options }: Arguments) {
  return { organization: options.organization, workspace: options.workspace }
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

/** As text, since its numbers may be larger than ours. */
function readBodyFile(path: string): string {
  const text = readTextFile(path, presetBodyBytesMax)
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch (error) {
    throw new Fault('usage', `${JSON.stringify(path)} cannot be read as JSON: ${(error as Error).message}`)
  }
  if (typeof body === 'object' && body !== null && 'presets' in body)
    throw new Fault('usage', `${JSON.stringify(path)} is a list of presets, not the body of a request; leave --as out`)
  return text
}

function designateInput(given: Arguments) {
  const [preset, version, ...more] = (given.words[0] ?? '').replace(/^@preset\//, '').split('@')
  if (version === undefined || more.length > 0 || !/^\d{1,9}$/.test(version))
    throw new Fault('usage', 'Say which version, as in: latchkey presets designate support@2')
  return { ...inWorkspaceOf(given), preset, designated_version: Number(version) }
}

function importing(): Command {
  return command('import <file>', 'Make or update all presets of a JSON file, or one of a request body', [
    'presets import presets.json',
    'presets import body.json --as support',
    'presets import messages.json --as support --dialect messages',
  ])
    .option('--as <slug>', 'the file is the body of a request; make it the next version of this preset')
    .addOption(new Option('--dialect <kind>', 'what kind of body it is').choices([...dialects]).default('chat'))
    .addHelpText(
      'after',
      '\nThe file, unless --as is given, is what export prints: { "presets": [{ "slug", "name", "description", "status", "system_prompt", "config" }] }.\nIt is taken whole or not at all, and what it says is in use at once. What is there already as it should be makes no new version.',
    )
}

function importInput(given: Arguments): Record<string, unknown> {
  const { as, dialect } = given.options
  const file = given.words[0] ?? ''
  if (as !== undefined) return { ...inWorkspaceOf(given), preset: as, dialect, body: readBodyFile(file) }
  const read = readJsonFile(file, socketBodyBytesMax) as { presets?: unknown } | null
  const presets = Array.isArray(read) ? read : read?.presets
  if (!Array.isArray(presets))
    throw new Fault('usage', `${JSON.stringify(file)} has no list "presets"; for the body of a request, say --as SLUG`)
  return { ...inWorkspaceOf(given), presets: presets.map(entryOf) }
}

/** Settings nest deep and in an order that counts, so they go as text. */
function entryOf(preset: unknown): unknown {
  if (typeof preset !== 'object' || preset === null) return preset
  const { config, system_prompt, ...described } = preset as Record<string, unknown>
  return { ...described, content: JSON.stringify({ config, system_prompt }) }
}

function exporting(): Command {
  const made = inWorkspace(
    command('export [presets...]', 'Print presets as JSON, for import elsewhere or for a repository', [
      'presets export > presets.json',
      'presets export support triage',
    ]),
  )
  return withSettings(made, { shown: ['LATCHKEY_DATABASE_URL'] }).action(async (...all: unknown[]) => {
    const given = givenTo(all)
    const presets: unknown[] = []
    const named = given.words.length === 0 ? {} : { presets: given.words }
    for (let after: string | undefined; ; ) {
      const input = JSON.parse(JSON.stringify({ ...inWorkspaceOf(given), ...named, after })) as object
      const page = await callOperation(readConfig(given.options), surroundings, 'presets.export', input)
      const { data, more_after } = page as { data: unknown[]; more_after?: string }
      presets.push(...data)
      after = more_after
      if (after === undefined) break
    }
    print(JSON.stringify({ presets }, null, 2))
  })
}

if (import.meta.main) await runAlone(presetsCommand())
