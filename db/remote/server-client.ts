// What every kind of database server offers to the rest of db/remote, and what it needs for that. Each kind is a folder
// beside this file, which alone knows its name, its URLs and its protocol.
import type { Client } from '@libsql/core/api'

/**
 * Sends one HTTP request. `db` knows no settings, so the caller adds trust in a private CA.
 * @throws `asNotReached` where it is certain that nothing was sent
 */
export type SendRequest = (request: Request, signal: AbortSignal) => Promise<Response>

export type ConnectOptions = {
  /** As `kinds.ts` accepts it. */
  url: string
  token: string | undefined
  send: SendRequest
}

/** `error`: after the next failure, nothing may be left that can commit. `what` and `action` are sentences without a full stop. */
export type Weakness = { level: 'error' | 'warning'; what: string; action?: string }

/** `term` grows with each election, and `applied` is the newest entry of the log that is in its database. Unknown of a server that is down. */
export type ServerState = { server: string } & (
  | { isUp: false }
  | { isUp: true; isLeader: boolean; term: number; committed: number; applied: number; bytes: number }
)

/** The bytes of a SQLite file. */
export type ReadCopy = (signal: AbortSignal) => Promise<ReadableStream<Uint8Array>>

export type ServerClient = {
  /**
   * `execute` only reads, and sees every acknowledged commit. `batch` is one transaction, sent once.
   * Both throw errors that are `isUnreachable` if the server did not respond; `batch` throws `asNotReached` if it was certainly
   * not begun, and LibsqlBatchError with the code of SQLite if the server refused a statement and rolled back.
   */
  client: Client
  /** Returns why this server cannot be used as it is configured, or undefined. Throws as `client` does. */
  objection: () => Promise<string | undefined>
  /** What makes the database weaker than it should be while it does its work. Throws nothing. */
  weaknesses: () => Promise<Weakness[]>
  /** The servers of a cluster, as each describes itself; empty where there is one server. Throws nothing. */
  servers: () => Promise<ServerState[]>
  /**
   * Reads a consistent copy of the database as a SQLite file, while it is used. Undefined where the server makes none.
   * @throws as `client` does
   */
  readCopy: ReadCopy | undefined
  /** How long a read, and a commit that was never sent, are tried again: as long as the server may take to recover. */
  patienceMilliseconds: number
}

export type ServerUrls = {
  /** Whether a URL names such a server. */
  isUrl: (text: string) => boolean
  /** What is wrong with such a URL, as what to use instead; undefined if nothing is. */
  urlProblem: (text: string) => string | undefined
  /** Whether such a server makes copies of its database (`readCopy`). */
  hasCopies: boolean
}
