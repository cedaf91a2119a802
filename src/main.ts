#!/usr/bin/env bun
// Entry of the program and of the binary: argv → command → exit code.
import { Command } from 'commander'
import packageJson from '../package.json' with { type: 'json' }
import { archiveCommand } from '../scripts/archive.ts'
import { auditCommand } from '../scripts/audit.ts'
import { backupCommand } from '../scripts/backup.ts'
import { configCommand } from '../scripts/config.ts'
import { devCommand } from '../scripts/dev.ts'
import { healthCommand } from '../scripts/health.ts'
import { helpCommand } from '../scripts/help.ts'
import { initCommand } from '../scripts/init.ts'
import { issuersCommand } from '../scripts/issuers.ts'
import { keysCommand } from '../scripts/keys.ts'
import { masterKeyCommand } from '../scripts/master-key.ts'
import { organizationsCommand, workspacesCommand } from '../scripts/organizations.ts'
import { policiesCommand } from '../scripts/policies.ts'
import { presetsCommand } from '../scripts/presets.ts'
import { pricesCommand } from '../scripts/prices.ts'
import { reloadCommand } from '../scripts/reload.ts'
import { serveCommand } from '../scripts/serve.ts'
import { serviceCommand } from '../scripts/service.ts'
import { runProgram, withSettingsBefore } from '../scripts/shared/command-line.ts'
import { signingKeysCommand } from '../scripts/signing-keys.ts'
import { upstreamsCommand } from '../scripts/upstreams.ts'
import { usageCommand } from '../scripts/usage.ts'
import { versionCommand, withVersionOption } from '../scripts/version.ts'
import { copyProcessWord } from './runtime/own-process.ts'

const argv = process.argv.slice(2)
const program = withSettingsBefore(new Command('latchkey'), { isShown: true })
  .description(
    'Workload identity federation for self-hosted inference: workloads exchange the JWT they hold for a short-lived access token',
  )
  .version(packageJson.version, '-V, --version', 'print the version alone')
  .helpCommand(false)
  .addHelpText(
    'after',
    `
First steps:
  $ latchkey dev          the whole product on this machine, to try it
  $ latchkey init         make a database for real use
  $ latchkey serve        run the service

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 wrong configuration`,
  )

const commands = [
  initCommand,
  serveCommand,
  reloadCommand,
  configCommand,
  devCommand,
  organizationsCommand,
  workspacesCommand,
  keysCommand,
  issuersCommand,
  policiesCommand,
  signingKeysCommand,
  masterKeyCommand,
  upstreamsCommand,
  presetsCommand,
  pricesCommand,
  usageCommand,
  auditCommand,
  backupCommand,
  archiveCommand,
  healthCommand,
  serviceCommand,
  versionCommand,
  helpCommand,
]
for (const make of commands) program.addCommand(make())

// A backup starts this process, and no person does.
if (argv[0] === copyProcessWord) await (await import('./backup/copy-process.ts')).runCopyProcess()
await runProgram(withVersionOption(program, argv), argv)
