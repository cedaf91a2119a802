// Runs operations. They are loaded when one is asked for, since exchange and inference use none of them.

import { createPace, nextSlice } from '../../db/read/pace.ts'
import type { OnProgress } from '../../db/read/slices.ts'
import type { Actor } from '../../db/tables/admin-changes.ts'
import { loadTypes, prepareType } from '../values/deferred-type.ts'
import { createOperationRunner, type RunByName } from './operation/operation.ts'
import type { OperationInput, OperationName, OperationResponse, OperationsContext, RunOperation } from './operations.ts'

/** Runs all operations of one database (see `createOperationRunner`). */
export function createRunner(context: OperationsContext): RunByName {
  let loading: Promise<RunByName> | undefined
  return async (...asked) => {
    loading ??= loadOperations(context)
    const run = await loading
    return run(...asked)
  }
}

/** Other work comes between the parts, each of which holds the event loop. */
async function loadOperations(context: OperationsContext): Promise<RunByName> {
  const { operations } = await import('./operations.ts')
  await nextSlice()
  await loadTypes(nextSlice)
  const run = createOperationRunner(operations, context)
  return async (name, ...asked) => {
    if (Object.hasOwn(operations, name)) await prepareType(operations[name as OperationName].input, createPace())
    return run(name, ...asked)
  }
}

/** The same operations with the types of this map. */
export function withTypes(run: RunByName): RunOperation {
  return async <Name extends OperationName>(
    name: Name,
    input: OperationInput<Name>,
    actor?: Actor,
    onProgress?: OnProgress,
  ) => (await run(name, input, actor, onProgress)) as OperationResponse<Name>
}
