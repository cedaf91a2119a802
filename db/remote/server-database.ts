// Opens a database on a libSQL server, which any number of nodes share. The server commits one transaction at a time;
// what a connection can lose, commit-once.ts makes certain.
import { setTimeout as pause } from 'node:timers/promises'
import { type Client, type InArgs, type InStatement, LibsqlError, type ResultSet } from '@libsql/client'
import { createClient } from '@libsql/client/http'
import type { OpenRefusal } from '../file/file-errors.ts'
import type { DatabaseFileFacts } from '../file/inspect.ts'
import { createOrm, type Database, isForeign, refuse } from '../file/open.ts'
import {
  createMigrations,
  isUnfinishedCopy,
  latestSchema,
  migrations,
  newerSchema,
  readSchema,
  unfinishedCopy,
} from '../schema/migrate.ts'
import type { BoundStatement } from '../write/rows.ts'
import { parseBounded, readBounded } from './bounded-response.ts'
import { type CommitOptions, connectMillisecondsMax, createCommits } from './commit-once.ts'
import { expectRevision, readRevision, refreshFrom, toRevision } from './refresh.ts'
import {
  asNotReached,
  asUnreachable,
  isTooLarge,
  isUnreachable,
  notReachedCode,
  unreachableCode,
} from './server-errors.ts'
import { cleanError, cleanSaid, notConfirmed, serverError, tooSlow } from './server-failure.ts'

/**
 * Sends one HTTP request. `db` knows no settings, so the caller adds trust in a private CA.
 * @throws `asNotReached` where it is certain that nothing was sent
 */
export type SendRequest = (request: Request, signal: AbortSignal) => Promise<Response>

export type ServerOptions = {
  /** `http:`, `https:` or `libsql:`, without a query. */
  url: string
  token: string | undefined
  /** Whether to create the tables in an empty database. */
  create: boolean
  /** Whether to migrate an older schema (default: true). */
  migrates?: boolean | undefined
  send: SendRequest
} & Partial<Omit<CommitOptions, 'send'>>

/** How long one HTTP request may take. A server ends a transaction after about as long. */
const requestMillisecondsMax = 5_000
const readPauseMillisecondsMax = 100
const migrationMillisecondsMax = 60_000

export async function openServerDatabase(options: ServerOptions): Promise<Database | OpenRefusal> {
  const { url, create } = options
  let client: Client | undefined
  try {
    client = connect(options)
    if (await isForeign(client)) return refuse(client, 'unreadable', `The database ${url} is another program's`)
    const found = await readSchema(client)
    if (found > latestSchema) return refuse(client, 'newer_schema', newerSchema(found))
    if (found === 0 && !create) return refuse(client, 'missing', `The database ${url} has no tables`)
    if (0 < found && found < latestSchema && options.migrates === false)
      return refuse(client, 'older_schema', olderSchema(url, found))
    await migrate(client, found)
    if (await isUnfinishedCopy(client)) return refuse(client, 'unreadable', `The database ${url} ${unfinishedCopy}`)
    return toDatabase(client, options, found > 0 && found < latestSchema ? found : undefined)
  } catch (error) {
    client?.close()
    return refusalOf(error, url)
  }
}

/** Reads the schema and the signing keys without changing anything, to check a configuration. */
export async function inspectServerDatabase(
  options: Omit<ServerOptions, 'create'>,
): Promise<DatabaseFileFacts | OpenRefusal> {
  const { url } = options
  try {
    const client = connect(options)
    const schema = await readSchema(client)
    if (schema === 0) return refuse(client, 'missing', `The database ${url} has no tables`)
    if (schema > latestSchema) return refuse(client, 'newer_schema', newerSchema(schema))
    const { rows } = await client.execute('select id, private_key_encrypted from signing_keys')
    client.close()
    return { schema, signingKeys: rows.map((row) => ({ id: String(row[0]), privateKeyEncrypted: String(row[1]) })) }
  } catch (error) {
    return refusalOf(error, url)
  }
}

function connect({ url, token, send }: Omit<ServerOptions, 'create'>): Client {
  // Without the slash, the client drops the last segment of a path.
  const base = `${url.replace(/\/$/, '')}/`
  const client = createClient({
    url: base,
    fetch: sendWith(send, token),
    ...(token !== undefined && { authToken: token }),
  })
  const execute = client.execute.bind(client)
  const batch = client.batch.bind(client)
  // All writes are batches, so this only reads.
  const readAgain = (statement: InStatement, args?: InArgs) =>
    readUntilReached(() =>
      understood(typeof statement === 'string' ? execute(statement, args) : execute(statement), token),
    )
  const writeOnce: Client['batch'] = (statements, mode) => understood(batch(statements, mode), token)
  return Object.assign(client, { execute: readAgain, batch: writeOnce })
}

/** The client cannot read every response, such as a page of a proxy: that proves nothing. */
async function understood<Result>(response: Promise<Result>, token: string | undefined): Promise<Result> {
  try {
    return await response
  } catch (error) {
    if (error instanceof SyntaxError || (error instanceof LibsqlError && error.code.startsWith('HRANA_')))
      throw asUnreachable(error)
    throw isUnreachable(error) ? error : cleanError(error, token)
  }
}

