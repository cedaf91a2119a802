// `latchkey bundle-signers`: whose signed bundles of issuer keys an organization accepts.
import type { Command } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { command, group, runAlone } from './shared/command-line.ts'
import { readJsonFile } from './shared/input-files.ts'
import { inOrganization, operationCommand } from './shared/operation-command.ts'
import { few, record } from './shared/render.ts'
import { table } from './shared/table.ts'

type Signer = OperationResponse<'bundle_signers.add'>

export function bundleSignersCommand(): Command {
  return group('bundle-signers', 'Keys whose signed bundles of issuer keys an organization accepts', [
    addCommand(),
    listCommand(),
    deleteCommand(),
  ])
}

function addCommand(): Command {
  const made = command('add', 'Accept bundles that this key signs', [
    'bundle-signers add --name border --public-key-file packer.pub',
  ])
    .requiredOption('--name <name>', 'name of the signer')
    .requiredOption('--public-key-file <file>', 'public key of the packer: the .pub file of latchkey jwks keygen')
  return operationCommand(
    inOrganization(made),
    'bundle_signers.add',
    ({ options }) => ({
      organization: options.organization,
      name: options.name,
      key: readJsonFile(String(options.publicKeyFile)),
    }),
    (signer) =>
      [
        show(signer),
        '',
        'Compare the key id with the one that the packer reads out.',
        'Next: latchkey issuers import FILE',
      ].join('\n'),
  )
}

function show({ id, name, algorithm, key_id }: Signer): string {
  return record({ id, name, algorithm, 'key id': key_id })
}

function listCommand(): Command {
  return operationCommand(
    inOrganization(command('list', 'List the bundle signers', ['bundle-signers list'])),
    'bundle_signers.list',
    ({ options }) => ({ organization: options.organization }),
    ({ data }) =>
      table(
        data,
        [
          ['NAME', (row) => row.name],
          ['ALGORITHM', (row) => row.algorithm],
          ['KEY ID', (row) => row.key_id],
          ['ONLY SIGNER OF', (row) => few(row.issuers, 5) || '-'],
          ['ID', (row) => row.id],
        ],
        'No bundle signers. To add one: latchkey bundle-signers add --name border --public-key-file packer.pub',
      ),
  )
}

function deleteCommand(): Command {
  const made = command('delete <signer>', 'Stop accepting bundles of a signer; imported keys stay until they expire', [
    'bundle-signers delete border',
  ])
  return operationCommand(
    inOrganization(made),
    'bundle_signers.remove',
    ({ words, options }) => ({ organization: options.organization, bundle_signer: words[0] }),
    ({ id, issuers_affected: issuers }) =>
      issuers.length === 0
        ? `Deleted ${id}`
        : `Deleted ${id}\nThese issuers accept no bundle until you set another signer: ${few(issuers, 10)}`,
  )
}

if (import.meta.main) await runAlone(bundleSignersCommand())
