// `latchkey service install`: shows the systemd unit of this program, writes it after a confirmation, and enables it.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import type { Command } from 'commander'
import { describeError, Fault } from '../src/fault.ts'
import unit from './deploy/latchkey.service' with { type: 'text' }
import { command, givenTo, print, runAlone, withSettings } from './shared/command-line.ts'

const unitName = 'latchkey.service'
const user = 'latchkey'
const programInUnit = '/usr/local/bin/latchkey'
const configInUnit = '/etc/latchkey/latchkey.conf'

export function serviceInstallCommand(): Command {
  const made = command('install', 'Show the systemd unit of this program, write it and enable it', [
    'service install',
    'service install --config /etc/latchkey/latchkey.conf --yes',
  ])
    .option('--yes', 'write it, and do not ask for confirmation')
    .option('--unit-dir <folder>', 'the folder of systemd units', '/etc/systemd/system')
  return withSettings(made, { shown: [] }).action(async (...all: unknown[]) => {
    const { options } = givenTo(all)
    const path = join(String(options.unitDir), unitName)
    const text = unitFor(process.execPath, typeof options.config === 'string' ? resolve(options.config) : configInUnit)
    const isSame = existsSync(path) && readFileSync(path, 'utf8') === text
    if (options.json !== true)
      print(`${text}\n${isSame ? 'This is' : existsSync(path) ? 'This replaces' : 'This is for'} ${path}`)
    requireUser()
    if (options.yes !== true) await confirm(options.json === true)
    install(path, text)
    const next = `systemctl start latchkey`
    print(
      options.json === true ? JSON.stringify({ unit: path, changed: !isSame }) : `Enabled ${unitName}. Next: ${next}`,
    )
  })
}

/** Returns the unit with this program and this settings file. A program from source is not one file: the path stays. */
function unitFor(program: string, config: string): string {
  for (const path of [program, config])
    if (/[\s%$"'\\]/.test(path))
      throw new Fault(
        'usage',
        `${JSON.stringify(path)} cannot be in a unit; use a path without spaces, quotes, $ and %`,
      )
  const isCompiled = process.argv[1]?.includes('$bunfs') === true
  return unit.replaceAll(configInUnit, config).replaceAll(programInUnit, isCompiled ? program : programInUnit)
}

function requireUser(): void {
  if (spawnSync('id', ['-u', user]).status === 0) return
  throw new Fault(
    'configuration',
    `The user ${user} does not exist; run: useradd --system --home-dir /var/lib/latchkey --shell /usr/sbin/nologin ${user}`,
  )
}

/** @throws Fault unless someone at a terminal confirms */
async function confirm(asJson: boolean): Promise<void> {
  if (asJson || !process.stdin.isTTY || !process.stdout.isTTY)
    throw new Fault('usage', 'Nothing was written; add --yes to write and enable the unit')
  const asking = createInterface({ input: process.stdin, output: process.stdout })
  const response = await asking.question('Write and enable it? [y/N] ')
  asking.close()
  if (!/^y(es)?$/i.test(response.trim())) throw new Fault('conflict', 'Nothing was changed')
}

function install(path: string, text: string): void {
  try {
    writeFileSync(path, text)
    // Whatever the mask of this user is: systemd warns of a unit that others cannot read.
    chmodSync(path, 0o644)
  } catch (error) {
    throw new Fault('configuration', `${path} cannot be written: ${describeError(error)}; run this command as root`)
  }
  for (const args of [['daemon-reload'], ['enable', unitName]]) {
    const { status, stderr, error } = spawnSync('systemctl', args, { encoding: 'utf8' })
    if (status === 0) continue
    const reason = error === undefined ? stderr.trim() : error.message
    throw new Fault('configuration', `${path} is written, but systemctl ${args.join(' ')} failed: ${reason}`)
  }
}

if (import.meta.main) await runAlone(serviceInstallCommand())