async function readUntilReached(read: () => Promise<ResultSet>): Promise<ResultSet> {
  const giveUpAt = performance.now() + connectMillisecondsMax
  for (let milliseconds = 10; ; milliseconds = Math.min(2 * milliseconds, readPauseMillisecondsMax)) {
    try {
      return await read()
    } catch (error) {
      if (!isUnreachable(error) || performance.now() + milliseconds > giveUpAt) throw error
    }
    await pause(milliseconds)
  }
}

function olderSchema(url: string, found: number): string {
  return `The database ${url} has schema version ${found}, and the first node of this program migrates it to ${latestSchema}; until then, use the program of its nodes`
}

function refusalOf(error: unknown, url: string): OpenRefusal {
  const { message } = error as Error
  const isDescribed = isUnreachable(error) || isTooLarge(error)
  const why = isDescribed ? message : `the server responds with an error: ${message.replace(/^[A-Z_]+: /, '')}`
  return {
    refused: isUnreachable(error) ? 'unreachable' : 'unreadable',
    message: `The database ${url} cannot be opened: ${why}`,
    cause: error,
  }
}

function toDatabase(client: Client, options: ServerOptions, migratedFrom: number | undefined): Database {
  const { url, monotonic = () => performance.now(), onUnknown = () => {}, watch, outcomeMillisecondsMax } = options
  const send = (statements: BoundStatement[]) => client.batch(statements, 'write')
  const { commit, isOverdue, beginServing, beginEnd, settle } = createCommits({
    send,
    monotonic,
    onUnknown,
    watch,
    outcomeMillisecondsMax,
  })
  const none = async () => {}
  return {
    kind: 'server',
    client,
    ...{ orm: createOrm(client), reader: createOrm(client) },
    readingMilliseconds: () => 0,
    path: url,
    migratedFrom,
    commit: async (statements, patience) => void (await commit(statements, patience)),
    shared: {
      commitChange: async (statements, basis) => {
        const results = await commit([expectRevision(basis), ...statements, readRevision])
        const row = results?.at(-1)?.rows[0]
        return row === undefined ? undefined : toRevision(row)
      },
      refresh: async (position) => {
        if (isOverdue()) throw serverError(notConfirmed, unreachableCode)
        return within(connectMillisecondsMax, refreshFrom(client, position))
      },
      beginServing,
      beginEnd,
    },
    // The server runs its own checkpoints, and backups are its snapshots.
    checkpoint: none,
    holdCheckpoints: async () => none,
    giveBackPages: async () => 0,
    close: async () => {
      beginEnd()
      await settle()
      client.close()
    },
  }
}

/** A response counts only when it has arrived completely. */
function sendWith(send: SendRequest, token: string | undefined): typeof fetch {
  const sendOnce = async (request: Request): Promise<Response> => {
    const { status, body, headers } = await receive(send, request)
    if (status >= 300 && request.method === 'POST') {
      const error = new Error(`status ${status}: ${cleanSaid(Buffer.from(body).toString(), token)}`)
      // What a server refuses, it has not begun: a token, its rights, the size of the request. Who waited can have sent it on.
      throw status < 500 && status !== 408 ? asNotReached(error, status) : asUnreachable(error, status)
    }
    return Object.assign(new Response(body, { status, headers }), { json: () => parseBounded(body) })
  }
  return sendOnce as typeof fetch
}

async function receive(send: SendRequest, request: Request) {
  try {
    const response = await send(request, AbortSignal.timeout(requestMillisecondsMax))
    return { status: response.status, headers: response.headers, body: await readBounded(response) }
  } catch (error) {
    throw isTooLarge(error) ? error : asUnreachable(error)
  }
}

async function within<Result>(milliseconds: number, work: Promise<Result>): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(serverError(tooSlow, unreachableCode)), milliseconds)
  try {
    return await Promise.race([work, late])
  } catch (error) {
    // A table that is missing: the database was replaced.
    throw asUnreachable(error)
  } finally {
    clearTimeout(timer)
  }
}

/** Runs the missing migrations. Each begins with its number, which is unique: of several nodes, one runs it. */
async function migrate(client: Client, from: number): Promise<void> {
  const giveUpAt = performance.now() + migrationMillisecondsMax
  for (let version = from; version < latestSchema; ) {
    const next = migrations.find((migration) => migration.version > version)
    if (next === undefined) return
    const record = {
      sql: 'insert into schema_migrations (version, name, applied_at) values (?, ?, ?)',
      args: [next.version, next.name, Date.now()],
    }
    try {
      await client.batch([createMigrations, record, ...next.statements], 'write')
      version = next.version
    } catch (error) {
      const found = await readSchema(client).catch(() => version)
      const isHopeless = !isUnreachable(error) || error.code === notReachedCode || performance.now() > giveUpAt
      if (found <= version && isHopeless) throw error
      if (found <= version) await pause(100)
      version = found
    }
  }
}
