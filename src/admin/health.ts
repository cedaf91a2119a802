// The admin operation behind `latchkey health`: the health of the server that runs it.
import { Fault } from '../fault.ts'
import { type } from '../values/shape.ts'
import type { Needs } from './operation/context.ts'
import { operation } from './operation/operation.ts'

const showInput = type({ '+': 'reject' })

export const healthOperations = {
  'health.show': operation(showInput, ({ readiness }: Needs<'readiness'>) => {
    if (readiness === undefined) throw new Fault('unavailable', 'No server runs on this database')
    return readiness.check()
  }),
}
