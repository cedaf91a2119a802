// The address that serves metrics without a credential, if the settings have one.

import { createMetricsHandler } from '../monitoring/metrics-handler.ts'
import { type Listener, listen } from '../runtime/listen.ts'
import { listenOnSocket } from '../runtime/local-socket.ts'
import type { ListenAddress } from '../settings/setting-values.ts'
import type { Context } from './context.ts'

const setting = 'LATCHKEY_METRICS_LISTEN'

export type MetricsAddress = ListenAddress | { socketPath: string }

/** Undefined without such an address. @throws Fault `configuration` when the address cannot be used */
export async function listenForMetrics({
  config: { metricsListen },
  reportMetrics,
}: Context): Promise<{ listener: Listener; address: MetricsAddress } | undefined> {
  if (metricsListen === undefined) return undefined
  if ('socketPath' in metricsListen) {
    // The collector usually runs as another user of the same group.
    const socket = { path: metricsListen.socketPath, mode: 0o660, setting }
    return { listener: await listenOnSocket(socket, createMetricsHandler(reportMetrics)), address: metricsListen }
  }
  const listener = await listen({ ...metricsListen, setting }, createMetricsHandler(reportMetrics, metricsListen))
  return { listener, address: { ...metricsListen, port: listener.port } }
}
