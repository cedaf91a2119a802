// A running Latchkey server: the service on its address, the admin interface on its local socket, and one database for
// both.

import { chmodSync, lstatSync, rmSync } from 'node:fs'
import { listSigningKeys } from '../db/signing-keys.ts'
import type { AdminContext } from './admin/operation/context.ts'
import { createOperationRunner, type RunByName } from './admin/operation/operation.ts'
import { operations, type RunOperation, withTypes } from './admin/operations.ts'
import { isServed } from './admin/transport/client.ts'
import { createSocketHandler } from './admin/transport/socket.ts'
import { createApp } from './app.ts'
import { baseUrlFor, type Config, type SettingTexts, socketPathFor } from './config.ts'
import { type Context, closeContext, type Dependencies, openContext, openServing, retryWhileOwned } from './context.ts'
import type { Reload } from './effective-settings.ts'
import { describeError, Fault } from './fault.ts'
import { signingKeyCheckMilliseconds, tlsCheckMillisecondsDefault } from './limits.ts'
import { createMetricsHandler } from './observe/endpoints/metrics-handler.ts'
import { createReload } from './operating/reload.ts'
import { checkSocketPath } from './operating/socket-path.ts'
import { readTlsPair } from './operating/tls-files.ts'
import { createTlsInEffect, type TlsInEffect } from './operating/tls-in-effect.ts'
import { type Listener, listen, listenSecurely } from './runtime/listen.ts'
import type { Handler } from './runtime/listener.ts'
import type { ListenAddress } from './setting-values.ts'

