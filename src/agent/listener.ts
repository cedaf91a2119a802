// Where the agent listens: an address of this machine alone, or a Unix socket of this user. It drains before it stops.
import { lstat, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { connect } from 'node:net'
import { Fault } from '../fault.ts'
import { isLoopback } from './identity-token.ts'
import type { RequestHandler } from './proxy.ts'

export type ListenAddress = { hostname: string; port: number } | { path: string }
/** `port` is undefined for a Unix socket. */
export type LocalListener = { port: number | undefined; stop: (drainMilliseconds: number) => Promise<void> }

/** Longer than clients keep connections, so that the agent never closes one that a client is about to use. */
const keepAliveMilliseconds = 120_000

/** Parses `127.0.0.1:8790`, `[::1]:8790` or `unix:PATH`. Throws a `usage` fault, also for an address that others reach. */
export function parseListenAddress(text: string): ListenAddress {
  const rule = 'use an address of this machine such as 127.0.0.1:8790, or unix:PATH'
  if (text.startsWith('unix:') && text.length > 'unix:'.length) return { path: text.slice('unix:'.length) }
  const [, host = '', port = ''] = /^(.+):(\d{1,5})$/.exec(text) ?? []
  if (host === '' || Number(port) > 65_535)
    throw new Fault('usage', `${JSON.stringify(text)} is not a valid value for --listen: ${rule}`)
  if (!isLoopback(host))
    throw new Fault('usage', `--listen must not be ${host}, because other machines could use the token: ${rule}`)
  return { hostname: host === 'localhost' ? '127.0.0.1' : host.replaceAll(/^\[|\]$/g, ''), port: Number(port) }
}

/** Listens at the address. Throws a fault if it is in use. `makeHandler` gets the port. */
export async function listenAt(
  address: ListenAddress,
  makeHandler: (port: number | undefined) => RequestHandler,
): Promise<LocalListener> {
  if ('path' in address) await removeAbandoned(address.path)
  let handle: RequestHandler | undefined
  const server = createServer((request, response) => handle?.(request, response))
  server.keepAliveTimeout = keepAliveMilliseconds
  // A long upload is the business of the client.
  server.requestTimeout = 0
  await new Promise<void>((resolve, reject) => {
    server.once('listening', resolve)
    server.once('error', (error: NodeJS.ErrnoException) => reject(inUse(address, error)))
    if ('path' in address) server.listen(address.path)
    else server.listen(address.port, address.hostname)
  })
  const bound = server.address()
  const port = 'path' in address || bound === null || typeof bound === 'string' ? undefined : bound.port
  handle = makeHandler(port)
  return { port, stop: (milliseconds) => drain(server, milliseconds) }
}

function inUse(address: ListenAddress, { code, message }: NodeJS.ErrnoException): Fault {
  const name = 'path' in address ? address.path : `${address.hostname}:${address.port}`
  if (code === 'EADDRINUSE') return new Fault('conflict', `Another program listens on ${name}`)
  return new Fault('unavailable', `The agent cannot listen on ${name}`, { hint: `: ${message}` })
}

/** Removes the socket of an agent that was killed. Any other file stays, and listening fails. */
async function removeAbandoned(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined)
  if (found === undefined) return
  if (!found.isSocket()) throw new Fault('conflict', `Cannot create the socket ${path}: another file is in the way`)
  const isServed = await new Promise<boolean>((resolve) => {
    const probe = connect(path)
    probe.once('connect', () => {
      probe.destroy()
      resolve(true)
    })
    probe.once('error', () => resolve(false))
  })
  if (isServed) throw new Fault('conflict', `Another program listens on ${path}`)
  await rm(path, { force: true })
}

/** Lets running requests end, and cuts off those that take longer. */
async function drain(server: Server, milliseconds: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()))
  server.closeIdleConnections()
  const timer = setTimeout(() => server.closeAllConnections(), milliseconds)
  // A connection whose last response ends now is idle only after it.
  const sweep = setInterval(() => server.closeIdleConnections(), 100)
  await closed
  clearTimeout(timer)
  clearInterval(sweep)
}
