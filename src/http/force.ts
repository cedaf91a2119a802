// The header with which a caller also changes what a configuration document locks.
import { Fault } from '../fault.ts'

export const forceHeader = 'x-latchkey-force'

/** @throws Fault `invalid` for a value other than true or false */
export function isForced(request: Request): boolean {
  const text = request.headers.get(forceHeader) ?? 'false'
  if (text === 'true' || text === 'false') return text === 'true'
  throw new Fault('invalid', `${JSON.stringify(text)} is not a valid value for ${forceHeader}: use true or false`)
}
