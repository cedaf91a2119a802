// Runs an admin operation where the database is: in the server that owns it, over its socket, or else in this process.
import type { OnProgress } from '../../db/slices.ts'
import type { OperationName } from '../../src/admin/operations.ts'
import { askServer, isServed } from '../../src/admin/transport/client.ts'
import { readLocalUser } from '../../src/admin/transport/local-user.ts'
import { type Config, socketPathFor } from '../../src/config.ts'
import type { Dependencies } from '../../src/context.ts'
import { Fault } from '../../src/fault.ts'

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
