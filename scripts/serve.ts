// `latchkey serve`: runs the service until a signal stops it.
import type { Command } from 'commander'
import { latestSchema } from '../db/schema/migrate.ts'
import packageJson from '../package.json' with { type: 'json' }
import { logFlushMillisecondsMax } from '../src/limits.ts'
import { leave } from '../src/nodes/leave.ts'
import { standardError } from '../src/observe/line-sink.ts'
import { raiseOutboundLimit } from '../src/runtime/outbound-limit.ts'
import type { Server } from '../src/server/server.ts'
import { formatAddress } from '../src/settings/addresses.ts'
import { parseSettings, readSettingTexts, socketPathFor } from '../src/settings/config.ts'
import { describeSettings } from '../src/settings/effective-settings.ts'
import { settings } from '../src/settings/settings.ts'
import { command, dependencies, givenTo, print, runAlone, settingSources, withSettings } from './shared/command-line.ts'

export function serveCommand(): Command {
  const made = command('serve', 'Run the service', [
    'serve --upstream-url http://127.0.0.1:8000/v1',
    'serve --listen 0.0.0.0:8787 --base-url https://llm.example.com/v1 --upstream-url http://vllm:8000/v1',
    'serve --config /etc/latchkey.conf',
  ])
  return withSettings(made, { shown: settings.map(({ env }) => env) }).action(async (...all: unknown[]) => {
    raiseOutboundLimit()
    const { options } = givenTo(all)
    const reread = () => readSettingTexts(settingSources(options))
    const texts = reread()
    const config = parseSettings(texts)
    let reload: Server['reload']
    // It must not end a server that is starting.
    process.on('SIGHUP', () => reloadOnSignal(reload))
    // Every command loads this file, and only this one needs a server.
    const { startServer } = await import('../src/server/server.ts')
    const server = await startServer(config, dependencies, { settings: { texts, reread } })
    reload = server.reload
    const upstreams = server.context.registry.upstreamsInOrder.map(({ name, baseUrl }) => ({ name, base_url: baseUrl }))
    const fields = {
      listening: formatAddress(server.address),
      base_url: server.baseUrl,
      database: config.databasePath,
      socket: socketPathFor(config) ?? null,
      upstream: config.upstreamUrl ?? null,
      upstreams,
      metrics: metricsUrl(server.metricsAddress),
    }
    if (options.json === true) print(JSON.stringify(fields))
    else print(banner(fields))
    const { log, database } = server.context
    const { version } = packageJson
    if (database.migratedFrom !== undefined)
      log('info', 'database_migrated', { from: database.migratedFrom, to: latestSchema })
    log('info', 'started', { version, listening: fields.listening, settings: describeSettings(texts) })
    if (server.baseUrl.startsWith('http:') && config.baseUrl !== undefined)
      log('warn', 'base_url_not_https', { base_url: server.baseUrl })
    const stop = async () => {
      await leave(server.context)
      await server.stop()
      log('info', 'stopped', { version })
    }
    await stopOnSignal({ stop })
  })
}

/** A failure is in the log. */
function reloadOnSignal(reload: Server['reload']): void {
  try {
    reload?.()
  } catch {}
}

/** A socket as curl and Prometheus name one. */
function metricsUrl(address: Server['metricsAddress']): string | null {
  if (address === undefined) return null
  return 'socketPath' in address ? `unix:${address.socketPath}` : `http://${formatAddress(address)}/metrics`
}

type Upstreams = { name: string; base_url: string }[]

type Fields = { listening: string; base_url: string; database: string; upstreams: Upstreams; metrics: string | null }

function banner(fields: Fields): string {
  const upstreams = fields.upstreams.map(({ name, base_url }) => `${base_url} (${name})`)
  return [
    `Latchkey serves ${fields.base_url} on ${fields.listening}`,
    `  exchange   POST ${fields.base_url}/oauth/token`,
    `  token keys GET  ${fields.base_url}/oauth/jwks`,
    `  inference  POST ${fields.base_url}/chat/completions, GET ${fields.base_url}/models`,
    `  upstreams  ${upstreams.join(', ') || 'none; set LATCHKEY_UPSTREAM_URL, or run: latchkey upstreams add'}`,
    `  database   ${fields.database}`,
    ...(fields.metrics === null ? [] : [`  metrics    ${fields.metrics}`]),
    'Stop with Ctrl+C',
  ].join('\n')
}

/** Resolves when the server has finished its requests and stopped. A second signal ends the process immediately. */
export async function stopOnSignal(
  server: Pick<Server, 'stop'>,
  signals: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM'],
): Promise<void> {
  await new Promise<void>((resolve) => {
    for (const signal of signals) process.once(signal, () => resolve())
  })
  for (const signal of signals) process.once(signal, () => process.exit(1))
  await server.stop()
  await standardError.flush(logFlushMillisecondsMax)
  process.exit(0)
}

if (import.meta.main) await runAlone(serveCommand())
