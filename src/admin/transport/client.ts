// Runs an admin operation in a running server, over its local socket.
import type { IncomingMessage } from 'node:http'
import type { OnProgress } from '../../../db/read/slices.ts'
import { Fault, type FaultCode } from '../../fault.ts'
import { operationMillisecondsMax } from '../../limits.ts'
import { describeDenial } from '../../runtime/file-access.ts'
import { findObstacle } from '../../runtime/local-socket.ts'
import { type LocalCaller, toHeaders } from './local-user.ts'
import { createLineReader, progressMediaType } from './progress.ts'

/**
 * Whether a server listens there.
 * @throws Fault `conflict` where this user may not connect
 */
export async function isServed(socketPath: string | undefined): Promise<boolean> {
  if (socketPath === undefined) return false
  const obstacle = await findObstacle(socketPath)
  if (obstacle === undefined) return true
  if (isAbsence(obstacle)) return false
  throw explain(obstacle, socketPath)
}

type CallOptions = { user?: LocalCaller; onProgress?: OnProgress | undefined }

/** Undefined when no server listens there. */
export async function askServer(
  socketPath: string | undefined,
  name: string,
  input: unknown,
  { user, onProgress }: CallOptions = {},
): Promise<{ result: unknown } | undefined> {
  if (socketPath === undefined) return undefined
  const headers = { accept: progressMediaType, ...(user && toHeaders(user)) }
  const answered = await post(socketPath, `/operations/${name}`, JSON.stringify(input), { headers, onProgress })
  if (answered === undefined) return undefined
  const { error } = (answered.result ?? {}) as { error?: { code: FaultCode; message: string; reason?: string } }
  const { code, message, reason } = error ?? {}
  if (code !== undefined && message !== undefined) throw new Fault(code, message, { reason })
  return answered
}

type PostOptions = { headers?: Record<string, string>; onProgress?: OnProgress | undefined }

async function post(
  socketPath: string,
  path: string,
  body: string,
  { headers: more, onProgress }: PostOptions = {},
): Promise<{ result: unknown } | undefined> {
  const { request } = await import('node:http')
  return new Promise((resolve, reject) => {
    const headers = { ...more, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const call = request({ socketPath, method: 'POST', path, headers }, (response) => {
      const fail = (cause: Error) => reject(lostServer(cause))
      readResponse(response, onProgress ?? (() => {})).then((result) => resolve({ result }), fail)
    })
    call.on('error', (cause: NodeJS.ErrnoException) => {
      if (isAbsence(cause)) resolve(undefined)
      else reject(explain(cause, socketPath))
    })
    call.setTimeout(operationMillisecondsMax, () => call.destroy(new Error('It did not answer in time')))
    call.end(body)
  })
}

/** @throws if the connection closes before the end */
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

const codesOfAbsence = ['ENOENT', 'ECONNREFUSED', 'ENOTSOCK', 'ENAMETOOLONG', 'EINVAL', 'FailedToOpenSocket']

function isAbsence({ code }: NodeJS.ErrnoException): boolean {
  return codesOfAbsence.includes(code ?? '')
}

function explain(cause: NodeJS.ErrnoException, socketPath: string): Fault {
  return cause.code === 'EACCES' || cause.code === 'EPERM' ? notOurs(socketPath, cause) : lostServer(cause)
}

function notOurs(socketPath: string, cause: Error): Fault {
  const why =
    describeDenial(socketPath, { toWrite: true, ownsFolder: true }) ??
    `this user may not open ${JSON.stringify(socketPath)}; run it as the user who owns the folder`
  return new Fault('conflict', `The data folder cannot be used: ${why}`, { cause })
}

function lostServer(cause: Error): Fault {
  return new Fault(
    'unavailable',
    'The server closed the connection during the operation; check whether the change was made before you try again',
    { cause },
  )
}
