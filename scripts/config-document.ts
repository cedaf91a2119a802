// `latchkey config export`, `schema`, `plan` and `apply`: the configuration as one document.
import { type Command, Option } from 'commander'
import { kinds } from '../src/admin/kinds/kinds.ts'
import type { OperationResponse } from '../src/admin/operations.ts'
import { Fault } from '../src/fault.ts'
import { socketBodyBytesMax } from '../src/limits.ts'
import { command, dependencies, givenTo, type Options, print, withSettings } from './shared/command-line.ts'
import { examples, titleOf } from './shared/config-examples.ts'
import { readConfigDocuments, readConfigFiles, yamlLibrary } from './shared/config-files.ts'
import { drawApplied, drawPlan, drawTestedDocument, isChanging } from './shared/config-plan.ts'
import { describeLong } from './shared/config-size.ts'
import { readJsonFile } from './shared/input-files.ts'
import { forceOption, inOrganization, operationCommand, warnOf } from './shared/operation-command.ts'
import { exitCodeDrift, exitCodeFailed } from './shared/program.ts'
import { askConfig, remoteOptions } from './shared/remote-config.ts'
import { openSecretsFolder, writeSecrets } from './shared/secret-files.ts'

export function documentCommands(): Command[] {
  return [exampleCommand(), exportCommand(), schemaCommand(), testCommand(), planCommand(), applyCommand()]
}

function exportCommand(): Command {
  const made = command('export', 'Print the configuration as a document, without secrets', [
    'config export > latchkey.yaml',
    'config export --document-owner platform',
    'config export --only presets > presets.yaml',
    'config export --json',
  ])
    .option('--document-owner <owner>', 'only what was made from documents of this owner')
    .addOption(new Option('--only <collections...>', `only these collections: ${kinds.join(', ')}`).choices(kinds))
    .option('--all', 'everything (the default)')
  return operationCommand(
    inOrganization(made),
    'config.export',
    ({ options: { organization, documentOwner, only } }) => ({ organization, owner: documentOwner, only }),
    (document) => yamlLibrary().stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 }).trimEnd(),
    { warningOf: describeLong },
  )
}

function exampleCommand(): Command {
  const made = command('example [provider]', 'Print a commented document for an identity provider, or list them', [
    'config example',
    'config example github > latchkey.yaml',
  ]).option('--json', 'print JSON: the list, or the document as text')
  return made.action((...all: unknown[]) => {
    const { words, options } = givenTo(all)
    const [provider] = words
    const text = provider === undefined ? undefined : examples.get(provider)
    if (provider !== undefined && text === undefined)
      throw new Fault(
        'usage',
        `There is no example ${JSON.stringify(provider)}: use ${[...examples.keys()].join(', ')}`,
      )
    const list = [...examples].map(([name, each]) => ({ name, about: titleOf(each) }))
    if (options.json === true) print(JSON.stringify(text === undefined ? { data: list } : { document: text }, null, 2))
    else print(text?.trimEnd() ?? list.map(({ name, about }) => `${name.padEnd(11)} ${about}`).join('\n'))
  })
}

function schemaCommand(): Command {
  const made = command('schema', 'Print the JSON Schema of a document, for editors', [
    'config schema > latchkey.schema.json',
  ]).addHelpText('after', '\nStart a document with this line: # yaml-language-server: $schema=latchkey.schema.json')
  return made.option('--json', 'print JSON (it always does)').action(async () => {
    // The shapes take longer to load than most commands.
    const { describeDocument } = await import('../src/admin/config/schema.ts')
    print(JSON.stringify(describeDocument(), null, 2))
  })
}

function testCommand(): Command {
  const made = command('test <files...>', 'Lint the policies of documents and run their tests, without a server', [
    'config test latchkey.yaml',
    'config test platform.yaml teams/*.yaml --json',
  ]).addHelpText(
    'after',
    '\nFor a commit hook or a pull request: it reads no database. Exit code 1 if a policy is too wide or fails a test.',
  )
  return made.option('--json', 'print JSON, also for errors (on standard error)').action(async (...all: unknown[]) => {
    const { words, options } = givenTo(all)
    const { testDocuments } = await import('../src/admin/config/document-test.ts')
    const tested = await testDocuments(readConfigDocuments(words), dependencies.now())
    print(options.json === true ? JSON.stringify(tested, null, 2) : drawTestedDocument(tested))
    if (tested.blocked.length > 0) process.exitCode = exitCodeFailed
  })
}

