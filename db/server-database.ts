// Opens a database on a libSQL server, which any number of nodes share. The server commits one transaction at a time;
// what a connection can lose, commit-once.ts makes certain.
import { setTimeout as pause } from 'node:timers/promises'
import { type Client, type InArgs, type InStatement, LibsqlError, type ResultSet } from '@libsql/client'
import { createClient } from '@libsql/client/http'
import {
  asNotReached,
  asUnreachable,
  type CommitOptions,
  connectMillisecondsMax,
  createCommits,
  isUnreachable,
  notReachedCode,
  unreachableCode,
} from './commit-once.ts'
import type { Inspected } from './inspect.ts'
import { expectRevision, lookAt, readRevision } from './look.ts'
import {
  createMigrations,
  isUnfinishedCopy,
  latestSchema,
  migrations,
  newerSchema,
  readSchema,
  unfinishedCopy,
} from './migrate.ts'
import { createOrm, type Database, isForeign, type OpenRefusal, refuse } from './open.ts'
import type { BoundStatement } from './rows.ts'

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
export async function inspectServerDatabase(options: Omit<ServerOptions, 'create'>): Promise<Inspected | OpenRefusal> {
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
  const client = createClient({ url, fetch: sendWith(send), ...(token !== undefined && { authToken: token }) })
  const execute = client.execute.bind(client)
  const batch = client.batch.bind(client)
  // All writes are batches, so this only reads.
  const readAgain = (statement: InStatement, args?: InArgs) =>
    readUntilReached(() => understood(typeof statement === 'string' ? execute(statement, args) : execute(statement)))
  const writeOnce: Client['batch'] = (statements, mode) => understood(batch(statements, mode))
  return Object.assign(client, { execute: readAgain, batch: writeOnce })
}

/** The client throws a SyntaxError where it cannot read a response, such as a page of a proxy: that proves nothing. */
async function understood<Result>(response: Promise<Result>): Promise<Result> {
  try {
    return await response
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw asUnreachable(new Error(`its response is not one of a database server: ${error.message}`, { cause: error }))
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
  const isSilent = isUnreachable(error)
  const why = isSilent
    ? `${(error as Error).message}; check the URL, the token and the server`
    : (error as Error).message
  return {
    refused: isSilent ? 'unreachable' : 'unreadable',
    message: `The database ${url} cannot be opened: ${why}`,
    cause: error,
  }
}

function toDatabase(client: Client, options: ServerOptions, migratedFrom: number | undefined): Database {
  const { url, monotonic = () => performance.now(), onUnknown = () => {}, watch, outcomeMillisecondsMax } = options
  const send = (statements: BoundStatement[]) => client.batch(statements, 'write')
  const { commit, isOverdue, beginEnd, settle } = createCommits({
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
    orm: createOrm(client),
    path: url,
    migratedFrom,
    commit: async (statements, patience) => void (await commit(statements, patience)),
    shared: {
      commitChange: async (statements, basis) => {
        const results = await commit([expectRevision(basis), ...statements, readRevision])
        const revision = results?.at(-1)?.rows[0]?.revision
        return revision === undefined ? undefined : Number(revision)
      },
      look: async (position) => {
        if (isOverdue()) throw new LibsqlError('The database server does not confirm commits', unreachableCode)
        return within(connectMillisecondsMax, lookAt(client, position))
      },
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
function sendWith(send: SendRequest): typeof fetch {
  const sendOnce = async (request: Request): Promise<Response> => {
    const { status, body, headers } = await receive(send, request)
    if (status >= 300 && request.method === 'POST') {
      const said = body.byteLength === 0 ? '' : `: ${Buffer.from(body).toString().slice(0, 200)}`
      const error = new Error(`status ${status}${said}`)
      // What a server refuses, it has not begun: a token, its rights, the size of the request.
      throw status < 500 ? asNotReached(error, status) : asUnreachable(error)
    }
    return new Response(body, { status, headers })
  }
  return sendOnce as typeof fetch
}

async function receive(send: SendRequest, request: Request) {
  try {
    const response = await send(request, AbortSignal.timeout(requestMillisecondsMax))
    return { status: response.status, headers: response.headers, body: await response.arrayBuffer() }
  } catch (error) {
    throw asUnreachable(error)
  }
}

async function within<Result>(milliseconds: number, work: Promise<Result>): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const tooLate = () =>
    reject(new LibsqlError(`The database server did not respond within ${milliseconds} ms`, unreachableCode))
  const timer = setTimeout(tooLate, milliseconds)
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
