// The worker thread with the second connection to a database file. It answers one message after the other: slow reads, and, while it
// lives, every checkpoint. db/README.md says what keeps checkpoints from losing rows.
import { parentPort, workerData } from 'node:worker_threads'
import { type InStatement, LibsqlError } from '@libsql/core/api'
import { busyMilliseconds, type ConnectedClient, connect, letGo } from './connection.ts'

/**
 * What the owner asks for. The answers come in the same order. While it asks for a checkpoint alone (`checkpoint-alone`), it commits
 * nothing until the answer.
 */
export type ReaderRequest = { read: InStatement } | 'checkpoint' | 'checkpoint-alone' | 'close'

/** Pages in the log. `copied` of them are in the main file. */
export type CheckpointResult = { pages: number; copied: number }

export type ReaderResponse =
  | { columns: string[]; rows: unknown[][] }
  | { checkpointed: CheckpointResult | undefined }
  | { error: { message: string; code: string; extendedCode?: string | undefined; rawCode?: number | undefined } }
  | 'closed'

async function open(path: string) {
  const client = connect(path)
  await client.execute('pragma query_only = on')
  await client.execute('pragma wal_autocheckpoint = 0')
  await client.execute(`pragma busy_timeout = ${busyMilliseconds}`)
  return { client, checkpoint: await createCheckpoint(client) }
}

/**
 * Runs a checkpoint only if the owner has committed to the log since the last one ended, or commits nothing meanwhile (`isAlone`). One that
 * begins when everything is copied already, while a commit starts the log over, loses rows (the WAL-reset bug, sqlite.org/wal.html).
 */
async function createCheckpoint(
  client: ConnectedClient,
): Promise<(isAlone: boolean) => Promise<CheckpointResult | undefined>> {
  // It differs from an earlier value exactly if the log has changed in between.
  const readVersion = async () => Number((await client.execute('pragma data_version')).rows[0]?.[0])
  let copiedVersion = await readVersion()
  return async (isAlone) => {
    if (!isAlone && (await readVersion()) === copiedVersion) return undefined
    const { rows } = await client.execute('pragma wal_checkpoint(passive)')
    copiedVersion = await readVersion()
    return { pages: Number(rows[0]?.[1]), copied: Number(rows[0]?.[2]) }
  }
}

async function answer(
  { client, checkpoint }: Awaited<ReturnType<typeof open>>,
  asked: ReaderRequest,
): Promise<ReaderResponse> {
  if (asked === 'checkpoint' || asked === 'checkpoint-alone')
    return { checkpointed: await checkpoint(asked === 'checkpoint-alone') }
  if (asked === 'close') {
    client.close()
    return 'closed'
  }
  const { columns, rows } = await client.execute(asked.read)
  // Only the values of a row by number survive the way between threads when two columns have one name.
  return { columns, rows: rows.map((row) => Array.from(row)) }
}

function toError(error: unknown): ReaderResponse {
  // A statement that failed keeps its snapshot until it is collected.
  letGo()
  const { message } = error instanceof Error ? error : new Error(String(error))
  if (!(error instanceof LibsqlError)) return { error: { message, code: 'UNKNOWN' } }
  const { code, extendedCode, rawCode } = error
  return { error: { message: message.slice(`${code}: `.length), code, extendedCode, rawCode } }
}

if (parentPort !== null) {
  const port = parentPort
  const opened = open((workerData as { path: string }).path)
  let last: Promise<unknown> = opened.catch(() => {})
  port.on('message', (asked: ReaderRequest) => {
    last = last.then(async () => {
      port.postMessage(await opened.then((parts) => answer(parts, asked)).catch(toError))
    })
  })
}
