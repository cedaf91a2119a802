// Runs an admin operation where the database is: in the server that owns it, over its socket, or else in this process.
import { type IncomingMessage, request } from 'node:http'
import { describeDenial } from '../../../db/access.ts'
import type { OnProgress } from '../../../db/slices.ts'
import { type Config, socketPathFor } from '../../config.ts'
import type { Dependencies } from '../../context.ts'
import { Fault, type FaultCode } from '../../fault.ts'
import { operationMillisecondsMax } from '../../limits.ts'
import type { OperationName } from '../operations.ts'
import { type LocalUser, readLocalUser, toHeaders } from './local-user.ts'
import { createLineReader, progressMediaType } from './progress.ts'

/**
 * The same answer whether a server runs or not. While another process holds the file without serving its socket (a command, or a
 * server that is starting or stopping) it waits, up to `databaseWaitMillisecondsMax`. Reports tell how far they are.
 * @throws Fault as the operation does; `conflict` when the database stays owned by another process
 */
export async function callOperation(
  config: Config,
  dependencies: Dependencies,
  name: OperationName,
  input: unknown,
  onProgress?: OnProgress,
): Promise<unknown> {
  const user = readLocalUser(process.env)
  const ask = () => askServer(socketPathFor(config), name, input, { user, onProgress })
  const answered = await ask()
  if (answered !== undefined) return answered.result
  // All that an operation needs takes longer to load than a server takes to answer.
  const { runInProcess } = await import('./in-process.ts')
  return runInProcess(config, dependencies, { name, input, user, onProgress }, ask)
}

/**
 * The same for an operation that needs the server stopped.
 * @throws Fault as the operation does; `conflict` while a server runs
 */
export async function callWithoutServer(
  config: Config,
  dependencies: Dependencies,
  name: OperationName,
  input: unknown,
): Promise<unknown> {
  const socketPath = socketPathFor(config)
  const { runInProcess } = await import('./in-process.ts')
  return runInProcess(config, dependencies, { name, input, user: readLocalUser(process.env) }, async () => {
    if (await isServed(socketPath))
      throw new Fault('conflict', 'The server runs on this database. Stop the server first, then run this again')
    return undefined
  })
}

/** Whether a server listens there. */
export async function isServed(socketPath: string): Promise<boolean> {
  return (await post(socketPath, '/', '')) !== undefined
}

type Asking = { user?: LocalUser; onProgress?: OnProgress | undefined }

/** Undefined when no server listens there. */
export async function askServer(
  socketPath: string,
  name: string,
  input: unknown,
  { user, onProgress }: Asking = {},
): Promise<{ result: unknown } | undefined> {
  const headers = { accept: progressMediaType, ...(user && toHeaders(user)) }
  const answered = await post(socketPath, `/operations/${name}`, JSON.stringify(input), { headers, onProgress })
  if (answered === undefined) return undefined
  const { error } = (answered.result ?? {}) as { error?: { code: FaultCode; message: string } }
  if (typeof error === 'object' && error !== null) throw new Fault(error.code, error.message)
  return answered
}

type Posting = { headers?: Record<string, string>; onProgress?: OnProgress | undefined }

function post(
  socketPath: string,
  path: string,
  body: string,
  { headers: more, onProgress }: Posting = {},
): Promise<{ result: unknown } | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { ...more, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const call = request({ socketPath, method: 'POST', path, headers }, (response) => {
      const fail = (cause: Error) => reject(lostServer(cause))
      readResponse(response, onProgress ?? (() => {})).then((result) => resolve({ result }), fail)
    })
    call.on('error', (cause: NodeJS.ErrnoException) => {
      const isAbsent = ['ENOENT', 'ECONNREFUSED', 'ENOTSOCK', 'ENAMETOOLONG', 'EINVAL', 'FailedToOpenSocket'].includes(
        cause.code ?? '',
      )
      if (isAbsent) resolve(undefined)
      else if (cause.code === 'EACCES' || cause.code === 'EPERM') reject(notOurs(socketPath, cause))
      else reject(lostServer(cause))
    })
    call.setTimeout(operationMillisecondsMax, () => call.destroy(new Error('It did not answer in time')))
    call.end(body)
  })
}

/** @throws when it breaks off */
async function readResponse(response: IncomingMessage, onProgress: OnProgress): Promise<unknown> {
  const lines = createLineReader(onProgress)
  const isLines = response.headers['content-type'] === progressMediaType
  const pieces: Buffer[] = []
  for await (const piece of response as AsyncIterable<Buffer>) {
    if (isLines) lines.take(piece)
    else pieces.push(piece)
  }
  const result = isLines ? lines.answer() : (JSON.parse(Buffer.concat(pieces).toString()) as unknown)
  if (result === undefined) throw new Error('It broke off')
  return result
}

function notOurs(socketPath: string, cause: Error): Fault {
  const why =
    describeDenial(socketPath, { toWrite: true }) ??
    `this user may not open ${JSON.stringify(socketPath)}; run it as the user who owns the folder`
  return new Fault('conflict', `The data folder cannot be used: ${why}`, { cause })
}

function lostServer(cause: Error): Fault {
  return new Fault(
    'unavailable',
    'The server went away during the operation; see whether the change is in force before trying again',
    { cause },
  )
}
