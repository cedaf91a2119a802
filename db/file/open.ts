// Opens a database file as its only holder and migrates its schema, or a database on a server (server-database.ts). All
// SQLite-specific workarounds are in this file.
import { existsSync, realpathSync } from 'node:fs'
import type { Client, InStatement, ResultSet } from '@libsql/core/api'
import type { LibSQLDatabase } from 'drizzle-orm/libsql'
import { drizzle } from 'drizzle-orm/libsql/sqlite3'
import type { Patience } from '../remote/commit-once.ts'
import type { SharedDatabase } from '../remote/shared-database.ts'
import { isUnfinishedCopy, latestSchema, migrate, newerSchema, readVersion, unfinishedCopy } from '../schema/migrate.ts'
import type { BoundStatement } from '../write/rows.ts'
import { charactersIn, createCheckpoints } from './checkpoints.ts'
import { busyMilliseconds, type ConnectedClient, connect, letGo } from './connection.ts'
import { heldRefusal, type OpenRefusal, refusalOf, writeObstacle } from './file-errors.ts'
import { createReader, type Reader } from './reader.ts'

export type Orm = LibSQLDatabase

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
  /** Commits all statements or none, in order, without rows: a file at once, or after other work. Only write.ts calls it. */
  commit: (statements: readonly BoundStatement[], patience?: Patience) => Promise<void> | undefined
  /**
   * The same for many statements, each of which is short: other work of the event loop comes in between, but nothing else on this
   * connection.
   */
  commitInSlices: (statements: readonly BoundStatement[]) => Promise<void>
  /**
   * Queries that may take long. The second connection of a file answers them in its own thread, so that nothing else waits for them; a
   * small file is read at once. A read has every commit that was acknowledged before it was asked for.
   */
  reader: Orm
  /** How long the read of the second connection that runs has taken, in milliseconds; 0 between reads. */
  readingMilliseconds: () => number
  /**
   * Moves the write-ahead log into the main file, unless checkpoints are held. While commits go on (`isBusy`), another thread does it.
   */
  checkpoint: (isBusy: boolean) => Promise<void>
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

export type OpenOptions = {
  path: string
  /** Whether to create a missing file. */
  create: boolean
  /** Commits survive a power loss with `full`, and a killed process with `normal`. */
  synchronous: 'normal' | 'full'
  /** Called when the thread of the second connection has ended unasked. */
  onReaderEnded?: ((reason: string) => void) | undefined
}

/** Room for what is committed between two checkpoints. */
const logBytes = 32 * 1024 * 1024

/** A file with fewer pages (1 MiB) is read in less time than a slice of work may take. */
const readerPagesMin = 256

/**
 * A longer change begins with the start of the second connection, whose thread then runs the checkpoints: that of a commit of 30 MB would hold the
 * event loop for 100 ms.
 */
const changeCharactersMax = 4 * 1024 * 1024

/** The files that this process has open: the lock keeps out other processes only. */
const openPaths = new Set<string>()

/**
 * Opens the file with an exclusive lock that lasts as long as this process, so SQLITE_BUSY cannot occur afterward
 * (db/README.md explains why). Then runs the missing migrations. Refuses a file that a newer program has migrated.
 */
export async function openDatabase(options: OpenOptions): Promise<Database | OpenRefusal> {
  if (!options.create && !existsSync(options.path)) {
    return { refused: 'missing', message: `There is no database at ${JSON.stringify(options.path)}` }
  }
  if (existsSync(options.path) && openPaths.has(realpathSync(options.path))) return heldRefusal(options.path)
  let client: ConnectedClient | undefined
  try {
    client = connect(options.path)
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
    return await toDatabase(client, options, found > 0 && found < latestSchema ? found : undefined)
  } catch (error) {
    client?.close()
    client = undefined
    letGo()
    return refusalOf(error, options.path)
  }
}

