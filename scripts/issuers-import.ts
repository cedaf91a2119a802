// `latchkey issuers import`: takes the keys of issuers from signed bundles, and shows what changes.
import type { Command } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { keyBundleFileCharactersMax } from '../src/federation/issuer/key-bundle.ts'
import { command } from './shared/command-line.ts'
import { readTextFile } from './shared/input-files.ts'
import { inOrganization, operationCommand } from './shared/operation-command.ts'
import { few, moment, printable } from './shared/render.ts'

type ImportResult = OperationResponse<'issuers.import'>
type Keys = ImportResult['data'][number]['keys_added']

export function importKeysCommand(): Command {
  const made = command('import <file>', 'Take the keys of issuers from signed bundles', [
    'issuers import keys.bundle --dry-run',
    'issuers import keys.bundle',
  ]).option('--dry-run', 'show what would change, and save nothing')
  return operationCommand(
    inOrganization(made),
    'issuers.import',
    ({ words, options }) => ({
      organization: options.organization,
      file: readTextFile(words[0] ?? '', keyBundleFileCharactersMax),
      dry_run: options.dryRun,
    }),
    draw,
    { isNegative: ({ data }) => data.some(({ outcome }) => outcome === 'refused') },
  )
}

function draw({ dry_run, data }: ImportResult): string {
  const lines = data.flatMap((each, index) => drawOne(each, index, dry_run === true))
  return [...lines, ...(dry_run === true ? ['Nothing was saved. Run this without --dry-run to save it.'] : [])].join(
    '\n',
  )
}

function drawOne(bundle: ImportResult['data'][number], index: number, isDryRun: boolean): string[] {
  const { outcome, reason, message } = bundle
  const name = printable(bundle.issuer ?? bundle.issuer_url ?? `bundle ${index + 1}`)
  if (outcome === 'refused') return [`✗ ${name}: refused (${reason})`, `    ${printable(message)}`]
  if (outcome === 'unchanged') return [`✓ ${name}: this bundle was imported before`]
  const about = `signed by ${printable(bundle.bundle_signer)}, sequence ${bundle.sequence}`
  return [
    `✓ ${name}: ${isDryRun ? 'would be imported' : 'imported'} (${about})`,
    `    expires  ${moment(bundle.expires_at)} UTC`,
    `    added    ${drawKeys(bundle.keys_added)}`,
    `    kept     ${drawKeys(bundle.keys_kept)}`,
    `    gone     ${drawKeys(bundle.keys_gone)}`,
  ]
}

function drawKeys(keys: Keys): string {
  const names = keys.map(({ kid, algorithm }) => `${printable(kid ?? '(no kid)')} ${algorithm}`)
  return names.length === 0 ? 'none' : few(names, 10)
}
