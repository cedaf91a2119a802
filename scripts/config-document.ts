// `latchkey config export`, `schema` and `plan`: the configuration as one document.
import type { Command } from 'commander'
import { command, print } from './shared/command-line.ts'
import { readConfigFiles, yamlLibrary } from './shared/config-files.ts'
import { drawPlan } from './shared/config-plan.ts'
import { inOrganization, operationCommand } from './shared/operation-command.ts'

export function documentCommands(): Command[] {
  return [exportCommand(), schemaCommand(), planCommand()]
}

function exportCommand(): Command {
  const made = command('export', 'Print the configuration as a document, without secrets', [
    'config export > latchkey.yaml',
    'config export --owner platform',
    'config export --json',
  ])
    .option('--owner <owner>', 'only what was made from documents of this owner')
    .option('--all', 'everything (the default)')
  return operationCommand(
    inOrganization(made),
    'config.export',
    ({ options: { organization, owner } }) => ({ organization, owner }),
    (document) => yamlLibrary().stringify(document, { aliasDuplicateObjects: false, lineWidth: 0 }).trimEnd(),
  )
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

function planCommand(): Command {
  const made = command('plan <files...>', 'Show what a document would change, field by field, without changing it', [
    'config plan latchkey.yaml',
    'config plan latchkey.yaml --check',
    'config plan issuers.yaml teams/*.yaml --json',
  ])
    .option('--check', 'exit with code 1 if anything differs from the document')
    .addHelpText(
      'after',
      `
Exit code 1 if a policy is too wide or fails a test, or an object is in conflict; see latchkey help config. A collection that the document
omits is not compared; an empty one means that its owner has none.`,
    )
  return operationCommand(
    inOrganization(made),
    'config.plan',
    ({ words, options: { organization } }) => ({ organization, document: readConfigFiles(words) }),
    drawPlan,
    {
      isNegative: ({ blocked, counts, changes }, { options: { check } }) =>
        blocked.length > 0 || counts.conflict > 0 || (check === true && changes.length > 0),
    },
  )
}
