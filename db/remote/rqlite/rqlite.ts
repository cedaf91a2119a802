// An rqlite cluster: replicas of a SQLite database, of which a leader commits what more than half of them have. Speaks its
// HTTP API: https://rqlite.io/docs/api/.
import { type Client, type InArgs, type InStatement, LibsqlBatchError, type ResultSet } from '@libsql/core/api'
import type { BoundStatement } from '../../write/rows.ts'
import type { ConnectOptions, ServerClient } from '../server-client.ts'
import {
  asUnreachable,
  isNotReached,
  isUnreachable,
  noLeaderError,
  partlyCommitted,
  unreachableCode,
} from '../server-errors.ts'
import { cleanSaid } from '../server-failure.ts'
import { type Addresses, createAddresses } from './addresses.ts'
import { createDatabaseClock, type DatabaseClock, readClock } from './clock.ts'
import { objectionTo, weaknessesOf } from './objections.ts'
import { createPost, type Post, readCopy, readStatus } from './post.ts'
import { boundOf, determine, encode } from './requests.ts'
import { parseResponse, statementError, toResultSet } from './results.ts'
import { originsOf } from './rqlite-urls.ts'
import { readServers } from './servers.ts'

/** An election takes two or three seconds. */
const patienceMilliseconds = 5_000
/**
 * An address that does not respond is left for another one soon: a stopped leader has a successor after two or three seconds. The last try is
 * for reads that take long.
 */
const readMillisecondsMax = [1_000, 1_000, 3_000]
const commitMillisecondsMax = 2_000
const statusMilliseconds = 2_000
/** How much longer a commit may take for each character: 4 MB take two seconds more. */
const charactersPerMillisecond = 2_000

type Connection = Pick<ConnectOptions, 'token'> & { post: Post; addresses: Addresses; clock: DatabaseClock }

export function connectRqlite({ url, token, send }: ConnectOptions): ServerClient {
  const monotonic = () => performance.now()
  const addresses = createAddresses(originsOf(url) ?? [])
  const post = createPost({ send, token })
  const connection = { post, token, addresses, clock: createDatabaseClock(monotonic) }
  const read = (statement: InStatement, args?: InArgs) => {
    const given = args === undefined ? statement : ([statement, args] as [string, InArgs])
    return readAnywhere(connection, boundOf(given as InStatement))
  }
  const batch: Client['batch'] = (statements) => commit(connection, statements.map(boundOf))
  const client = { execute: read, batch, close: () => {} } as unknown as Client
  const statusOf = (address: string) => readStatus({ send, token }, address, statusMilliseconds)
  return {
    client,
    objection: () => objectionTo(addresses.all, { post, readStatus: statusOf }),
    weaknesses: () => weaknessesOf(addresses.all, { post, readStatus: statusOf }),
    servers: () => readServers(addresses.all, statusOf),
    readCopy: (signal) => readCopy({ send, token }, addresses, signal),
    patienceMilliseconds,
  }
}

/** Never at a weaker level: a leader that lost its followers would respond with what was true before. */
const readPath = '/db/query?level=linearizable&noparse&blob_array'
/**
 * The same by an entry in the log. A linearizable read waits until the database has applied the newest entry, which never happens while that
 * is a change of the members: the next commit ends it, but a node commits nothing before it has read.
 */
const loggedReadPath = '/db/query?level=strong&noparse&blob_array'
const commitPath = '/db/request?transaction&noparse&blob_array'

async function readAnywhere(connection: Connection, statement: BoundStatement): Promise<ResultSet> {
  for (const milliseconds of readMillisecondsMax.slice(0, -1)) {
    try {
      return await readOnce(connection, statement, { path: readPath, milliseconds })
    } catch (error) {
      if (!isUnreachable(error)) throw error
    }
  }
  return readOnce(connection, statement, { path: loggedReadPath, milliseconds: readMillisecondsMax.at(-1) ?? 0 })
}

async function readOnce(
  connection: Connection,
  statement: BoundStatement,
  { path, milliseconds }: Omit<Exchange, 'body'>,
): Promise<ResultSet> {
  const { addresses, clock } = connection
  const address = addresses.current()
  const sentAt = performance.now()
  try {
    const [entry, time] = await results(connection, address, {
      path,
      body: [encode(statement), [readClock]],
      milliseconds,
    })
    if (entry === undefined) throw asUnreachable(new SyntaxError('The response lacks a result'))
    clock.note(time?.values?.[0]?.[0], sentAt, performance.now())
    if (entry.error !== undefined) throw statementError(cleanSaid(entry.error, connection.token))
    return toResultSet(entry)
  } catch (error) {
    if (isUnreachable(error)) addresses.leave(address)
    throw error
  }
}

type Exchange = { path: string; body: unknown; milliseconds: number }

async function results({ post, token }: Connection, address: string, { path, body, milliseconds }: Exchange) {
  const received = await post(address, path, body, milliseconds)
  const responded = await parseResponse(received.body).catch((error: unknown) => {
    throw asUnreachable(error)
  })
  if ('error' in responded) throw noLeaderError(cleanSaid(responded.error, token), { isBegun: true })
  return responded.results
}

/** Tries each address once, as long as nothing was begun. */
async function commit(connection: Connection, statements: BoundStatement[]): Promise<ResultSet[]> {
  const { addresses, clock } = connection
  if (statements.every(({ sql }) => /^\s*select\b/i.test(sql)))
    return Promise.all(statements.map((statement) => readAnywhere(connection, statement)))
  const now = clock.now()
  const encoded = statements.map(({ sql, args }) => encode({ sql: determine(sql, now), args }))
  const body = JSON.stringify([...encoded, [lastStatement]])
  const milliseconds = Math.round(commitMillisecondsMax + body.length / charactersPerMillisecond)
  for (let tries = 1; ; tries++) {
    const address = addresses.current()
    try {
      return toResults(await results(connection, address, { path: commitPath, body, milliseconds }), statements.length)
    } catch (error) {
      if (isUnreachable(error)) addresses.leave(address)
      if (!isNotReached(error) || tries >= addresses.all.length) throw error
    }
  }
}

/** Its result shows that all were tried: the server stops at an error, except at a statement that it does not understand. */
const lastStatement = 'select 1'

/** @throws the error of a statement, after which nothing was committed, or `partlyCommitted` */
function toResults(entries: Awaited<ReturnType<typeof results>>, count: number): ResultSet[] {
  const failed = entries.findIndex(({ error }) => error !== undefined)
  if (failed === -1 && entries.length === count + 1) return entries.slice(0, count).map(toResultSet)
  if (failed === -1) throw asUnreachable(new SyntaxError('The response lacks results'))
  const error = statementError(cleanSaid(entries[failed]?.error ?? '', undefined))
  if (error.code === unreachableCode) throw error
  const isMade = entries.length === count + 1 && entries.slice(0, count).some((entry) => entry.error === undefined)
  throw isMade ? partlyCommitted(error) : new LibsqlBatchError(error.message, failed, error.code)
}
