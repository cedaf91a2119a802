// `latchkey presets import` and `export`, the former names of `config apply` and `config export --only presets`. They work for one more
// release, with a note, and no help shows them.
import { type Command, Option } from 'commander'
import type { OperationName, OperationResponse } from '../src/admin/operations.ts'
import { Fault } from '../src/fault.ts'
import { dialects } from '../src/presets/preset.ts'
import { type CommandInput, callOperation } from './shared/call-operation.ts'
import {
  type Arguments,
  command,
  dependencies,
  givenTo,
  print,
  readConfig,
  withSettings,
} from './shared/command-line.ts'
import { readConfigDocuments } from './shared/config-files.ts'
import { drawApplied } from './shared/config-plan.ts'
import { forceOption, warnOf } from './shared/operation-command.ts'
import { inWorkspace, inWorkspaceOf, readBodyFile } from './shared/preset-input.ts'
import { stateAndKept } from './shared/preset-views.ts'

/** After what the command did, so that an error stays the only line on standard error. */
function noteFormer(former: string, current: string): void {
  warnOf({ warnings: [`the next release no longer has presets ${former}: use ${current}`] })
}

export function importPresetsCommand(): Command {
  const made = command('import <file>', 'Apply the presets of a file, or save one preset from a request body', [
    'presets import presets.json',
    'presets import body.json --as support',
    'presets import messages.json --as support --dialect messages',
  ])
    .option('--as <slug>', 'read the file as a request body and save it as the next version of this preset')
    .option(...forceOption)
    .addOption(new Option('--dialect <kind>', 'format of the body').choices([...dialects]).default('chat'))
  return withSettings(inWorkspace(made), { shown: ['LATCHKEY_DATABASE_URL'] }).action(async (...all: unknown[]) => {
    const given = givenTo(all)
    const { as: preset, dialect, json, organization } = given.options
    const file = given.words[0] ?? ''
    if (preset === undefined) {
      const applied = await call(given, 'config.apply', { organization, document: documentOf(given, file) })
      print(json === true ? JSON.stringify(applied, null, 2) : drawApplied(applied, applied))
      noteFormer('import', 'config apply, with "latchkey": 1 added to the file')
      return
    }
    const input = { ...inWorkspaceOf(given), preset, dialect, body: readBodyFile(file) }
    const saved = await call(given, 'presets.save', input)
    print(json === true ? JSON.stringify(saved, null, 2) : stateAndKept(saved))
    noteFormer('import --as', 'presets save')
  })
}

export function exportPresetsCommand(): Command {
  const made = command('export [presets...]', 'Print presets as JSON', ['presets export > presets.json'])
  return withSettings(inWorkspace(made), { shown: ['LATCHKEY_DATABASE_URL'] }).action(async (...all: unknown[]) => {
    const given = givenTo(all)
    const { organization, workspace: asked = 'default' } = given.options
    const { presets = [] } = await call(given, 'config.export', { organization, only: ['presets'] })
    const found = presets.filter(
      ({ slug, workspace: named = 'default' }) =>
        named === asked && (given.words.length === 0 || given.words.includes(String(slug))),
    )
    print(JSON.stringify({ presets: found.map(({ workspace: _, ...preset }) => preset) }, null, 2))
    noteFormer('export', 'config export --only presets')
  })
}

async function call<Name extends OperationName>(
  { options }: Arguments,
  name: Name,
  input: CommandInput<Name>,
): Promise<OperationResponse<Name>> {
  const response = await callOperation(readConfig(options), dependencies, name, input, {
    force: options.force === true,
  })
  warnOf(response)
  return response
}

/** The file as a document. Its entries are of the workspace that the command names. */
function documentOf({ options: { workspace } }: Arguments, file: string): object {
  const [{ presets, ...others } = {}] = readConfigDocuments([file])
  if (!Array.isArray(presets))
    throw new Fault('usage', `${JSON.stringify(file)} has no list "presets"; to import a request body, add --as SLUG`)
  const withWorkspace = (entry: unknown) =>
    typeof entry === 'object' && entry !== null ? { ...(workspace && { workspace }), ...entry } : entry
  return { latchkey: 1, ...others, presets: presets.map(withWorkspace) }
}