export type Server = {
  baseUrl: string
  address: ListenAddress
  /** Where metrics are served without a credential, if anywhere. */
  metricsAddress: ListenAddress | { socketPath: string } | undefined
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
 * @throws Fault `configuration`, or `conflict` while another process owns the database
 */
export async function startServer(
  config: Config,
  dependencies: Dependencies,
  { create = false, prepare, settings, tlsCheckMilliseconds = tlsCheckMillisecondsDefault }: StartOptions = {},
): Promise<Server> {
  const socketPath = socketPathFor(config)
  checkSocketPath(socketPath)
  const admin = await retryWhileOwned(async () => {
    if (await isServed(socketPath)) {
      throw new Fault(
        'conflict',
        `Another server serves the database ${JSON.stringify(config.databasePath)}; stop that one first`,
      )
    }
    return openContext(config, dependencies, { create })
  })
  const listeners: Listener[] = []
  try {
    await prepare?.(withTypes(createOperationRunner(operations, admin)))
    const { context, address, listener, runByName, reload, tls } = await serve(admin, dependencies, settings)
    const stopWatching = watchTls(tls, tlsCheckMilliseconds)
    const runOperation = withTypes(runByName)
    listeners.push(listener)
    removeDeadSocket(socketPath)
    listeners.push(await listen({ socketPath }, createSocketHandler(runByName, config.databasePath, admin.log)))
    chmodSync(socketPath, 0o600)
    const metricsAddress = await serveMetrics(context, listeners)
    const stopRotating = await rotateOnSchedule(context, runOperation)
    const stop = () => {
      context.readiness.beginStop()
      stopRotating()
      stopWatching()
      return stopServer(listeners, admin, socketPath).then(context.accessLog.close)
    }
    return { baseUrl: context.baseUrl, address, metricsAddress, context, runOperation, runByName, reload, stop }
  } catch (error) {
    await stopServer(listeners, admin, socketPath)
    throw error
  }
}

/** Listens first, because the base URL can depend on the free port that was chosen. */
async function serve(admin: AdminContext, { fetch }: Dependencies, settings: StartOptions['settings']) {
  let handler: Handler = async () => new Response(null, { status: 503, headers: { 'retry-after': '1' } })
  const { hostname } = admin.config.listen
  const { listener, tls } = await openListener(admin, (request, peer) => handler(request, peer))
  try {
    const address = { hostname, port: listener.port }
    const context = await openServing(admin, baseUrlFor(admin.config, address), fetch)
    const { inEffect, accessLog, log } = context
    const reload = settings && createReload({ ...settings, inEffect, accessLog, tls, log })
    const runByName = createOperationRunner(operations, { ...context, reload })
    handler = createApp(context, runByName)
    return { context, address, listener, runByName, reload, tls }
  } catch (error) {
    await listener.drain()
    throw error
  }
}

/** Serves metrics if the settings enable it, and adds the listener to those that are drained on shutdown. */
async function serveMetrics(context: Context, listeners: Listener[]): Promise<Server['metricsAddress']> {
  const { metricsListen } = context.config
  if (metricsListen === undefined) return undefined
  const isSocket = 'socketPath' in metricsListen
  if (isSocket) removeDeadSocket(metricsListen.socketPath)
  const options = { ...metricsListen, setting: 'LATCHKEY_METRICS_LISTEN' }
  const listener = await listen(options, createMetricsHandler(context))
  const drain = async () => {
    await listener.drain()
    if (isSocket) rmSync(metricsListen.socketPath, { force: true })
  }
  listeners.push({ ...listener, drain })
  // The collector usually runs as another user of the same group.
  if (isSocket) chmodSync(metricsListen.socketPath, 0o660)
  return isSocket ? metricsListen : { ...metricsListen, port: listener.port }
}

/**
 * Opens the listener, with TLS if a certificate is configured.
 * @throws Fault `configuration`
 */
async function openListener(
  { config, now, log }: AdminContext,
  handler: Handler,
): Promise<{ listener: Listener; tls?: TlsInEffect }> {
  const { listen: address, tls: files, databasePath } = config
  if (files === undefined) return { listener: await listen(address, handler) }
  const pair = readTlsPair(files, { databasePath, now: now() })
  const listener = await listenSecurely(address, handler, pair)
  return { listener, tls: createTlsInEffect({ files, pair, listener, databasePath, now, log }) }
}

/** Checks the TLS files on a timer. Returns a function that stops the timer. */
function watchTls(tls: TlsInEffect | undefined, everyMilliseconds: number): () => void {
  if (tls === undefined) return () => {}
  const timer = setInterval(tls.refresh, everyMilliseconds)
  return () => clearInterval(timer)
}

/** Rotates the signing key when it is due, now and on a timer. Returns a function that stops the timer. */
async function rotateOnSchedule({ config, now, orm, log }: Context, runOperation: RunOperation): Promise<() => void> {
  const { signingKeyDays } = config
  if (signingKeyDays === undefined) return () => {}
  const rotateWhenDue = async () => {
    const newest = (await listSigningKeys(orm)).find(({ retiredAt }) => retiredAt === null)
    if (newest === undefined || now() < newest.activeAt + signingKeyDays * 24 * 60 * 60 * 1_000) return
    await runOperation('signing_keys.rotate', {}, { kind: 'server' })
  }
  const logFailure = (error: unknown) => log('error', 'signing_key_rotation_failed', { reason: describeError(error) })
  await rotateWhenDue().catch(logFailure)
  const timer = setInterval(() => rotateWhenDue().catch(logFailure), signingKeyCheckMilliseconds)
  return () => clearInterval(timer)
}

async function stopServer(listeners: Listener[], admin: AdminContext, socketPath: string): Promise<void> {
  // Close the local socket last, so that `latchkey health` can report a server that is stopping.
  for (const listener of listeners) await listener.drain()
  await closeContext(admin)
  if (listeners.length > 1) rmSync(socketPath, { force: true })
}

/**
 * Removes the socket of a dead server. This process owns the database, so no live server uses the socket. Other files
 * are kept.
 */
function removeDeadSocket(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found?.isSocket() === true) rmSync(path)
  else if (found !== undefined)
    throw new Fault(
      'configuration',
      `Cannot create the local socket ${JSON.stringify(path)}: another file is in the way; move it away`,
    )
}
