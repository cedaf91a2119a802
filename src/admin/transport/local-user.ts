// The operating system's user who runs a command, for the record of a change. Over the socket it is only a claim: anyone who can open the
// socket can claim any name. (Bun does not reveal the user at the other end of a local socket.)

import { Fault } from '../../fault.ts'
import { forceHeader, isForced } from '../../http/force.ts'
import { userName } from '../../runtime/user-name.ts'

export type LocalUser = { osUser: string | null; sudoUser: string | null }
/** A user, and whether the user also changes what a configuration document locks. */
export type LocalCaller = LocalUser & { force?: boolean }

const headers = { osUser: 'x-latchkey-os-user', sudoUser: 'x-latchkey-sudo-user' } as const
const nameCharactersMax = 256

/** The user of this process, and the user who ran sudo. */
export function readLocalUser(environment: Partial<Record<string, string>>): LocalUser {
  const uid = process.getuid?.()
  return { osUser: uid === undefined ? null : userName(uid), sudoUser: environment.SUDO_USER || null }
}

export function toHeaders(user: LocalCaller): Record<string, string> {
  const given = Object.entries(headers).map(([field, name]) => [name, user[field as keyof LocalUser]] as const)
  return Object.fromEntries([
    ...(user.force === true ? [[forceHeader, 'true']] : []),
    ...given.flatMap(([name, value]) => (value === null ? [] : [[name, encodeURIComponent(value)]])),
  ])
}

/** @throws Fault `invalid` if a header is not a name */
export function fromHeaders(request: Request): LocalCaller {
  const read = (name: string) => {
    const text = request.headers.get(name)
    return text === null ? null : checkName(name, text)
  }
  return { osUser: read(headers.osUser), sudoUser: read(headers.sudoUser), force: isForced(request) }
}

function checkName(header: string, text: string): string {
  let name = ''
  try {
    name = decodeURIComponent(text)
  } catch {}
  if (name !== '' && [...name].length <= nameCharactersMax && !/\p{C}/u.test(name)) return name
  throw new Fault('invalid', `${header} must be a name of 1 to ${nameCharactersMax} characters, percent-encoded`)
}
