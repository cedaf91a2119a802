// A running Latchkey server: the service on its address, the admin interface on its local socket, and one database for
// both.

import type { RunByName } from '../admin/operation/operation.ts'
import type { RunOperation } from '../admin/operations.ts'
import { testAfterEngineChange } from '../admin/policies/engine-change.ts'
import { createRunner, withTypes } from '../admin/run-operation.ts'
import { isServed } from '../admin/transport/client.ts'
import { createSocketHandler } from '../admin/transport/socket.ts'
import { Fault } from '../fault.ts'
import { tlsCheckMillisecondsDefault } from '../limits.ts'
import { explainFailedStart } from '../nodes/database-unreachable.ts'
import { startRules } from '../nodes/load.ts'
import { reportWhileServing } from '../nodes/report.ts'
import { keepSeen, rejectOlder, seenFileFor } from '../nodes/seen-state.ts'
import { listenForPage } from '../page/listener.ts'
import { withoutPage } from '../page/page.ts'
import { type HeldRequests, holdRequests } from '../runtime/held-requests.ts'
import { type Listener, listen, listenSecurely } from '../runtime/listen.ts'
import type { Handler } from '../runtime/listener.ts'
import { listenOnSocket } from '../runtime/local-socket.ts'
import { isSettledWithin } from '../runtime/settled-within.ts'
import { every } from '../scheduling/every.ts'
import { basePathFor, baseUrlFor, pageUrlFor } from '../settings/addresses.ts'
import { type Config, type SettingTexts, socketPathFor } from '../settings/config.ts'
import type { Reload } from '../settings/effective-settings.ts'
import type { ListenAddress } from '../settings/setting-values.ts'
import { createApp, refuseAtStart } from './app.ts'
import { type Context, closeContext, type Dependencies, type OpenContext, openContext, openServing } from './context.ts'
import { listenForMetrics, type MetricsAddress } from './metrics-listener.ts'
import { createReload } from './reload.ts'
import { retryWhileHeld } from './retry-while-held.ts'
import { startSchedules } from './schedules.ts'
import { checkSocketPath } from './socket-path.ts'
import { readTlsPair } from './tls-files.ts'
import { createTlsInEffect, type TlsInEffect } from './tls-in-effect.ts'
import { workloadPaths } from './workload-routes.ts'

export type Server = {
  baseUrl: string
  /** Where browsers open the admin page, if it is served. */
  pageUrl: string | undefined
  address: ListenAddress
  /** Where metrics are served without a credential, if anywhere. */
  metricsAddress: MetricsAddress | undefined
  context: Context
  runOperation: RunOperation
  runByName: RunByName
  /**
   * Undefined if the server cannot read its settings again.
   * @throws Fault `configuration`
   */
  reload: Reload | undefined
  /** Shuts down gracefully: rejects new requests, finishes running ones and commits queued rows. */
  stop: () => Promise<void>
}

export type StartOptions = {
  /** Creates a missing database. */
  create?: boolean
  /** Runs before the server accepts requests. */
  prepare?: (runOperation: RunOperation) => Promise<unknown>
  /** The setting texts behind the configuration, and a function that reads them again. */
  settings?: { texts: SettingTexts; reread: () => SettingTexts }
  /** How often the server checks whether the TLS files have changed. */
  tlsCheckMilliseconds?: number
}

/**
 * Starts the server on an initialized database.
 * @throws Fault `configuration`, or `conflict` while another process holds the database
 */
export async function startServer(
  config: Config,
  dependencies: Dependencies,
  { create = false, prepare, settings, tlsCheckMilliseconds = tlsCheckMillisecondsDefault }: StartOptions = {},
): Promise<Server> {
  const socketPath = socketPathFor(config)
  if (socketPath !== undefined) checkSocketPath(socketPath)
  const admin = await retryWhileHeld(async () => {
    await rejectSecondServer(socketPath, config)
    return openContext(config, dependencies, { create, rules: startRules, serves: true })
  })
  const [held, heldOfPage] = [holdRequests(refuseAtStart), holdRequests(refuseAtStart)]
  const listeners: Listeners = { others: [], socket: undefined, held, heldOfPage }
  const seenFile = seenFileFor(config.masterKey)
  try {
    if (seenFile !== undefined) await rejectOlder({ database: admin.database, file: seenFile })
    // What waited while this machine was down counts before anything is served.
    await admin.grace?.apply()
    await prepare?.(withTypes(createRunner(admin)))
    const { context, address, runByName, reload, tls, stopReporting } = await serve(
      admin,
      dependencies,
      listeners,
      settings,
    )
    if (socketPath !== undefined) {
      const handler = createSocketHandler(runByName, config.databasePath, admin.log)
      const socket = { path: socketPath, mode: 0o600, setting: 'LATCHKEY_DATABASE_URL' }
      listeners.socket = await listenOnSocket(socket, handler)
    }
    const metrics = await listenForMetrics(context)
    if (metrics !== undefined) listeners.others.push(metrics.listener)
    const runOperation = withTypes(runByName)
    const stopSchedules = await startSchedules(context, runOperation)
    const stopSeen = seenFile === undefined ? undefined : keepSeen({ ...context, file: seenFile })
    const stopGrace = context.grace?.begin()
    const stopWatching = watchTls(tls, tlsCheckMilliseconds)
    void testAfterEngineChange(context, context.readiness.isStopping)
    const stop = async () => {
      context.readiness.beginStop()
      stopSchedules()
      stopWatching()
      stopGrace?.()
      await stopSeen?.()
      await context.outbox.stop()
      await stopServer(listeners, admin, stopReporting())
      context.accessLog.close()
    }
    const { baseUrl, page } = context
    return {
      baseUrl,
      pageUrl: page?.url,
      address,
      metricsAddress: metrics?.address,
      context,
      runOperation,
      runByName,
      reload,
      stop,
    }
  } catch (error) {
    listeners.held.refuse()
    listeners.heldOfPage.refuse()
    await stopServer(listeners, admin)
    throw explainFailedStart(error)
  }
}

