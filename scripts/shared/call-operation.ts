// Runs an admin operation where the database is: in the server that owns it, over its socket, or in this process.
import type { OnProgress } from '../../db/read/slices.ts'
import type { OperationInput, OperationName, OperationResponse } from '../../src/admin/operations.ts'
import { askServer, isServed } from '../../src/admin/transport/client.ts'
import { readLocalUser } from '../../src/admin/transport/local-user.ts'
import { Fault } from '../../src/fault.ts'
import type { Dependencies } from '../../src/server/context.ts'
import { type Config, socketPathFor } from '../../src/settings/config.ts'

/** The input fields of an operation as the command line provides them. The operation checks their values. */
export type CommandInput<Name extends OperationName> = Partial<Record<FieldOf<Name>, unknown>>
type FieldOf<Name extends OperationName> = Name extends OperationName ? keyof OperationInput<Name> : never

/** `force`: also change what a configuration document locks. Reports call `onProgress`. */
type CallOptions = { onProgress?: OnProgress; force?: boolean }

/**
 * Returns the same response whether or not a server runs. If another process holds the file but does not serve its
 * socket (a command, or a server that is starting or stopping), it waits up to `databaseWaitMillisecondsMax`.
 * @throws Fault of the operation; `conflict` if another process keeps the database
 */
export async function callOperation<Name extends OperationName>(
  config: Config,
  dependencies: Dependencies,
  name: Name,
  fields: CommandInput<Name>,
  { onProgress, force }: CallOptions = {},
): Promise<OperationResponse<Name>> {
  const user = { ...readLocalUser(process.env), ...(force === true ? { force } : {}) }
  const input = asSent(fields)
  const ask = () => askServer(socketPathFor(config), name, input, { user, onProgress })
  const answered = await ask()
  if (answered !== undefined) return answered.result as OperationResponse<Name>
  // Loading everything that an operation needs takes longer than a response from the server.
  const { runInProcess } = await import('./in-process.ts')
  return (await runInProcess(config, dependencies, { name, input, user, onProgress }, ask)) as OperationResponse<Name>
}

/**
 * Runs an operation that requires the server to be stopped.
 * @throws Fault of the operation; `conflict` while a server runs
 */
export async function callWithoutServer<Name extends OperationName>(
  config: Config,
  dependencies: Dependencies,
  name: Name,
  fields: CommandInput<Name>,
): Promise<OperationResponse<Name>> {
  const call = { name, input: asSent(fields), user: readLocalUser(process.env) }
  const socketPath = socketPathFor(config)
  const { runInProcess } = await import('./in-process.ts')
  const refuseServer = async () => {
    if (await isServed(socketPath))
      throw new Fault('conflict', 'The server runs on this database. Stop the server first, then run this again')
    return undefined
  }
  return (await runInProcess(config, dependencies, call, refuseServer)) as OperationResponse<Name>
}

/** The input as a server gets it over its socket, so that both refuse and accept the same: without what is undefined, at any depth. */
function asSent(fields: object): unknown {
  return JSON.parse(JSON.stringify(fields))
}
