// Runs an admin operation in this process, which owns the database for as long as that takes.
import type { Config } from '../config.ts'
import {
  closeContext,
  isInitialized,
  notInitialized,
  openContext,
  retryWhileOwned,
  type Surroundings,
} from '../context.ts'
import { createOperationRunner } from './operation.ts'
import { type OperationName, operations } from './operations.ts'
import { storageFault } from './storage-fault.ts'

/**
 * While another process owns the file, `ask` is tried again as well: it may be a server that has started meanwhile.
 * @throws Fault as the operation does; `conflict` when the database stays owned by another process
 */
export async function runHere(
  config: Config,
  surroundings: Surroundings,
  name: OperationName,
  input: unknown,
  ask: () => Promise<{ result: unknown } | undefined>,
): Promise<unknown> {
  return retryWhileOwned(async () => {
    const answered = await ask()
    return answered === undefined ? runOnce(config, surroundings, name, input) : answered.result
  })
}

async function runOnce(
  config: Config,
  surroundings: Surroundings,
  name: OperationName,
  input: unknown,
): Promise<unknown> {
  const context = await openContext(config, surroundings, { create: name === 'init' })
  try {
    if (name !== 'init' && !isInitialized(context)) throw notInitialized(config)
    return await createOperationRunner(operations, context)(name, input)
  } catch (error) {
    throw storageFault(error, config.databasePath) ?? error
  } finally {
    await closeContext(context)
  }
}
