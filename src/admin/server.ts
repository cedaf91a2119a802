// Admin operations on the running server itself. They need a server: a command that owns the database has nothing to reload.
import { Fault } from '../fault.ts'
import { type } from '../values/shape.ts'
import { type OperationContext, operation } from './operation.ts'

const noInput = type({ '+': 'reject' })

export const serverOperations = {
  'server.reload': operation(noInput, reload),
}

/** @throws Fault `conflict` when the new settings are wrong; the server keeps the ones it has */
async function reload({ reload: run }: OperationContext) {
  if (run === undefined) throw new Fault('conflict', 'No server is running here, so there is nothing to reload')
  try {
    return run()
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    throw new Fault('conflict', `The server keeps its settings: ${error.message}`, { cause: error })
  }
}
