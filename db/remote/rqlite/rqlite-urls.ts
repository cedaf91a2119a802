// The URLs of rqlite clusters, which name several nodes.
import type { ServerUrls } from '../server-client.ts'

export const rqliteUrls: ServerUrls = {
  hasCopies: true,
  isUrl: (text) => /^rqlites?:/.test(text),
  urlProblem: (text) =>
    originsOf(text) === undefined
      ? 'use rqlite://HOST:PORT,HOST:PORT,HOST:PORT with the nodes of the cluster, or rqlites:// for TLS, without credentials; set user:password in LATCHKEY_DATABASE_TOKEN or its file'
      : undefined,
}

const defaultPort = 4_001
const secure = /^rqlites:\/\//
const plain = /^rqlite:\/\//
const host = /^(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?$/
/** A cluster has three or five nodes. */
const addressesMax = 16

/** The origins in `rqlite://a:4001,b:4001` (HTTP) or `rqlites://…` (HTTPS). Undefined for anything else. */
export function originsOf(url: string): string[] | undefined {
  const hosts = url.replace(secure, '').replace(plain, '').replace(/\/$/, '').split(',')
  const isHost = (text: string) => {
    const found = host.exec(text)
    const port = Number(found?.[1] ?? defaultPort)
    return found !== null && port > 0 && port < 65_536
  }
  if (!(secure.test(url) || plain.test(url)) || hosts.length > addressesMax || !hosts.every(isHost)) return undefined
  const scheme = secure.test(url) ? 'https' : 'http'
  return [...new Set(hosts)].map((text) => `${scheme}://${/:\d+$/.test(text) ? text : `${text}:${defaultPort}`}`)
}
