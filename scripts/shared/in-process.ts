// Runs an admin operation in this process, which owns the database for as long as that takes.
import type { OnProgress } from '../../db/slices.ts'
import { isInitialized } from '../../src/admin/context.ts'
import { createOperationRunner } from '../../src/admin/operation.ts'
import { type OperationName, operations } from '../../src/admin/operations.ts'
import type { LocalUser } from '../../src/admin/transport/local-user.ts'
import { storageFault } from '../../src/admin/transport/storage-fault.ts'
import type { Config } from '../../src/config.ts'
import { closeContext, type Dependencies, notInitialized, openContext, retryWhileOwned } from '../../src/context.ts'

/** An operation, and who asks for it. */
export type Call = { name: OperationName; input: unknown; user: LocalUser; onProgress?: OnProgress | undefined }

/**
 * While another process owns the file, `ask` is tried again as well: it may be a server that has started meanwhile.
 * @throws Fault as the operation does; `conflict` when the database stays owned by another process
 */
export async function runInProcess(
  config: Config,
  dependencies: Dependencies,
  call: Call,
  ask: () => Promise<{ result: unknown } | undefined>,
): Promise<unknown> {
  return retryWhileOwned(async () => {
    const answered = await ask()
    return answered === undefined ? runOnce(config, dependencies, call) : answered.result
  })
}

async function runOnce(config: Config, dependencies: Dependencies, call: Call): Promise<unknown> {
  const { name, input, user, onProgress } = call
  const context = await openContext(config, dependencies, { create: name === 'init' })
  try {
    if (name !== 'init' && !isInitialized(context)) throw notInitialized(config)
    return await createOperationRunner(operations, context)(name, input, { kind: 'local', ...user }, onProgress)
  } catch (error) {
    throw storageFault(error, config.databasePath) ?? error
  } finally {
    await closeContext(context)
  }
}
