// `latchkey config`: the settings in force, and whether a server could start with them. Documents are in config-document.ts.
import type { Command } from 'commander'
import type { Check } from '../src/server/config-check.ts'
import { parseSettings, readSettingTexts } from '../src/settings/config.ts'
import { describeSettings } from '../src/settings/effective-settings.ts'
import { settings } from '../src/settings/settings.ts'
import { documentCommands } from './config-document.ts'
import {
  command,
  dependencies,
  givenTo,
  group,
  type Options,
  print,
  readConfig,
  runAlone,
  settingSources,
  withSettings,
} from './shared/command-line.ts'
import { exitCodeConfiguration } from './shared/program.ts'
import { printable, record } from './shared/render.ts'
import { paint, readTerminal } from './shared/terminal.ts'

export function configCommand(): Command {
  const check = command('check', 'Check settings, files, keys, database and ports without starting a server', [
    'config check',
    'config check --config /etc/latchkey.conf',
    'config check --json',
  ]).addHelpText(
    'after',
    `
Run it as the user of the server, with the same settings: before a start, a reload or an upgrade. It changes nothing. While a server
runs, it asks that server about the database. Exit code 0 if every check passes, 3 if one fails; each failed check says what to do.`,
  )
  const show = command('show', 'Print every setting in force; secrets appear as "set"', [
    'config show',
    'config show --config /etc/latchkey.conf --json',
  ])
  const shown = settings.map(({ env }) => env)
  return group('config', 'The settings in force, and the configuration as a document', [
    withSettings(check, { shown }).action(async (...all: unknown[]) => checkSettings(givenTo(all).options)),
    withSettings(show, { shown: [] }).action((...all: unknown[]) => showSettings(givenTo(all).options)),
    ...documentCommands(),
  ])
}

async function checkSettings(options: Options): Promise<void> {
  // Only this command needs a listener and a look into the database.
  const { checkConfig } = await import('../src/server/config-check.ts')
  const checks = await checkConfig(() => readConfig(options), dependencies.now())
  const isOk = checks.every(({ result }) => result !== 'failed')
  if (options.json === true) print(JSON.stringify({ ok: isOk, data: checks }, null, 2))
  else print(checks.map(draw).join('\n'))
  if (!isOk) process.exitCode = exitCodeConfiguration
}

/** Never cut: a failed check says at its end what to do. */
function draw({ check, result, detail }: Check): string {
  const tone = { ok: 'green', failed: 'red', skipped: undefined } as const
  return [paint(result.padEnd(7), tone[result], readTerminal()), check.padEnd(15), printable(detail)].join('  ')
}

function showSettings(options: Options): void {
  const texts = readSettingTexts(settingSources(options))
  parseSettings(texts)
  const described = describeSettings(texts)
  print(options.json === true ? JSON.stringify(described, null, 2) : record(described))
}

if (import.meta.main) await runAlone(configCommand())
