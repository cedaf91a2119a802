// The logins of this user on this machine: one file for each server and policy, in a folder that only the user can read. A file holds the
// refresh token and the newest ID token. It knows no protocol.
import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { Fault } from '../fault.ts'
import type { Environment } from './identity.ts'
import { replaceFile } from './token-file.ts'
import { openOwnFolder, tokenPath } from './token-folder.ts'
import { parseObject } from './unverified-claims.ts'

/** Times are in milliseconds since 1970, by the clock of this machine. */
export type Login = {
  /** The base URL of the server, and the policy that exchanges the ID token. */
  url: string
  policy: string
  issuer: string
  clientId: string
  /** For issuers that give a secret to programs too. */
  clientSecret?: string
  /** Who signed in, as the issuer names the person; for display. */
  name: string
  subject: string
  idToken: string
  issuedAt: number
  expiresAt: number
  /** Absent where the issuer gives none: the login then ends with the ID token. */
  refreshToken?: string
  signedInAt: number
}

const fileBytesMax = 64 * 1024
const texts = ['url', 'policy', 'issuer', 'clientId', 'name', 'subject', 'idToken'] as const
const times = ['issuedAt', 'expiresAt', 'signedInAt'] as const

/** `latchkey` in $XDG_STATE_HOME, by default in ~/.local/state. */
function folderOf({ XDG_STATE_HOME: state = '', HOME: home = '' }: Environment): string {
  return join(state === '' ? join(home === '' ? homedir() : home, '.local', 'state') : state, 'latchkey')
}

/** Where the login for a server and policy is kept. The name says nothing. Its lock is beside it, with `.lock`. */
export function loginPath(environment: Environment, { url, policy }: Pick<Login, 'url' | 'policy'>): string {
  return `${tokenPath(folderOf(environment), [url, policy])}.json`
}

/** The logins of this user, the newest first. Files that are damaged, of others or open to others are left out. */
export function listLogins(environment: Environment): Login[] {
  const folder = folderOf(environment)
  const names = readNames(folder).filter((name) => name.endsWith('.json'))
  const found = names.flatMap((name) => readFile(join(folder, name)) ?? [])
  return found.toSorted((one, other) => other.signedInAt - one.signedInAt)
}

/** The login in a file, or undefined. Throws a fault for a file that others could have written or read. */
export function readLogin(path: string): Login | undefined {
  const text = readOwn(path)
  return text === undefined ? undefined : parseLogin(text)
}

/** Keeps the login; only this user can read it. */
export async function writeLogin(environment: Environment, login: Login): Promise<void> {
  const path = loginPath(environment, login)
  await openLoginFolder(environment)
  await replaceFile(path, JSON.stringify(login))
}

/** Creates the folder with those above it. Throws a fault if others can write to it or read it. */
export async function openLoginFolder(environment: Environment): Promise<void> {
  const folder = folderOf(environment)
  await mkdir(dirname(folder), { recursive: true, mode: 0o700 }).catch(({ code }: NodeJS.ErrnoException) => {
    throw new Fault('unavailable', `The folder ${dirname(folder)} for logins could not be created: ${code}`, {
      hint: ': set XDG_STATE_HOME to a folder that belongs to you',
    })
  })
  await openOwnFolder(folder)
}

export async function removeLogin(environment: Environment, login: Pick<Login, 'url' | 'policy'>): Promise<void> {
  await rm(loginPath(environment, login), { force: true })
}

function readNames(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function readFile(path: string): Login | undefined {
  try {
    return readLogin(path)
  } catch {
    return undefined
  }
}

function readOwn(path: string): string | undefined {
  let file: number
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw new Fault('unavailable', `The login in ${path} cannot be read: ${code}`, {
      hint: ': remove the file, and run latchkey login again',
    })
  }
  try {
    const found = fstatSync(file)
    if (!found.isFile() || found.uid !== (process.getuid?.() ?? 0) || (found.mode & 0o077) !== 0)
      throw new Fault('unavailable', `The login in ${path} belongs to another user, or is open to other users`, {
        hint: ': remove the file, and run latchkey login again',
      })
    return found.size > fileBytesMax ? undefined : readFileSync(file, 'utf8')
  } finally {
    closeSync(file)
  }
}

function parseLogin(text: string): Login | undefined {
  const members = parseObject(text)
  const isWhole =
    texts.every((name) => typeof members[name] === 'string') && times.every((name) => Number.isFinite(members[name]))
  return isWhole ? (members as Login) : undefined
}
