// Asks a running agent whether it is ready, for probes that run a command.
import http from 'node:http'
import { withoutProxy } from './direct-fetch.ts'
import type { ListenAddress } from './listener.ts'

const milliseconds = 3_000

/** Resolves with `ready`, `not_ready`, or `unreachable` if no agent responds within three seconds. */
export function askReadiness(address: ListenAddress): Promise<'ready' | 'not_ready' | 'unreachable'> {
  const place = 'path' in address ? { socketPath: address.path } : { host: address.hostname, port: address.port }
  return new Promise((resolve) => {
    const asking = http.get(
      { ...place, path: '/readyz', timeout: milliseconds, agent: new http.Agent(withoutProxy) },
      (response) => {
        response.resume()
        resolve(response.statusCode === 200 ? 'ready' : 'not_ready')
      },
    )
    asking.once('timeout', () => asking.destroy())
    asking.once('error', () => resolve('unreachable'))
  })
}
