// Listens on this machine for the return of a browser.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { describeError, Fault } from '../../fault.ts'

export type Serve = (request: IncomingMessage, response: ServerResponse) => Promise<void> | void

/** Listens at the host and port of the URL; without a port, at a free one. Throws a fault if another program does. */
export async function listenOnLoopback(
  wanted: URL,
): Promise<{ port: number; serve: (handle: Serve) => void; close: () => void }> {
  let serve: Serve | undefined
  const server = createServer((request, response) => {
    void Promise.resolve(serve?.(request, response)).catch(() => response.destroy())
  })
  const host = wanted.hostname === 'localhost' ? '127.0.0.1' : wanted.hostname.replaceAll(/^\[|\]$/g, '')
  await new Promise<void>((resolve, reject) => {
    server.once('listening', resolve)
    server.once('error', (error) =>
      reject(new Fault('unavailable', `The sign-in cannot listen on ${wanted.host}: ${describeError(error)}`)),
    )
    server.listen(Number(wanted.port === '' ? 0 : wanted.port), host)
  })
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    serve: (handle: Serve) => {
      serve = handle
    },
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
