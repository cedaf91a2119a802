// A libSQL server (sqld): one process, which commits one transaction at a time. Speaks its protocol through its own client.

import { createClient } from '@libsql/client/http'
import { type Client, type InArgs, type InStatement, LibsqlError } from '@libsql/core/api'
import { parseBounded } from '../bounded-response.ts'
import { exchange, statusError } from '../exchange.ts'
import type { ConnectOptions, SendRequest, ServerClient, Weakness } from '../server-client.ts'
import { asUnreachable, isUnreachable } from '../server-errors.ts'
import { cleanError } from '../server-failure.ts'

/** How long one HTTP request may take. A server ends a transaction after about as long. */
const requestMillisecondsMax = 5_000

export function connectLibsql(options: ConnectOptions): ServerClient {
  const client = createLibsqlClient(options)
  return {
    client,
    // It works with any setting that a client can read.
    objection: async () => undefined,
    weaknesses: () => findWeaknesses(client),
    servers: async () => [],
    // A read transaction that is open during a checkpoint blocks all commits.
    readCopy: undefined,
    patienceMilliseconds: 2_000,
  }
}

/** `full`; its name for that is `strong`. */
const synchronousMin = 2

/** The server forgets the mode when it restarts. A server that does not respond is no weakness: it does not work. */
async function findWeaknesses(client: Client): Promise<Weakness[]> {
  const { rows } = await client.execute('pragma synchronous').catch(() => ({ rows: [] }))
  const mode = rows[0]?.[0]
  if (typeof mode !== 'number' || mode >= synchronousMin) return []
  const what =
    'a power loss of its machine can lose the newest commits: set its durability mode to strong, at each of its starts'
  return [{ level: 'warning', what }]
}

function createLibsqlClient({ url, token, send }: ConnectOptions): Client {
  // Without the slash, the client drops the last segment of a path.
  const base = `${url.replace(/\/$/, '')}/`
  const client = createClient({
    url: base,
    fetch: sendWith(send, token),
    ...(token !== undefined && { authToken: token }),
  })
  const execute = client.execute.bind(client)
  const batch = client.batch.bind(client)
  const readOnce = (statement: InStatement, args?: InArgs) =>
    understood(typeof statement === 'string' ? execute(statement, args) : execute(statement), token)
  const writeOnce: Client['batch'] = (statements, mode) => understood(batch(statements, mode), token)
  return Object.assign(client, { execute: readOnce, batch: writeOnce })
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

function sendWith(send: SendRequest, token: string | undefined): typeof fetch {
  const sendOnce = async (request: Request): Promise<Response> => {
    const received = await exchange(send, request, requestMillisecondsMax)
    const { status, headers, body } = received
    if (status >= 300 && request.method === 'POST') throw statusError(received, token)
    return Object.assign(new Response(body, { status, headers }), { json: () => parseBounded(body) })
  }
  return sendOnce as typeof fetch
}
