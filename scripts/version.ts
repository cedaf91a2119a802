// `latchkey version`: version and commit of this program, for error reports; what is inside, and its licenses.
import { type Command, CommanderError, Option } from 'commander'
import { latestSchema } from '../db/schema/migrate.ts'
import packageJson from '../package.json' with { type: 'json' }
import { Fault } from '../src/fault.ts'
import { command, givenTo, print, withSettings } from './shared/command-line.ts'
import { record } from './shared/render.ts'

// Defined by scripts/build/release/compile.ts. A program that runs from its source has whatever lies in the folder.
declare const LATCHKEY_COMMIT: string | undefined
declare const LATCHKEY_SBOM: string | undefined
declare const LATCHKEY_LICENSES: string | undefined

export function versionCommand(): Command {
  const made = command('version', 'Print version, commit, Bun and schema', [
    'version',
    'version --json',
    'version --sbom > latchkey.cdx.json',
  ])
    .addOption(new Option('--sbom', 'print what this program contains (CycloneDX 1.6)').conflicts('licenses'))
    .addOption(new Option('--licenses', 'print the licenses of everything that this program contains'))
  return withSettings(made, { shown: [] }).action((...all: unknown[]) => {
    const { json, sbom, licenses } = givenTo(all).options
    if (sbom === true) return print(embedded(typeof LATCHKEY_SBOM === 'undefined' ? undefined : LATCHKEY_SBOM))
    if (licenses !== true) return printVersion(json === true)
    const text = embedded(typeof LATCHKEY_LICENSES === 'undefined' ? undefined : LATCHKEY_LICENSES)
    print(json === true ? JSON.stringify({ licenses: text }) : text)
  })
}

function embedded(text: string | undefined): string {
  if (text !== undefined) return text.trimEnd()
  throw new Fault('usage', 'Only a built program lists its contents; build it with: bun run build')
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
