// A proxy that answers every request with 502 and records its first line, for tests of what must not reach it.
import { createServer } from 'node:net'

export type RecordingProxy = {
  /** The variables that make a runtime use it for everything. */
  env: Record<string, string>
  seen: string[]
  stop: () => void
}

export async function startRecordingProxy(): Promise<RecordingProxy> {
  const seen: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (chunk) => {
      seen.push(chunk.toString('latin1').split('\r\n')[0] ?? '')
      socket.end('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
  const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy']
  const proxies = Object.fromEntries(names.map((name) => [name, url]))
  // Node uses a proxy only when it is configured so, since version 24.
  return { env: { ...proxies, NODE_USE_ENV_PROXY: '1' }, seen, stop: () => void server.close() }
}
