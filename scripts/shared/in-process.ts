// Runs an admin operation in this process, which holds the database meanwhile.

import type { OnProgress } from '../../db/read/slices.ts'
import { isUnknownOutcome } from '../../db/remote/server-errors.ts'
import { isInitialized, notInitialized } from '../../src/admin/operation/context.ts'
import { createOperationRunner } from '../../src/admin/operation/operation.ts'
import { type OperationName, operations } from '../../src/admin/operations.ts'
import type { LocalCaller } from '../../src/admin/transport/local-user.ts'
import { storageFault } from '../../src/admin/transport/storage-fault.ts'
import { changeOutcomeUnknown, explainUnreachable } from '../../src/nodes/database-unreachable.ts'
import { closeContext, type Dependencies, openContext } from '../../src/server/context.ts'
import { retryWhileHeld } from '../../src/server/retry-while-held.ts'
import type { Config } from '../../src/settings/config.ts'
import { watchedCommits } from './watched-commits.ts'

/** An operation and its caller. */
export type Call = { name: OperationName; input: unknown; user: LocalCaller; onProgress?: OnProgress | undefined }

/**
 * Runs the operation once the database is free. While another process holds the file, it also retries `ask`, because a
 * server may have started meanwhile.
 * @throws Fault of the operation; `conflict` if another process keeps the database
 */
export async function runInProcess(
  config: Config,
  dependencies: Dependencies,
  call: Call,
  ask: () => Promise<{ result: unknown } | undefined>,
): Promise<unknown> {
  return retryWhileHeld(async () => {
    const answered = await ask()
    return answered === undefined ? runOnce(config, dependencies, call) : answered.result
  })
}

async function runOnce(config: Config, dependencies: Dependencies, call: Call): Promise<unknown> {
  const { name, input, user, onProgress } = call
  const context = await openContext(config, dependencies, {
    create: name === 'init',
    rules: { ...watchedCommits, migrates: name === 'init' },
  })
  try {
    if (name !== 'init' && !isInitialized(context)) throw notInitialized(config)
    return await createOperationRunner(operations, context)(name, input, { kind: 'local', ...user }, onProgress)
  } catch (error) {
    throw storageFault(error, config.databasePath) ?? explainServer(error)
  } finally {
    await closeContext(context)
  }
}

function explainServer(error: unknown): unknown {
  return isUnknownOutcome(error)
    ? changeOutcomeUnknown('The database server did not respond for two minutes', error)
    : explainUnreachable(error)
}
