// The header `x-session-id`, which counts where the body has no `session_id` (reference: Preset parameters).
import { Fault } from '../fault.ts'
import { sessionIdCharactersMax } from '../limits.ts'
import { isLonger } from '../values/characters.ts'

/** @throws Fault `invalid` when the header counts and is longer than a session id may be */
export function rejectLongSessionHeader({ headers }: Request, inBody: unknown): void {
  const id = headers.get('x-session-id')
  if (id === null || typeof inBody === 'string' || !isLonger(id, sessionIdCharactersMax)) return
  throw new Fault('invalid', `x-session-id must have at most ${sessionIdCharactersMax} characters`, {
    reason: 'session_too_long',
  })
}
