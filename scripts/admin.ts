// `latchkey admin`: sign in to the admin page with a one-time link, and its sessions.
import { spawn } from 'node:child_process'
import type { Command } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { command, group, runAlone } from './shared/command-line.ts'
import { inOrganization, operationCommand } from './shared/operation-command.ts'
import { moment } from './shared/render.ts'
import { table } from './shared/table.ts'

type Session = OperationResponse<'sessions.list'>['data'][number]

export function adminCommand(): Command {
  const open = command('open', 'Print a link that signs in to the admin page once, within two minutes, and open it', [
    'admin open',
    'admin open --key "first management key" --read-only',
  ])
    .option('--key <key>', 'management key to sign in as, by name, id or hash (default: the only one in use)')
    .option('--read-only', 'a session with the role viewer, which changes nothing')
    .option('--no-browser', 'print the link alone')
  const end = command('end <session>', 'End a session of the admin page', [
    'admin end 0b8f1f0e-5f8e-4f43-9c55-2d6a3f1f7a10',
  ])
  return group('admin', 'The admin page: sign in with a link, and end sessions', [
    operationCommand(
      inOrganization(open),
      'sessions.link',
      ({ options }) => ({ organization: options.organization, key: options.key, read_only: options.readOnly }),
      (link, { options }) => {
        if (options.browser !== false && process.stdout.isTTY) openBrowser(link.url, process.env)
        return `${link.url}\n  signs in once as ${link.key_name}, until ${moment(link.expires_at)} UTC`
      },
    ),
    operationCommand(
      inOrganization(command('sessions', 'List the sessions of the admin page', ['admin sessions'])),
      'sessions.list',
      ({ options }) => ({ organization: options.organization }),
      ({ data }) => draw(data),
    ),
    operationCommand(
      inOrganization(end),
      'sessions.end',
      ({ words, options }) => ({ session: words[0], organization: options.organization }),
      ({ id }) => `Ended ${id}`,
    ),
  ])
}

/** Does nothing where there is no desktop, or where it is on another machine. */
function openBrowser(url: string, environment: Partial<Record<string, string>>): void {
  const hasDesktop = environment.DISPLAY || environment.WAYLAND_DISPLAY
  const opener = process.platform === 'darwin' ? 'open' : hasDesktop ? 'xdg-open' : undefined
  if (opener === undefined || environment.SSH_CONNECTION) return
  const child = spawn(opener, [url], { stdio: 'ignore', detached: true })
  child.on('error', () => {})
  child.unref()
}

function draw(sessions: Session[]): string {
  return table(
    sessions,
    [
      ['KEY', (row) => row.key_name],
      ['ROLE', (row) => row.role],
      ['OPENED BY', (row) => row.opened_by ?? ''],
      ['ADDRESS', (row) => row.client_address ?? ''],
      ['SINCE (UTC)', (row) => moment(row.created_at)],
      ['LAST USED (UTC)', (row) => moment(row.used_at)],
      ['ID', (row) => row.id],
    ],
    'No sessions',
  )
}

if (import.meta.main) await runAlone(adminCommand())
