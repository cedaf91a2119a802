// Opens a database file as its only holder and migrates its schema, or a database on a server (server-database.ts). All
// SQLite-specific workarounds are in this file.
import { existsSync, realpathSync } from 'node:fs'
import { type Client, LibsqlError } from '@libsql/client'
import { drizzle, type LibSQLDatabase } from 'drizzle-orm/libsql'
import type { Patience } from '../remote/commit-once.ts'
import type { SharedDatabase } from '../remote/shared-database.ts'
import * as log from '../schema/log-schema.ts'
import { isUnfinishedCopy, latestSchema, migrate, newerSchema, readVersion, unfinishedCopy } from '../schema/migrate.ts'
import * as shared from '../schema/node-schema.ts'
import * as records from '../schema/record-schema.ts'
import * as settings from '../schema/schema.ts'
import type { BoundStatement } from '../write/rows.ts'
import { type ConnectedClient, connect } from './connection.ts'
import { damagedFile, damageOf, writeObstacle } from './file-errors.ts'

const schema = { ...settings, ...records, ...shared, ...log }

export type Orm = LibSQLDatabase<typeof schema>

export type Database = {
  /** A file belongs to this process alone; other nodes write to a server database too. */
  kind: 'file' | 'server'
  client: Client
  orm: Orm
  /** The file itself, where the given path is a link: SQLite keeps its log beside the file. The URL of a server database. */
  path: string
  /** What only a server database has. */
  shared: SharedDatabase | undefined
  /** The schema version that the file had, if this call migrated it; undefined for a new file too. */
  migratedFrom: number | undefined
  /** Commits all statements or none, in order. They return no rows. Only write.ts calls it. */
  commit: (statements: readonly BoundStatement[], patience?: Patience) => Promise<void>
  /** Moves the write-ahead log into the main file, unless checkpoints are held. Call it when the server is idle. */
  checkpoint: () => Promise<void>
  /**
   * Stops checkpoints until the returned function is called, so that another process can copy the main file. The log
   * grows meanwhile. Release before `close`, which runs a checkpoint.
   */
  holdCheckpoints: () => Promise<() => Promise<void>>
  /**
   * Shortens the file by about this many free pages (4 KiB each), in one transaction. Returns the number of pages that are still free. A
   * database that an earlier version created keeps its free pages for new rows: it returns 0.
   */
  giveBackPages: (pages: number) => Promise<number>
  /**
   * Moves the write-ahead log into the main file if the disk has room, then closes the connection. The process keeps
   * its lock on the file until it ends.
   */
  close: () => Promise<void>
}

/**
 * Why a database was not opened: it is missing, another process holds it, a newer program migrated it, only a node may
 * migrate it, or it is damaged or not a database.
 */
export type OpenRefusal = {
  refused: 'missing' | 'held' | 'newer_schema' | 'older_schema' | 'unreadable' | 'unreachable'
  message: string
  cause?: unknown
}

export type OpenOptions = {
  path: string
  /** Whether to create a missing file. */
  create: boolean
  /** Commits survive a power loss with `full`, and a killed process with `normal`. */
  synchronous: 'normal' | 'full'
}

/**
 * Pages in the log that make a commit run a checkpoint (16 MiB). This limits the log even if the server is never idle.
 * The checkpoint holds the event loop for about 20 ms; four times as many pages held it for 80 ms.
 */
const checkpointPages = 4_096
/** Room for what is committed between two checkpoints. */
const logBytes = 32 * 1024 * 1024

/**
 * Opens the file with an exclusive lock that lasts as long as this process, so SQLITE_BUSY cannot occur afterward
 * (db/README.md explains why). Then runs the missing migrations. Refuses a file that a newer program has migrated.
 */
export async function openDatabase(options: OpenOptions): Promise<Database | OpenRefusal> {
  if (!options.create && !existsSync(options.path)) {
    return { refused: 'missing', message: `There is no database at ${JSON.stringify(options.path)}` }
  }
  let client: ConnectedClient | undefined
  try {
    client = connect(options.path)
    await setPragma(client, 'locking_mode', 'exclusive')
    if (await isForeign(client)) {
      client.close()
      letGo()
      const message = `The file ${JSON.stringify(options.path)} is another program's database`
      return { refused: 'unreadable', message }
    }
    await setPragmas(client, options)
    const found = await readVersion(client)
    if (found > latestSchema) return refuse(client, 'newer_schema', newerSchema(found))
    await migrate(client, found)
    if (await isUnfinishedCopy(client))
      return refuse(client, 'unreadable', `The database ${JSON.stringify(options.path)} ${unfinishedCopy}`)
    return toDatabase(client, options.path, found > 0 && found < latestSchema ? found : undefined)
  } catch (error) {
    client?.close()
    client = undefined
    letGo()
    return refusalOf(error, options.path)
  }
}

