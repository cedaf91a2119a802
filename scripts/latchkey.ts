// The program `latchkey`: its commands, of which it loads the one that runs.
import { Command, Help } from 'commander'
import packageJson from '../package.json' with { type: 'json' }
import { runProgram, withSettingsBefore } from './shared/command-line.ts'
import { withVersionOption } from './version.ts'

/** What `listCommands` returns, as JSON. Only a built program has it (scripts/build/release/compile.ts). */
declare const LATCHKEY_COMMANDS: string | undefined

/** In the order of `--help`. */
const commands: Readonly<Record<string, () => Promise<() => Command>>> = {
  init: async () => (await import('./init.ts')).initCommand,
  migrate: async () => (await import('./migrate.ts')).migrateCommand,
  serve: async () => (await import('./serve.ts')).serveCommand,
  reload: async () => (await import('./reload.ts')).reloadCommand,
  config: async () => (await import('./config.ts')).configCommand,
  dev: async () => (await import('./dev.ts')).devCommand,
  admin: async () => (await import('./admin.ts')).adminCommand,
  organizations: async () => (await import('./organizations.ts')).organizationsCommand,
  workspaces: async () => (await import('./organizations.ts')).workspacesCommand,
  keys: async () => (await import('./keys.ts')).keysCommand,
  issuers: async () => (await import('./issuers.ts')).issuersCommand,
  'bundle-signers': async () => (await import('./bundle-signers.ts')).bundleSignersCommand,
  policies: async () => (await import('./policies.ts')).policiesCommand,
  'signing-keys': async () => (await import('./signing-keys.ts')).signingKeysCommand,
  'master-key': async () => (await import('./master-key.ts')).masterKeyCommand,
  upstreams: async () => (await import('./upstreams.ts')).upstreamsCommand,
  presets: async () => (await import('./presets.ts')).presetsCommand,
  budgets: async () => (await import('./budgets.ts')).budgetsCommand,
  webhooks: async () => (await import('./webhooks.ts')).webhooksCommand,
  alerts: async () => (await import('./alerts.ts')).alertsCommand,
  prices: async () => (await import('./prices.ts')).pricesCommand,
  usage: async () => (await import('./usage.ts')).usageCommand,
  audit: async () => (await import('./audit.ts')).auditCommand,
  backup: async () => (await import('./backup.ts')).backupCommand,
  restore: async () => (await import('./restore.ts')).restoreCommand,
  archive: async () => (await import('./archive.ts')).archiveCommand,
  nodes: async () => (await import('./nodes.ts')).nodesCommand,
  database: async () => (await import('./database.ts')).databaseCommand,
  jwks: async () => (await import('./jwks.ts')).jwksCommand,
  login: async () => (await import('./login.ts')).loginCommand,
  logout: async () => (await import('./logout.ts')).logoutCommand,
  token: async () => (await import('./token.ts')).tokenCommand,
  exec: async () => (await import('./exec.ts')).execCommand,
  agent: async () => (await import('./agent.ts')).agentCommand,
  health: async () => (await import('./health.ts')).healthCommand,
  doctor: async () => (await import('./doctor.ts')).doctorCommand,
  completion: async () => (await import('./completion.ts')).completionCommand,
  man: async () => (await import('./man.ts')).manCommand,
  service: async () => (await import('./service.ts')).serviceCommand,
  version: async () => (await import('./version.ts')).versionCommand,
  help: async () => (await import('./help.ts')).helpCommand,
}

/** Runs the command line; every exit of the process goes through `runProgram`. */
export async function runLatchkey(argv: string[]): Promise<void> {
  const program = await loadProgram(argv)
  if (argv[0] === completionWord) return (await import('./shared/complete.ts')).complete(program, argv.slice(1))
  await runProgram(withVersionOption(program, argv), argv)
}

/** These show every command. */
const describesAll = ['help', 'man']

const helpOptions = ['-h', '--help']

/** They show no command. */
const versionOptions = ['-v', '-V', '--version']

/** What a shell runs to complete a command line. No help shows it. */
const completionWord = '__complete'

/** What `--help` says of each command: how it is called, and its description. */
export async function listCommands(): Promise<[term: string, description: string][]> {
  const { commands } = await loadProgram(['help'])
  return commands.map((made) => [new Help().subcommandTerm(made), made.description()])
}

/** The program with the commands that these arguments need. A built program loads none to list them all. */
export async function loadProgram(argv: string[]): Promise<Command> {
  const program = describeProgram(argv)
  if (typeof LATCHKEY_COMMANDS !== 'undefined' && argv.length === 1 && helpOptions.includes(argv[0] ?? '')) {
    for (const [term, description] of JSON.parse(LATCHKEY_COMMANDS) as Awaited<ReturnType<typeof listCommands>>)
      program.addCommand(new Command(term).description(description))
    return program
  }
  for (const load of neededFor(argv)) program.addCommand((await load())())
  return program
}

/** Loads all commands unless the first word names one: help and suggestions need them, and an option may precede a command. */
function neededFor([word = '']: string[]): (() => Promise<() => Command>)[] {
  if (versionOptions.includes(word)) return []
  const named = !describesAll.includes(word) && Object.hasOwn(commands, word) ? commands[word] : undefined
  return named === undefined ? Object.values(commands) : [named]
}

function describeProgram([word = '']: string[]): Command {
  const made = new Command('latchkey')
  // A third of what it takes to describe a command, and no option precedes one that is the first word.
  const isNamed = !describesAll.includes(word) && Object.hasOwn(commands, word)
  return (isNamed ? made : withSettingsBefore(made, { isShown: true }))
    .description(
      'Workload identity federation for self-hosted inference: workloads exchange the JWT they hold for a short-lived access token',
    )
    .version(packageJson.version, '-V, --version', 'print the version alone')
    .enablePositionalOptions()
    .helpCommand(false)
    .addHelpText(
      'after',
      `
First steps:
  $ latchkey dev          the whole product on this machine, to try it
  $ latchkey init         make a database for real use
  $ latchkey serve        run the service

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 wrong configuration, 4 drift (config plan --check)`,
    )
}
