// Runs an admin operation where the database is: in the server that owns it, over its socket, or else in this process.
import { request } from 'node:http'
import { type Config, socketPathFor } from '../config.ts'
import {
  closeContext,
  isInitialized,
  notInitialized,
  openContext,
  retryWhileOwned,
  type Surroundings,
} from '../context.ts'
import { Fault, type FaultCode } from '../fault.ts'
import { operationMillisecondsMax } from '../limits.ts'
import { type } from '../shape.ts'
import { createOperationRunner } from './operation.ts'
import { type OperationName, operations } from './operations.ts'

const answerShape = type({ 'error?': { code: 'string', message: 'string' } })

/**
 * The same answer whether a server runs or not. While another process holds the file without serving its socket (a command, or a
 * server that is starting or stopping) it waits, up to `databaseWaitMillisecondsMax`.
 * @throws Fault as the operation does; `conflict` when the database stays owned by another process
 */
export async function callOperation(
  config: Config,
  surroundings: Surroundings,
  name: OperationName,
  input: unknown,
): Promise<unknown> {
  return retryWhileOwned(async () => {
    const answered = await askServer(socketPathFor(config), name, input)
    return answered === undefined ? runHere(config, surroundings, name, input) : answered.result
  })
}

async function runHere(
  config: Config,
  surroundings: Surroundings,
  name: OperationName,
  input: unknown,
): Promise<unknown> {
  const context = await openContext(config, surroundings, { create: name === 'init' })
  try {
    if (name !== 'init' && !isInitialized(context)) throw notInitialized(config)
    return await createOperationRunner(operations, context)(name, input)
  } finally {
    await closeContext(context)
  }
}

/** Whether a server listens there. */
export async function isServed(socketPath: string): Promise<boolean> {
  return (await post(socketPath, '/', '')) !== undefined
}

/** Undefined when no server listens there. */
export async function askServer(
  socketPath: string,
  name: string,
  input: unknown,
): Promise<{ result: unknown } | undefined> {
  const text = await post(socketPath, `/operations/${name}`, JSON.stringify(input))
  if (text === undefined) return undefined
  const result: unknown = JSON.parse(text)
  const answer = answerShape(result)
  if (!(answer instanceof type.errors) && answer.error !== undefined)
    throw new Fault(answer.error.code as FaultCode, answer.error.message)
  return { result }
}

function post(socketPath: string, path: string, body: string): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const call = request({ socketPath, method: 'POST', path, headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve(Buffer.concat(chunks).toString()))
      response.on('error', (cause) => reject(lostServer(cause)))
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

function notOurs(socketPath: string, cause: Error): Fault {
  return new Fault(
    'conflict',
    `The folder of ${JSON.stringify(socketPath)}, or a server's socket there, is not open to this user; run it as the user who owns the folder`,
    { cause },
  )
}

function lostServer(cause: Error): Fault {
  return new Fault(
    'unavailable',
    'The server went away during the operation; see whether the change is in force before trying again',
    { cause },
  )
}
