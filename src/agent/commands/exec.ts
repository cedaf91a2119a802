// `latchkey exec`: runs a command whose API clients use Latchkey, through an agent that lives as long as the command.
import { randomBytes } from 'node:crypto'
import { Fault } from '../../fault.ts'
import { findAccessToken, type TokenSource } from '../access-token.ts'
import { runChild } from '../child.ts'
import { clientEnvironment, withoutLocalProxy } from '../client-environment.ts'
import { warningsFor } from '../ignoring-programs.ts'
import { listenAt } from '../listener.ts'
import { createProxy } from '../proxy.ts'
import { createReport, holdSource, keepFresh } from '../renewal.ts'
import { readSource, sourceOptions } from '../source-options.ts'
import { type AgentCommand, type AgentContext, commonOptions } from './command.ts'

export const execCommand: AgentCommand = {
  name: 'exec',
  description: 'Run a command whose API clients use Latchkey, however long it runs',
  operands: '<command...>',
  options: [
    ...sourceOptions,
    {
      name: 'inject',
      value: 'what',
      help: 'agent: a local address and secret (default); token: the address of the server and a token, for short jobs',
    },
    ...commonOptions,
  ],
  examples: ['exec -- python train.py', 'exec --identity file:/run/jwt -- claude -p "Summarize the changes"'],
  notes: `The command gets OPENAI_BASE_URL, OPENAI_API_KEY, ANTHROPIC_BASE_URL, ANTHROPIC_AUTH_TOKEN, OPENROUTER_BASE_URL and
OPENROUTER_API_KEY. Signals are passed on. The exit code is that of the command, or 128 and the number of the signal
that ended it. A program that is known to ignore these variables, such as codex, gets a warning with what to add.`,
  run: async (given, [program, ...args], context) => {
    const { inject = 'agent' } = given
    if (inject !== 'agent' && inject !== 'token')
      throw new Fault('usage', `${JSON.stringify(inject)} is not a valid value for --inject: use agent or token`)
    if (program === undefined || program === '')
      throw new Fault(
        'usage',
        'The command is missing: write it after --, for example latchkey exec -- python train.py',
      )
    const source = readSource(given, context)
    for (const line of await warningsFor([program, ...args], context.platform)) context.log(`latchkey: ${line}`)
    if (inject === 'agent') return runWithAgent(source, [program, ...args], context)
    const { text } = await findAccessToken(source, { force: false }, context)
    const environment = clientEnvironment(withoutLocalProxy(context.platform.environment), {
      url: source.url,
      key: text,
    })
    return runChild([program, ...args], environment, context.log)
  },
}

async function runWithAgent(source: TokenSource, command: readonly string[], context: AgentContext): Promise<number> {
  const { platform, now, log } = context
  const report = createReport(log, now)
  // Standard error belongs to the command: it gets failures alone.
  const quiet: typeof report = (event, fields) => (event === 'token_renewed' ? undefined : report(event, fields))
  const secret = randomBytes(32).toString('base64url')
  let isStarted = false
  const token = holdSource(source, context, {
    report: (event, fields) => (isStarted ? quiet(event, fields) : undefined),
  })
  // A command that could not call the server does not start.
  await token.get()
  isStarted = true
  const listener = await listenAt({ hostname: '127.0.0.1', port: 0 }, (port) =>
    createProxy({ url: source.url, token, rules: { port, secret } }),
  )
  const stop = keepFresh(token, now)
  try {
    const url = `http://127.0.0.1:${listener.port}/v1`
    const environment = clientEnvironment(withoutLocalProxy(platform.environment), { url, key: secret })
    return await runChild(command, environment, log)
  } finally {
    stop()
    await listener.stop(0)
  }
}
