// `latchkey reload`: makes a running server read its settings again.
import type { Command } from 'commander'
import type { OperationResponse } from '../src/admin/operations.ts'
import { askServer } from '../src/admin/transport/client.ts'
import { readLocalUser } from '../src/admin/transport/local-user.ts'
import { Fault } from '../src/fault.ts'
import { type Config, socketPathFor } from '../src/settings/config.ts'
import { command, givenTo, print, readConfig, runAlone, withSettings } from './shared/command-line.ts'
import { moment } from './shared/render.ts'

type ReloadResult = OperationResponse<'server.reload'>

export function reloadCommand(): Command {
  const made = command('reload', 'Make the running server read its settings again, like SIGHUP', [
    'reload',
    'reload --config /etc/latchkey.conf',
    'reload --json',
  ]).addHelpText(
    'after',
    `
The server reads the settings file that it was started with, and its TLS files, and reopens its access log. If anything is wrong, it keeps what it has and
the exit code is 1. Flags and environment of a running server cannot change; settings that need a restart are listed.`,
  )
  return withSettings(made, { shown: ['LATCHKEY_DATABASE_URL'] }).action(async (...all: unknown[]) => {
    const { options } = givenTo(all)
    const config = readConfig(options)
    const asked = await askServer(socketPathFor(config), 'server.reload', {}, { user: readLocalUser(process.env) })
    if (asked === undefined) throw notAsked(config)
    const reloaded = asked.result as ReloadResult
    print(options.json === true ? JSON.stringify(reloaded, null, 2) : draw(reloaded))
  })
}

function notAsked({ databasePath, databaseServer }: Config): Fault {
  const why =
    databaseServer === undefined
      ? `No server runs on the database ${JSON.stringify(databasePath)}; a server reads its settings when it starts`
      : 'The nodes of a server database have no local socket: send SIGHUP to the process of the node'
  return new Fault('conflict', why)
}

function draw({ changed, needs_restart, tls }: ReloadResult): string {
  const isSame = changed.length === 0 && needs_restart.length === 0 && tls?.replaced !== true
  return [
    `Reloaded${isSame ? '; nothing changed' : ''}${changed.length === 0 ? '' : `; now in effect: ${changed.join(', ')}`}`,
    ...(tls?.replaced === true ? [`New TLS certificate, valid until ${moment(tls.expires_at)} UTC`] : []),
    ...(needs_restart.length === 0 ? [] : [`Changed, but needs a restart: ${needs_restart.join(', ')}`]),
  ].join('\n')
}

if (import.meta.main) await runAlone(reloadCommand())