function planCommand(): Command {
  const made = command('plan <files...>', 'Show what documents would change, field by field, without changing it', [
    'config plan latchkey.yaml',
    'config plan latchkey.yaml --check',
    'config plan latchkey.yaml --fail-on-wider',
    'config plan platform.yaml teams/*.yaml --json',
    'config plan latchkey.yaml --url https://llm.example.com/v1 --key-file management.key',
  ])
    .option('--check', 'exit with code 4 if anything differs from the document (drift)')
    .option('--fail-on-wider', 'exit with code 1 if a saved policy would let more tokens pass')
    .addHelpText(
      'after',
      `
Exit code 1 if a policy is too wide or fails a test, or an object is in conflict, also with --check; 4 if --check finds only drift. A
collection that the document omits is not compared; an empty one means that its owner has none. See latchkey help config.`,
    )
  const shown = ['LATCHKEY_DATABASE_URL'] as const
  return withSettings(inOrganization(remoteOptions(made)), { shown }).action(async (...all: unknown[]) => {
    const { words, options } = givenTo(all)
    const { organization } = options
    const { document, documents } = readConfigFiles(words)
    const plan = await askConfig('config.plan', options, { organization, document, documents })
    warnOf(plan)
    print(options.json === true ? JSON.stringify(plan, null, 2) : drawPlan(plan))
    const exitCode = exitCodeOf(plan, options)
    if (exitCode !== 0) process.exitCode = exitCode
  })
}

/** A schedule that looks for drift must distinguish it from a document that cannot be applied. */
function exitCodeOf(plan: OperationResponse<'config.plan'>, { check, failOnWider }: Options): number {
  const { blocked, counts, differences } = plan
  const isWider = failOnWider === true && differences.some(({ gains }) => gains !== undefined)
  if (blocked.length > 0 || counts.conflict > 0 || isWider) return exitCodeFailed
  return check === true && isChanging(plan) ? exitCodeDrift : 0
}

function applyCommand(): Command {
  const made = command('apply <files...>', 'Change the configuration to what documents say: all of it, or nothing', [
    'config apply latchkey.yaml',
    'config apply platform.yaml teams/*.yaml --prune',
    'config apply latchkey.yaml --prune --secrets-out secrets',
    'config apply latchkey.yaml --plan-file plan.json',
    'config apply latchkey.yaml --revision "$(git rev-parse HEAD)"',
  ])
    .option('--prune', 'delete what the owner has and the document no longer names')
    .option('--adopt', 'let the owner of the document have objects that were made by hand')
    .option('--plan-file <file>', 'what config plan --json printed; apply only if nothing has changed since')
    .option(...forceOption)
    .option('--revision <text>', 'revision of the document, such as a git commit, for the record of the change')
    .option('--secrets-out <folder>', 'write each new key to a file in this folder instead of printing it')
    .addHelpText(
      'after',
      '\nNew keys are shown once, or written to files that only you can read. See latchkey help config.',
    )
  const shown = ['LATCHKEY_DATABASE_URL'] as const
  return withSettings(inOrganization(remoteOptions(made)), { shown }).action(async (...all: unknown[]) => {
    const { words, options } = givenTo(all)
    const { organization, prune, adopt, revision, secretsOut } = options
    const input = {
      organization,
      prune,
      adopt,
      fingerprint: fingerprintIn(options.planFile),
      revision,
      ...readConfigFiles(words),
    }
    // A folder that cannot be written must be noticed before the keys exist.
    const folder = typeof secretsOut === 'string' ? openSecretsFolder(secretsOut) : undefined
    const { secrets, ...applied } = await askConfig('config.apply', options, input)
    warnOf(applied)
    const kept = folder === undefined ? { secrets } : { secret_files: writeSecrets(folder, secrets) }
    print(options.json === true ? JSON.stringify({ ...applied, ...kept }, null, 2) : drawApplied(applied, kept))
  })
}

/** The fingerprint of a saved plan. */
function fingerprintIn(path: string | boolean | undefined): string | undefined {
  if (typeof path !== 'string') return undefined
  const { fingerprint } = (readJsonFile(path, socketBodyBytesMax) ?? {}) as { fingerprint?: unknown }
  if (typeof fingerprint === 'string') return fingerprint
  throw new Fault('usage', `${JSON.stringify(path)} is not a plan; save what config plan --json prints`)
}
