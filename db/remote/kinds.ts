// The kinds of database servers, by their URLs. A further kind is a folder beside this file and an entry here. What speaks to a
// server is loaded when it is used: a database file needs none of it.
import { libsqlUrls } from './libsql/libsql-urls.ts'
import { rqliteUrls } from './rqlite/rqlite-urls.ts'
import type { ConnectOptions, ServerClient, ServerUrls } from './server-client.ts'

type ServerKind = ServerUrls & { load: () => Promise<(options: ConnectOptions) => ServerClient> }

const kinds: readonly ServerKind[] = [
  { ...libsqlUrls, load: async () => (await import('./libsql/libsql.ts')).connectLibsql },
  { ...rqliteUrls, load: async () => (await import('./rqlite/rqlite.ts')).connectRqlite },
]

const kindOf = (url: string) => kinds.find(({ isUrl }) => isUrl(url))

/** Reports whether a database is on a server. */
export function isServerUrl(text: string): boolean {
  return kindOf(text) !== undefined
}

/** What is wrong with the URL of a database server, as what to use instead; undefined if nothing is. */
export function serverUrlProblem(text: string): string | undefined {
  return kindOf(text)?.urlProblem(text)
}

/** Whether the server of this URL makes copies of its database while it runs. */
export function hasCopies(url: string): boolean {
  return kindOf(url)?.hasCopies === true
}

/** @throws TypeError for a URL that `isServerUrl` denies */
export async function connectToServer(options: ConnectOptions): Promise<ServerClient> {
  const kind = kindOf(options.url)
  if (kind === undefined) throw new TypeError('The URL names no database server')
  const connect = await kind.load()
  return connect(options)
}
