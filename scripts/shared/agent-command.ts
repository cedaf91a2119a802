// Puts the commands of the workload into this program's command line.
import { type Command, Option } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import type { AgentCommand, AgentContext } from '../../src/agent/commands/command.ts'
import { thisMachine } from '../../src/agent/this-machine.ts'
import { command, givenTo, print } from './command-line.ts'
import { acceptFormerOption } from './former-names.ts'

const context: AgentContext = {
  platform: thisMachine,
  now: Date.now,
  userAgent: `latchkey-agent/${packageJson.version}`,
  print,
  log: (line) => void process.stderr.write(`${line}\n`),
}

/** Makes the command line of one command. The process ends with the exit code that the command resolves with. */
export function makeAgentCommand(described: AgentCommand): Command {
  const { name, operands, description, options, examples, notes } = described
  const made = command(operands === undefined ? name : `${name} ${operands}`, description, [...examples])
  for (const { name: flag, value, help } of options)
    made.addOption(new Option(`--${flag}${value === undefined ? '' : ` <${value}>`}`, help))
  for (const { name: flag, former } of options) if (former !== undefined) acceptFormerOption(made, former, flag)
  made.addHelpText('after', `\n${notes}`)
  // The options after the first operand belong to the command that it names.
  if (operands?.endsWith('...>')) made.passThroughOptions()
  return made.action(async (...all: unknown[]) => {
    const { words, options: parsed } = givenTo(all)
    const given = Object.fromEntries(
      options.flatMap(({ name: flag }) => {
        const value = parsed[flag.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase())]
        return value === undefined ? [] : [[flag, String(value)]]
      }),
    )
    // A pipe without a reader must not end an agent.
    process.stderr.on('error', () => {})
    process.exitCode = await described.run(given, words, context)
  })
}
