// `latchkey version`: version and commit of this program, for error reports.
import { type Command, CommanderError } from 'commander'
import { latestSchema } from '../db/migrate.ts'
import packageJson from '../package.json' with { type: 'json' }
import { command, givenTo, print, withSettings } from './shared/command-line.ts'
import { record } from './shared/render.ts'

/** Defined by scripts/build.ts. A program that runs from its source has whatever lies in the folder. */
declare const LATCHKEY_COMMIT: string | undefined

export function versionCommand(): Command {
  const made = command('version', 'Print version, commit, Bun and schema', ['version', 'version --json'])
  return withSettings(made, { shown: [] }).action((...all: unknown[]) =>
    printVersion(givenTo(all).options.json === true),
  )
}

/** `-v`, anywhere before a command. */
export function withVersionOption(program: Command, argv: readonly string[]): Command {
  return program.option('-v', 'print version, commit, Bun and schema').on('option:v', () => {
    printVersion(argv.includes('--json'))
    throw new CommanderError(0, 'commander.version', packageJson.version)
  })
}

function printVersion(asJson: boolean): void {
  const { version } = packageJson
  const commit = typeof LATCHKEY_COMMIT === 'undefined' ? 'source' : LATCHKEY_COMMIT
  const bun = process.versions.bun ?? null
  print(
    asJson
      ? JSON.stringify({ version, commit, bun, schema: latestSchema }, null, 2)
      : record({ version, commit, Bun: bun, schema: latestSchema }),
  )
}
