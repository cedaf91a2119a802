// Opens a database on a server, which any number of nodes share. The server commits one transaction at a time;
// what a connection can lose, commit-once.ts makes certain. kinds.ts knows which servers there are.
import { setTimeout as pause } from 'node:timers/promises'
import type { Client, InArgs, InStatement } from '@libsql/core/api'
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
import { type CommitOptions, createCommits } from './commit-once.ts'
import { connectToServer } from './kinds.ts'
import { expectRevision, readRevision, refreshFrom, toRevision } from './refresh.ts'
import type { ConnectOptions, ServerClient } from './server-client.ts'
import { asUnreachable, isTooLarge, isUnreachable, notReachedCode, unreachableCode } from './server-errors.ts'
import { notConfirmed, serverError, tooSlow } from './server-failure.ts'

export type ServerOptions = ConnectOptions & {
  /** Whether to create the tables in an empty database. */
  create: boolean
  /** Whether to migrate an older schema (default: true). */
  migrates?: boolean | undefined
} & Partial<Omit<CommitOptions, 'send' | 'patienceMilliseconds' | 'onConfirmed'>>

const readPauseMillisecondsMax = 100
/** Another token comes with a restart of this program. */
const unauthorizedStatus = 401
const migrationMillisecondsMax = 60_000

export async function openServerDatabase(options: ServerOptions): Promise<Database | OpenRefusal> {
  const { url, create } = options
  let client: Client | undefined
  try {
    const server = await connectPatiently(options)
    client = server.client
    const objection = await server.objection()
    if (objection !== undefined) return refuse(client, 'unreadable', `The database ${url} cannot be used: ${objection}`)
    if (await isForeign(client)) return refuse(client, 'unreadable', `The database ${url} is another program's`)
    const found = await readSchema(client)
    if (found > latestSchema) return refuse(client, 'newer_schema', newerSchema(found))
    if (found === 0 && !create) return refuse(client, 'missing', `The database ${url} has no tables`)
    if (0 < found && found < latestSchema && options.migrates === false)
      return refuse(client, 'older_schema', olderSchema(url, found))
    await migrate(client, found)
    if (await isUnfinishedCopy(client)) return refuse(client, 'unreadable', `The database ${url} ${unfinishedCopy}`)
    return toDatabase(server, options, found > 0 && found < latestSchema ? found : undefined)
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
    const { client, objection } = await connectPatiently(options)
    const why = await objection()
    if (why !== undefined) return refuse(client, 'unreadable', `The database ${url} cannot be used: ${why}`)
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

/** Reads are tried again while the server does not respond. All writes are batches, so `execute` only reads. */
async function connectPatiently(options: ConnectOptions): Promise<ServerClient> {
  const server = await connectToServer(options)
  const { client, patienceMilliseconds } = server
  const readOnce = client.execute.bind(client)
  const read = (statement: InStatement, args?: InArgs) =>
    typeof statement === 'string' ? readOnce(statement, args) : readOnce(statement)
  Object.assign(client, {
    execute: (statement: InStatement, args?: InArgs) =>
      readUntilReached(patienceMilliseconds, () => read(statement, args)),
  })
  return { ...server, objection: () => readUntilReached(patienceMilliseconds, server.objection) }
}

async function readUntilReached<Read>(patienceMilliseconds: number, read: () => Promise<Read>): Promise<Read> {
  const giveUpAt = performance.now() + patienceMilliseconds
  for (let milliseconds = 10; ; milliseconds = Math.min(2 * milliseconds, readPauseMillisecondsMax)) {
    try {
      return await read()
    } catch (error) {
      const isHopeless = !isUnreachable(error) || error.rawCode === unauthorizedStatus
      if (isHopeless || performance.now() + milliseconds > giveUpAt) throw error
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

function toDatabase(
  { client, readCopy, weaknesses, servers, patienceMilliseconds }: ServerClient,
  options: ServerOptions,
  migratedFrom: number | undefined,
): Database {
  const { url, monotonic = () => performance.now(), onUnknown = () => {}, watch, outcomeMillisecondsMax } = options
  const send = (statements: BoundStatement[]) => client.batch(statements, 'write')
  let confirmed = 0
  const { commit, isOverdue, beginServing, beginEnd, settle } = createCommits({
    send,
    monotonic,
    onUnknown,
    watch,
    outcomeMillisecondsMax,
    patienceMilliseconds,
    onConfirmed: (number) => {
      confirmed = Math.max(confirmed, number)
    },
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
    commitInSlices: async (statements) => void (await commit(statements)),
    shared: {
      commitChange: async (statements, basis) => {
        const results = await commit([expectRevision(basis), ...statements, readRevision])
        const row = results?.at(-1)?.rows[0]
        return row === undefined ? undefined : toRevision(row)
      },
      refresh: async (position) => {
        if (isOverdue()) throw serverError(notConfirmed, unreachableCode)
        const known = { ...position, commit: Math.max(position.commit, confirmed) }
        return within(patienceMilliseconds, refreshFrom(client, known))
      },
      readCopy,
      weaknesses,
      servers,
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
