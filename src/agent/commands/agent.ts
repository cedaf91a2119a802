// `latchkey agent`: a local proxy that adds the access token, a file that holds it, or both, until a signal ends it.
import { Fault } from '../../fault.ts'
import type { AccessToken } from '../exchange.ts'
import { type ListenAddress, listenAt, parseListenAddress } from '../listener.ts'
import { createProxy } from '../proxy.ts'
import { askReadiness } from '../readiness.ts'
import { createReport, holdSource, keepFresh, type Report } from '../renewal.ts'
import { type GivenOptions, readSource, sourceOptions } from '../source-options.ts'
import { replaceFile } from '../token-file.ts'
import { type AgentCommand, type AgentContext, commonOptions, readSecret } from './command.ts'

/** Below the 30 seconds that Kubernetes gives by default. */
const drainMilliseconds = 25_000

export const agentCommand: AgentCommand = {
  name: 'agent',
  description: 'Run a local proxy that adds the access token, or keep a file with it fresh',
  options: [
    { name: 'listen', value: 'address', help: 'where the proxy listens: 127.0.0.1:PORT or unix:PATH' },
    {
      name: 'secret',
      value: 'source',
      help: 'what clients must send as their API key: env:NAME or file:PATH (default: any local program may call)',
    },
    { name: 'write', value: 'file', help: 'write the token to this file, and again before it expires' },
    { name: 'signal', value: 'pid', help: 'send SIGHUP to this process after each write' },
    {
      name: 'ready',
      former: 'check',
      help: 'ask the agent at --listen whether it is ready; exit code 0 if it is, 1 if not',
    },
    ...sourceOptions,
    ...commonOptions,
  ],
  examples: [
    'agent --listen 127.0.0.1:8790',
    'agent --listen unix:/run/my-app/latchkey.sock --secret env:LOCAL_SECRET',
    'agent --write /run/my-app/token --signal 1',
  ],
  notes: `Clients use http://127.0.0.1:8790/v1 as their base URL. The agent renews its token at two thirds of its life. It serves
/livez and /readyz, writes one line for each renewal to standard error, and lets running requests end on SIGTERM.`,
  run: async (given, _operands, context) => {
    const address = given.listen === undefined ? undefined : parseListenAddress(given.listen)
    if (given.ready !== undefined) return checkAgent(address, context)
    const plan = readPlan(given)
    if (address === undefined && plan.write === undefined)
      throw new Fault('usage', '--listen or --write must be given; see: latchkey agent --help')
    const source = readSource(given, context)
    const secret = await readSecret(given.secret, 'secret', context)
    const report = createReport(context.log, context.now)
    const token = holdSource(source, context, { report, onRenewal: (renewed) => writeToken(plan, renewed, report) })
    const stopped = waitForSignal()
    const listener =
      address === undefined
        ? undefined
        : await listenAt(address, (port) => createProxy({ url: source.url, token, rules: { port, secret } }))
    if (address !== undefined) report('listening', { address: shown(address, listener?.port) })
    const stop = keepFresh(token, context.now)
    report('stopping', { signal: await stopped })
    stop()
    await listener?.stop(drainMilliseconds)
    return 0
  },
}

type Plan = { write: string | undefined; pid: number | undefined }

function readPlan({ write, signal }: GivenOptions): Plan {
  if (signal === undefined) return { write, pid: undefined }
  if (write === undefined) throw new Fault('usage', '--signal needs --write')
  if (!/^[1-9]\d{0,9}$/.test(signal))
    throw new Fault('usage', `${JSON.stringify(signal)} is not a valid value for --signal: use the id of a process`)
  return { write, pid: Number(signal) }
}

async function writeToken({ write, pid }: Plan, { text }: AccessToken, report: Report): Promise<void> {
  if (write === undefined) return
  await replaceFile(write, text)
  if (pid === undefined) return
  try {
    process.kill(pid, 'SIGHUP')
  } catch (error) {
    report('signal_failed', { pid, message: (error as NodeJS.ErrnoException).code ?? 'unknown error' })
  }
}

async function checkAgent(address: ListenAddress | undefined, { print }: AgentContext): Promise<number> {
  if (address === undefined) throw new Fault('usage', '--ready needs --listen with the address of the agent')
  const status = await askReadiness(address)
  print(status)
  return status === 'ready' ? 0 : 1
}

function shown(address: ListenAddress, port: number | undefined): string {
  if ('path' in address) return `unix:${address.path}`
  return `http://${address.hostname.includes(':') ? `[${address.hostname}]` : address.hostname}:${port}/v1`
}

/** Resolves with the first signal that ends the agent. The second ends it at once. */
function waitForSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal))
  })
}
