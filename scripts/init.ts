// `latchkey init`: creates the database and the first management key.
import type { Command } from 'commander'
import { command, runAlone } from './shared/command-line.ts'
import { flagsOf } from './shared/next-commands.ts'
import { operationCommand } from './shared/operation-command.ts'
import { printable } from './shared/render.ts'

export function initCommand(): Command {
  const made = command(
    'init',
    'Create the database, a default organization and workspace, and the first management key (shown once)',
    ['init', 'init --database-url file:/var/lib/latchkey/latchkey.db', 'init --json'],
  ).option('--owner <name>', 'owner of the first key (default: admin)')
  return operationCommand(
    made,
    'init',
    ({ options }) => ({ owner: options.owner }),
    ({ database, master_key_file, key }, { options }) => {
      const where = flagsOf(options, ['config', 'databaseUrl'])
      const masterKey = flagsOf(options, ['masterKeyFile'])
      return [
        `Created ${printable(database)} with the organization "default" on the enterprise plan.`,
        master_key_file === null
          ? 'The master key is the value of LATCHKEY_MASTER_KEY. The server needs the same value.'
          : `The master key is in ${printable(master_key_file)}. The server needs it. Back it up separately from the database.`,
        '',
        'First management key (shown only once):',
        `  ${key}`,
        '',
        'Next:',
        `  latchkey keys create --name my-app${where}`,
        `  latchkey issuers add --name my-idp --url https://idp.example.com${where}`,
        `  latchkey policies create --name my-app --issuer my-idp --audience latchkey --subject my-workload --key my-app${where}`,
        `  latchkey serve --upstream-url http://127.0.0.1:8000/v1${where}${masterKey}`,
      ].join('\n')
    },
    { moreShown: ['LATCHKEY_MASTER_KEY_FILE', 'LATCHKEY_MASTER_KEY'] },
  )
}

if (import.meta.main) await runAlone(initCommand())