/** Each statement takes a start as long as several settings, so all are set in one, and read back in another. */
async function setPragmas(client: Client, { synchronous }: OpenOptions): Promise<void> {
  await client.executeMultiple(
    [
      // Has an effect only before the first table exists.
      'pragma auto_vacuum = incremental',
      'pragma journal_mode = wal',
      `pragma synchronous = ${synchronous}`,
      'pragma foreign_keys = on',
      // Makes `insert or replace` run the triggers that protect audit and usage.
      'pragma recursive_triggers = on',
      // Only now: a file that another process owns is refused at once. The connections of this process wait for each other, for microseconds.
      `pragma busy_timeout = ${busyMilliseconds}`,
      // A log that grew while checkpoints were held is cut when it starts from the beginning.
      `pragma journal_size_limit = ${logBytes}`,
    ].join('; '),
  )
  const expected = {
    journal_mode: 'wal',
    synchronous: synchronous === 'full' ? 2 : 1,
    foreign_keys: 1,
    recursive_triggers: 1,
    journal_size_limit: logBytes,
  }
  const names = Object.keys(expected)
  const { rows } = await client.execute(
    `select ${names.join(', ')} from ${names.map((name) => `pragma_${name}`).join(', ')}`,
  )
  for (const [name, value] of Object.entries(expected))
    if (rows[0]?.[name] !== value)
      throw new Error(`pragma ${name} is ${String(rows[0]?.[name])} where ${value} was asked`)
}

async function toDatabase(
  client: ConnectedClient,
  { path: given, onReaderEnded = () => {} }: OpenOptions,
  migratedFrom: number | undefined,
): Promise<Database> {
  const path = realpathSync(given)
  const reader: Reader = createReader(path, {
    onStart: () => checkpoints.byCommits(false),
    onEnded: (reason, isHopeless) => {
      if (isHopeless) void checkpoints.byCommits(true)
      onReaderEnded(reason)
    },
  })
  const checkpoints = createCheckpoints(client, reader)
  await checkpoints.byCommits(true)
  openPaths.add(path)
  return {
    kind: 'file',
    client,
    orm: createOrm(client),
    path,
    shared: undefined,
    migratedFrom,
    commit: client.commit,
    commitInSlices: async (statements) => {
      if (charactersIn(statements) > changeCharactersMax) await reader.read('select 1')
      return client.commitInSlices(statements)
    },
    reader: createOrm({ execute: (statement) => readBeside(client, reader, statement) }),
    readingMilliseconds: () => {
      const since = reader.readingSince()
      return since === undefined ? 0 : performance.now() - since
    },
    checkpoint: checkpoints.run,
    holdCheckpoints: checkpoints.hold,
    giveBackPages: (pages) => client.withoutCommits(() => giveBackPages(client, pages)),
    close: async () => {
      openPaths.delete(path)
      try {
        if (await reader.close()) await client.execute('pragma wal_checkpoint(truncate)')
      } catch (error) {
        // The log holds every commit, and the next process that opens the file recovers it.
        if (writeObstacle(error) === undefined) throw error
      } finally {
        client.close()
      }
    },
  }
}

async function readBeside(client: Client, reader: Reader, statement: InStatement): Promise<ResultSet> {
  // As a select: a pragma would empty the cache of statements.
  const isLarge = async () =>
    Number((await client.execute('select page_count from pragma_page_count')).rows[0]?.[0]) >= readerPagesMin
  const found = reader.isOpen() || (await isLarge()) ? await reader.read(statement) : undefined
  return found ?? client.execute(statement)
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

/**
 * Typed queries over a connection, which drizzle reads through `execute` alone. With a `schema`, it would look at every column of every table
 * at each start, and only its relational queries need that.
 */
export function createOrm(client: { execute: (statement: InStatement) => Promise<ResultSet> }): Orm {
  return drizzle(client as Client)
}

/** Reports whether the file holds only another program's tables. It reads the file but never changes it. */
export async function isForeign(client: Client): Promise<boolean> {
  const { rows } = await client.execute(
    "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'",
  )
  return rows.length > 0 && !rows.some(({ name }) => name === 'schema_migrations')
}
