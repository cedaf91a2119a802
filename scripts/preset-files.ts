// `latchkey presets import` and `export`, the format of presets before they were part of configuration documents. They work for one more
// release, with a note, and no help shows them. Then this file goes, and `presets.import` and `presets.export` with it.
import { type Command, Option } from 'commander'
import type { OperationName, OperationResponse } from '../src/admin/operations.ts'
import { Fault } from '../src/fault.ts'
import { presetFileBytesMax, presetsAtOnceCharactersMax, presetsAtOnceMax } from '../src/limits.ts'
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
import { readJsonFile } from './shared/input-files.ts'
import { forceOption, warnOf } from './shared/operation-command.ts'
import { inWorkspace, inWorkspaceOf, readBodyFile } from './shared/preset-input.ts'
import { drawImported, stateAndKept } from './shared/preset-views.ts'

/** After what the command did, so that an error stays the only line on standard error. */
function noteFormer(former: string, current: string): void {
  warnOf({ warnings: [`the next release no longer has presets ${former}: use ${current}`] })
}

export function importPresetsCommand(): Command {
  const made = command(
    'import <file>',
    'Create or update all presets in a JSON file, or one preset from a request body',
    [
      'presets import presets.json',
      'presets import body.json --as support',
      'presets import messages.json --as support --dialect messages',
    ],
  )
    .option('--as <slug>', 'read the file as a request body and save it as the next version of this preset')
    .option(...forceOption)
    .addOption(new Option('--dialect <kind>', 'format of the body').choices([...dialects]).default('chat'))
    .addHelpText(
      'after',
      '\nWithout --as, the file has the format that export prints: { "presets": [{ "slug", "name", "description", "status", "system_prompt", "config" }] }.\nThe whole file is checked before anything is saved. Changes take effect immediately. A preset that does not change gets no new version.',
    )
  return withSettings(inWorkspace(made), { shown: ['LATCHKEY_DATABASE_URL'] }).action(async (...all: unknown[]) => {
    const given = givenTo(all)
    const { as: preset, dialect, json } = given.options
    const file = given.words[0] ?? ''
    if (preset === undefined) {
      const data = await importAll(given, readPresets(file))
      print(json === true ? JSON.stringify({ data }, null, 2) : drawImported(data))
      noteFormer('import', 'config apply, with "latchkey": 1 added to the file')
      return
    }
    const saved = await call(given, 'presets.save', { preset, dialect, body: readBodyFile(file) })
    print(json === true ? JSON.stringify(saved, null, 2) : stateAndKept(saved))
    noteFormer('import --as', 'presets save')
  })
}

async function call<Name extends OperationName>(
  given: Arguments,
  name: Name,
  input: CommandInput<Name>,
): Promise<OperationResponse<Name>> {
  const fields = { ...inWorkspaceOf(given), ...input }
  const calling = { force: given.options.force === true }
  const response = await callOperation(readConfig(given.options), dependencies, name, fields, calling)
  warnOf(response)
  return response
}

type ImportResult = OperationResponse<'presets.import'>['data']

/** Part by part, all checked before the first is saved. */
async function importAll(given: Arguments, presets: unknown[]): Promise<ImportResult> {
  const parts = partsOf(presets)
  const importPart = async (input: CommandInput<'presets.import'>) => (await call(given, 'presets.import', input)).data
  let created_before = 0
  for (const part of parts) {
    const data = await importPart({ presets: part, dry_run: true, created_before })
    created_before += data.filter(({ outcome }) => outcome === 'created').length
  }
  const imported: ImportResult = []
  for (const part of parts) imported.push(...(await importPart({ presets: part })))
  return imported
}

function partsOf(presets: unknown[]): unknown[][] {
  const parts: unknown[][] = [[]]
  let characters = 0
  for (const preset of presets) {
    const entry = entryOf(preset)
    const { length } = JSON.stringify(entry)
    const isFull = characters + length > presetsAtOnceCharactersMax || parts.at(-1)?.length === presetsAtOnceMax
    if (isFull) parts.push([])
    characters = (isFull ? 0 : characters) + length
    parts.at(-1)?.push(entry)
  }
  return parts
}

function readPresets(file: string): unknown[] {
  const read = readJsonFile(file, presetFileBytesMax) as { presets?: unknown } | null
  const presets: unknown = Array.isArray(read) ? read : read?.presets
  if (!Array.isArray(presets))
    throw new Fault('usage', `${JSON.stringify(file)} has no list "presets"; to import a request body, add --as SLUG`)
  const slugs = new Set<unknown>()
  for (const { slug } of presets as { slug?: unknown }[]) {
    if (slugs.has(slug))
      throw new Fault('usage', `The preset ${JSON.stringify(slug)} is in the file twice; remove one of the two`)
    slugs.add(slug)
  }
  return presets
}

/** Settings nest deep and in an order that counts, so they go as text. */
function entryOf(preset: unknown): unknown {
  if (typeof preset !== 'object' || preset === null) return preset
  const { config, system_prompt, ...described } = preset as Record<string, unknown>
  return { ...described, content: JSON.stringify({ config, system_prompt }, withFiniteNumbers) }
}

/** JSON has no number for what was written as 1e999, and null would mean that nothing was. */
function withFiniteNumbers(name: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new Fault('usage', `${JSON.stringify(name)} is a number that is too large for JSON; use a smaller one`)
  return value
}

type ExportResult = OperationResponse<'presets.export'>

export function exportPresetsCommand(): Command {
  const made = inWorkspace(
    command('export [presets...]', 'Print presets as JSON, to import elsewhere or to keep in a repository', [
      'presets export > presets.json',
      'presets export support triage',
    ]),
  )
  return withSettings(made, { shown: ['LATCHKEY_DATABASE_URL'] }).action(async (...all: unknown[]) => {
    const given = givenTo(all)
    const presets: unknown[] = []
    const named = given.words.length === 0 ? {} : { presets: given.words }
    for (let after: string | undefined; ; ) {
      const { data, more_after }: ExportResult = await call(given, 'presets.export', { ...named, after })
      presets.push(...data)
      after = more_after
      if (after === undefined) break
    }
    print(JSON.stringify({ presets }, null, 2))
    noteFormer('export', 'config export --only presets')
  })
}
