// Names of commands and options before the vocabulary of `latchkey help configuration`. They work for one more release, with
// a warning, and no help shows them. Then this file and its caller go.
import { type Command, Help, Option } from 'commander'
import { formerNameWarning } from '../../src/agent/source-options.ts'
import { Fault } from '../../src/fault.ts'

/** By group and former name. */
const formerCommands: Names = {
  upstreams: { remove: 'delete' },
  'bundle-signers': { remove: 'delete' },
  prices: { remove: 'delete' },
  policies: { pause: 'disable', resume: 'enable' },
}

/** By command and former name, without the dashes. */
const formerOptions: Names = {
  'keys create': { limit: 'budget', 'limit-reset': 'budget-reset' },
  'keys update': { limit: 'budget', 'limit-reset': 'budget-reset' },
  'issuers add': { url: 'issuer-url' },
  'issuers update': { url: 'issuer-url' },
  'issuers verify': { url: 'issuer-url' },
  'upstreams add': { url: 'inference-url' },
  'upstreams update': { url: 'inference-url' },
  'bundle-signers add': { key: 'public-key-file' },
  'jwks pack': { key: 'private-key-file', issuer: 'issuer-url' },
  'config export': { owner: 'document-owner' },
  'config apply': { plan: 'plan-file' },
  archive: { kind: 'records' },
  'archive list': { kind: 'records' },
  'archive verify': { kind: 'records' },
  'database copy': { from: 'from-url', to: 'to-url' },
}

type Names = Readonly<Partial<Record<string, Readonly<Record<string, string>>>>>

/** Lets a command be called by its former name, and accept the former names of its options. `path` is `keys create`. */
export function acceptFormerNames(made: Command, path: string): void {
  for (const child of made.commands)
    for (const [former, current] of Object.entries(formerCommands[path] ?? {}))
      if (child.name() === current) acceptCommand(child, former, `${path} ${former}`, `${path} ${current}`)
  for (const [former, current] of Object.entries(formerOptions[path] ?? {})) acceptFormerOption(made, former, current)
}

function acceptCommand(made: Command, former: string, formerPath: string, path: string): void {
  made.alias(former)
  const plain = new Help()
  const hide = (text: string) => text.replace(`${made.name()}|${former}`, made.name())
  made.configureHelp({ commandUsage: (command) => hide(plain.commandUsage(command)) })
  const { subcommandTerm = (command: Command) => plain.subcommandTerm(command) } = made.parent?.configureHelp() ?? {}
  made.parent?.configureHelp({ subcommandTerm: (command) => hide(subcommandTerm(command)) })
  made.hook('preAction', () => {
    if (made.parent?.args[0] === former) warn(formerPath, path)
  })
}

/** Accepts the former name of an option, without the dashes, also as `--no-…` where the option has that form. */
export function acceptFormerOption(made: Command, former: string, current: string): void {
  const forms = made.options.filter(({ long }) => long === `--${current}` || long === `--no-${current}`)
  for (const { flags, parseArg, argChoices, negate } of forms) {
    const option = new Option(flags.replace(current, former)).hideHelp()
    // Commander's type of a parser has the value before; no option that was renamed adds up.
    if (parseArg !== undefined) option.argParser((text: string) => parseArg(text, undefined))
    if (argChoices !== undefined) option.choices(argChoices)
    made.addOption(option)
    made.hook('preAction', () => {
      const [from, to] = [option.attributeName(), attributeOf(current)]
      const value = made.getOptionValue(from)
      if (made.getOptionValueSource(from) !== 'cli' || (value === false) !== negate) return
      if (made.getOptionValueSource(to) === 'cli')
        throw new Fault('usage', `--${former} is the former name of --${current}: give one of them`)
      made.setOptionValueWithSource(to, value, 'cli')
      const prefix = negate ? '--no-' : '--'
      warn(`${prefix}${former}`, `${prefix}${current}`)
    })
  }
}

function warn(former: string, current: string): void {
  process.stderr.write(`${formerNameWarning(former, current)}\n`)
}

function attributeOf(name: string): string {
  return name.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())
}