async function setPragmas(client: Client, { synchronous }: OpenOptions): Promise<void> {
  // Has an effect only before the first table exists.
  await client.execute('pragma auto_vacuum = incremental')
  await setPragma(client, 'journal_mode', 'wal')
  await setPragma(client, 'synchronous', synchronous, synchronous === 'full' ? 2 : 1)
  await setPragma(client, 'foreign_keys', 'on', 1)
  // Makes `insert or replace` run the triggers that protect audit and usage.
  await setPragma(client, 'recursive_triggers', 'on', 1)
  await setPragma(client, 'wal_autocheckpoint', String(checkpointPages), checkpointPages)
  // A log that grew while checkpoints were held is cut when it starts from the beginning.
  await setPragma(client, 'journal_size_limit', String(logBytes), logBytes)
}

function toDatabase(client: ConnectedClient, path: string, migratedFrom: number | undefined): Database {
  let holds = 0
  const runCheckpointsAt = (pages: number) => client.execute(`pragma wal_autocheckpoint = ${pages}`)
  return {
    kind: 'file',
    client,
    orm: createOrm(client),
    path: realpathSync(path),
    shared: undefined,
    migratedFrom,
    commit: client.commit,
    checkpoint: async () => {
      if (holds === 0) await client.execute('pragma wal_checkpoint(passive)')
    },
    holdCheckpoints: async () => {
      holds += 1
      await runCheckpointsAt(0)
      return async () => {
        holds -= 1
        if (holds === 0) await runCheckpointsAt(checkpointPages)
      }
    },
    giveBackPages: (pages) => giveBackPages(client, pages),
    close: async () => {
      try {
        await client.execute('pragma wal_checkpoint(truncate)')
      } catch (error) {
        // The log holds every commit, and the next process that opens the file recovers it.
        if (writeObstacle(error) === undefined) throw error
      } finally {
        client.close()
      }
    },
  }
}

/** Closes a database that is not used. */
export function refuse(client: Client, refused: OpenRefusal['refused'], message: string): OpenRefusal {
  client.close()
  return { refused, message }
}

/**
 * `batch` and `execute` step this pragma only once, and the commit then fails with SQLITE_BUSY, because the statement is still in progress.
 * `executeMultiple` steps it to its end.
 */
async function giveBackPages(client: Client, pages: number): Promise<number> {
  // As a select: a pragma would empty the cache of statements.
  const read = async (pragma: string) => Number((await client.execute(`select * from pragma_${pragma}`)).rows[0]?.[0])
  if ((await read('auto_vacuum')) !== incrementalVacuum) return 0
  // If it fails, the client rolls the transaction back.
  await client.executeMultiple(`begin immediate; pragma incremental_vacuum(${pages}); commit`)
  return read('freelist_count')
}

const incrementalVacuum = 2

/** Typed queries over a connection. */
export function createOrm(client: Client): Orm {
  return drizzle(client, { schema })
}

/**
 * Forces a garbage collection. libSQL finalizes a failed statement only when it is collected; until then, this process
 * would keep a shared lock on a file that it failed to open and block other processes. Deno has no matching call, so there
 * the lock ends with the process.
 */
export function letGo(): void {
  const { Bun: runtime } = globalThis as { Bun?: { gc: (force: boolean) => void } }
  runtime?.gc(true)
}

export function refusalOf(error: unknown, path: string): OpenRefusal {
  if (isBusy(error)) {
    return { refused: 'held', message: `Another process holds the database ${JSON.stringify(path)}`, cause: error }
  }
  const damage = damageOf(error)
  if (damage !== undefined) return { refused: 'unreadable', message: damagedFile(path, damage), cause: error }
  const text = error instanceof Error ? error.message : String(error)
  // 14 is SQLITE_CANTOPEN, without a cause.
  const said = /: 14"?\)?$/.test(text) ? 'the file can be neither opened nor created; check its path' : text
  const why = writeObstacle(error)?.kind === 'full' ? 'the disk that holds it is full; free some space' : said
  return {
    refused: 'unreadable',
    message: `The database ${JSON.stringify(path)} cannot be opened: ${why}`,
    cause: error,
  }
}

/** Reports whether an error is SQLITE_BUSY. After SQLITE_BUSY, libSQL can lose writes that it acknowledges. */
export function isBusy(error: unknown): boolean {
  return error instanceof LibsqlError && /SQLITE_BUSY|database is locked/.test(`${error.code} ${error.message}`)
}

/** Reports whether the file holds only another program's tables. It reads the file but never changes it. */
export async function isForeign(client: Client): Promise<boolean> {
  const { rows } = await client.execute(
    "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'",
  )
  return rows.length > 0 && !rows.some(({ name }) => name === 'schema_migrations')
}

async function setPragma(
  client: Client,
  name: string,
  value: string,
  expected: string | number = value,
): Promise<void> {
  await client.execute(`pragma ${name} = ${value}`)
  const actual = (await client.execute(`pragma ${name}`)).rows[0]?.[0]
  if (actual !== expected) throw new Error(`pragma ${name} is ${String(actual)} where ${String(expected)} was asked`)
}
