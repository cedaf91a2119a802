// `latchkey health`: whether the server is ready, by exit code, for service units, containers and scripts.
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { askServer } from '../src/admin/transport/client.ts'
import { describeError, Fault } from '../src/fault.ts'
import type { Health } from '../src/monitoring/health.ts'
import { formatAddress } from '../src/settings/addresses.ts'
import { type Config, socketPathFor } from '../src/settings/config.ts'
import { command, dependencies, givenTo, print, readConfig, runAlone, withSettings } from './shared/command-line.ts'
import { waitText } from './shared/option-values.ts'
import { exitCodeFailed } from './shared/program.ts'
import { printable } from './shared/render.ts'

/** `unreachable` when no server responds; `reason` says why. */
type HealthResult = { status: Health['status'] | 'unreachable'; failing: string[]; degraded: string[]; reason?: string }

const requestMilliseconds = 5_000
const pauseMilliseconds = 200

export function healthCommand(): Command {
  const made = command('health', 'Check whether the server is ready; exit code 0 if it is, 1 if not', [
    'health',
    'health --wait 15s',
    'health --url https://llm.example.com/v1 --json',
  ])
    .option('--wait <duration>', 'try again until the server is ready, at most this long, for example 15s', waitText)
    .option('--url <url>', 'base URL of a server to ask over HTTP, instead of the local socket of the database')
    .addHelpText(
      'after',
      `
Results:
  ready        every check passes (exit code 0)
  degraded     it serves, but an upstream, an issuer or the last backup fails (exit code 0)
  not_ready    a check fails: stopping, database, writer, signing_key or registry (exit code 1)
  unreachable  no server responds (exit code 1)

In a systemd unit:      ExecStartPost=/usr/local/bin/latchkey health --wait 15s
In a Containerfile:     HEALTHCHECK CMD ["latchkey", "health"]
Without this program:   GET /livez and GET /readyz, beside /v1
With your own CA:       NODE_EXTRA_CA_CERTS=ca.pem latchkey health --url https://llm.example.com/v1`,
    )
  return withSettings(made, { shown: ['LATCHKEY_DATABASE_URL', 'LATCHKEY_LISTEN'] }).action(
    async (...all: unknown[]) => {
      const { options } = givenTo(all)
      const { url } = options
      const ask = typeof url === 'string' ? askUrl(readyUrl(url)) : askHere(readConfig(options))
      const found = await askUntilReady(ask, Number(options.wait ?? 0))
      print(options.json === true ? JSON.stringify(found, null, 2) : draw(found))
      if (!isReady(found)) process.exitCode = exitCodeFailed
    },
  )
}

/** A node of a server database has no socket: its listen address responds instead. */
function askHere(config: Config): () => Promise<HealthResult> {
  const path = socketPathFor(config)
  if (path !== undefined) return askSocket(path)
  const { hostname, port } = config.listen
  const reachable = hostname === '0.0.0.0' ? '127.0.0.1' : /^[0:]+$/.test(hostname) ? '::1' : hostname
  return askUrl(
    `${config.tls === undefined ? 'http' : 'https'}://${formatAddress({ hostname: reachable, port })}/readyz`,
  )
}

function isReady({ status }: HealthResult): boolean {
  return status === 'ready' || status === 'degraded'
}

async function askUntilReady(ask: () => Promise<HealthResult>, waitMilliseconds: number): Promise<HealthResult> {
  const deadline = dependencies.monotonic() + waitMilliseconds
  for (;;) {
    const found = await ask()
    if (isReady(found) || dependencies.monotonic() >= deadline) return found
    await pause(pauseMilliseconds)
  }
}

function unreachable(reason: string): HealthResult {
  return { status: 'unreachable', failing: [], degraded: [], reason }
}

function askSocket(socketPath: string): () => Promise<HealthResult> {
  return async () => {
    try {
      const answered = await askServer(socketPath, 'health.show', {})
      return (answered?.result as HealthResult | undefined) ?? unreachable(`no server listens on ${socketPath}`)
    } catch (error) {
      // It went away while it was asked.
      if (error instanceof Fault && error.code === 'unavailable') return unreachable(error.message)
      throw error
    }
  }
}

function askUrl(url: string): () => Promise<HealthResult> {
  return async () => {
    try {
      const signal = AbortSignal.timeout(requestMilliseconds)
      const response = await dependencies.fetch(url, { redirect: 'manual', signal })
      const body = (await response.json().catch(() => ({}))) as Partial<HealthResult>
      const { status, failing = [], degraded = [] } = body
      if (status !== undefined) return { status, failing, degraded }
      return unreachable(`${url} responded with ${response.status}; use the base URL of the service`)
    } catch (error) {
      return unreachable(`${url}: ${describeError(error)}`)
    }
  }
}

/** `/readyz` lies beside the version segment of the base URL. */
function readyUrl(text: string): string {
  if (URL.canParse(text) && /^https?:/.test(text)) return `${text.replace(/\/+$/, '').replace(/\/v1$/, '')}/readyz`
  throw new Fault(
    'usage',
    `${JSON.stringify(text)} is not a valid value for --url: use the base URL of the service, for example https://llm.example.com/v1`,
  )
}

function draw({ status, failing, degraded, reason }: HealthResult): string {
  const named = reason === undefined ? [...failing, ...degraded].join(', ') : printable(reason)
  return named === '' ? status : `${status}: ${named}`
}

if (import.meta.main) await runAlone(healthCommand())