/** @throws Fault `conflict` */
async function rejectSecondServer(socketPath: string | undefined, { databasePath }: Config): Promise<void> {
  if (!(await isServed(socketPath))) return
  const message = `Another server serves the database ${JSON.stringify(databasePath)}; stop that one first`
  throw new Fault('conflict', message)
}

/** Listens first, because the URLs can depend on the free ports that were chosen. Requests wait until it serves. */
async function serve(
  admin: OpenContext,
  { fetch }: Dependencies,
  { others, held, heldOfPage }: Listeners,
  settings: StartOptions['settings'],
) {
  const { config } = admin
  const { listener, tls } = await openListener(admin, held.handler)
  others.push(listener)
  const pageAddress = await listenForPage(config, others, heldOfPage.handler)
  const address = { hostname: config.listen.hostname, port: listener.port }
  const baseUrl = baseUrlFor(config, address)
  const urls = { baseUrl, pageUrl: pageUrlFor(config, baseUrl, pageAddress) }
  const context = await openServing(admin, { ...urls, tlsState: tls?.state }, fetch)
  const { inEffect, accessLog, readiness, log } = context
  const { isStopping } = readiness
  let texts = settings?.texts
  const keep = (next: SettingTexts) => {
    texts = next
  }
  const reload = settings && createReload({ ...settings, keep, inEffect, accessLog, tls, isStopping, log })
  const runByName = createRunner({ ...context, reload, settingTexts: () => texts })
  // Requests that arrive before this node is counted would be admitted as if the others were all.
  const stopReporting = await reportWhileServing(context, { port: address.port, baseUrl })
  context.database.shared?.beginServing()
  held.serve(createApp(pageAddress === undefined ? context : withoutPage(context), runByName))
  if (pageAddress !== undefined) heldOfPage.serve(createApp(context, runByName))
  return { context, address, runByName, reload, tls, stopReporting }
}

/**
 * Opens the listener, with TLS if a certificate is configured.
 * @throws Fault `configuration`
 */
async function openListener(
  { config, now, log }: OpenContext,
  handler: Handler,
): Promise<{ listener: Listener; tls?: TlsInEffect }> {
  const { tls: files, databasePath } = config
  const basePath = basePathFor(config)
  const address = { ...config.listen, plainPaths: workloadPaths.map((path) => basePath + path) }
  if (files === undefined) return { listener: await listen(address, handler) }
  const pair = readTlsPair(files, { databasePath, now: now() })
  const listener = await listenSecurely(address, handler, pair)
  return { listener, tls: createTlsInEffect({ files, pair, listener, databasePath, now, log }) }
}

/** Checks the TLS files on a timer. Returns a function that stops the timer. */
function watchTls(tls: TlsInEffect | undefined, everyMilliseconds: number): () => void {
  return tls === undefined ? () => {} : every(everyMilliseconds, tls.refresh)
}

type Listeners = {
  others: Listener[]
  socket: Listener | undefined
  held: HeldRequests
  heldOfPage: HeldRequests
}

/**
 * Drains everything within one limit. The local socket stays open longest, so that `latchkey health` can report a
 * server that is stopping.
 */
async function stopServer(
  { others, socket }: Pick<Listeners, 'others' | 'socket'>,
  admin: OpenContext,
  reporting: Promise<void> = Promise.resolve(),
): Promise<void> {
  const { drainMilliseconds } = admin.config
  const startedAt = performance.now()
  const drained = Promise.all(others.map((listener) => listener.drain(drainMilliseconds)))
  await isSettledWithin(drained, drainMilliseconds)
  const rest = Math.max(0, drainMilliseconds - (performance.now() - startedAt))
  await Promise.all([drained, socket?.drain(rest)])
  admin.database.shared?.beginEnd()
  await reporting
  await admin.budgetSlices?.end().catch(() => {})
  await closeContext(admin)
}
