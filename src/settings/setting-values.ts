// Parses the text of settings. Each error names the setting, quotes the text and says what to use instead.
import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serverUrlProblem } from '../../db/remote/kinds.ts'
import { Fault } from '../fault.ts'
import { socketPathBytesMax, urlCharactersMax } from '../limits.ts'
import { alternatives } from '../values/alternatives.ts'
import { durationForms, type PlainUnit, readDuration, readWhole } from '../values/duration-text.ts'
import { type AddressList, addressList, parseAddressList } from '../values/ip-address.ts'
import type { SettingName } from './settings.ts'

export type ListenAddress = { hostname: string; port: number }

/** `"1" is not a valid value for LATCHKEY_INSECURE_ISSUERS: use true or false`. */
function invalidSetting(name: SettingName, text: string, rule: string): Fault {
  return new Fault('configuration', `${JSON.stringify(text)} is not a valid value for ${name}: ${rule}`)
}

/** The same without the text, for one that may hold a credential. */
function invalidSecret(name: SettingName, rule: string): Fault {
  return new Fault('configuration', `The value of ${name} is not valid: ${rule}`)
}

export function parseChoice<const T extends string>(name: SettingName, text: string, choices: readonly T[]): T {
  const choice = choices.find((candidate) => candidate === text)
  if (choice === undefined) throw invalidSetting(name, text, `use ${alternatives(choices)}`)
  return choice
}

const booleans: Partial<Record<string, boolean>> = { true: true, yes: true, 1: true, false: false, no: false, 0: false }

export function isBoolean(text: string): boolean {
  return Object.hasOwn(booleans, text)
}

export function parseBoolean(name: SettingName, text: string): boolean {
  const value = isBoolean(text) ? booleans[text] : undefined
  if (value === undefined) throw invalidSetting(name, text, 'use true or false')
  return value
}

export function parseCount(name: SettingName, text: string, min: number, max = 9_999_999): number {
  const count = Number(text)
  if (/^\d{1,7}$/.test(text) && count >= min && count <= max) return count
  throw invalidSetting(name, text, `use a whole number from ${min} to ${max}`)
}

/** A plain number counts units, as it always has; a duration must be a whole number of them. */
export function parseCountOf(unit: PlainUnit, name: SettingName, text: string, min: number, max = 9_999_999): number {
  const count = readWhole(text, unit)
  if (count !== undefined && count >= min && count <= max) return count
  const example = unit === 'days' ? '90 or 90d' : '90, 90s or 5m'
  throw invalidSetting(name, text, `use ${unit} from ${min} to ${max}, for example ${example}`)
}

/** Milliseconds of `90s`, `15m`, `24h` or `7d`. */
export function parseDuration(name: SettingName, text: string): number {
  const milliseconds = readDuration(text)
  if (milliseconds !== undefined && milliseconds >= 1_000) return milliseconds
  throw invalidSetting(name, text, `use a duration such as ${durationForms}`)
}

/** The same, or 0. */
export function parseDurationOrZero(name: SettingName, text: string): number {
  return text === '0' ? 0 : parseDuration(name, text)
}

const graceMillisecondsMax = 5 * 60_000

/** Milliseconds; 0 turns it off. Longer than the life of most requests, what was revoked must not work. */
export function parseGrace(name: SettingName, text: string): number {
  if (text === '0') return 0
  const milliseconds = readDuration(text) ?? 0
  if (milliseconds >= 1_000 && milliseconds <= graceMillisecondsMax) return milliseconds
  throw invalidSetting(name, text, 'use a duration from 1s to 5m, or 0 to serve nothing without the database')
}

/** The URL of a database server, without a trailing slash. */
export function parseDatabaseServerUrl(name: SettingName, text: string): string {
  const problem = serverUrlProblem(text)
  if (problem !== undefined) throw invalidSecret(name, problem)
  return text.replace(/\/$/, '')
}

/** The path in `file:PATH`, absolute. */
export function parseDatabaseUrl(name: SettingName, text: string): string {
  const example = 'file:/var/lib/latchkey/latchkey.db'
  if (!text.startsWith('file:') || /[?#]/.test(text) || text.includes(':memory:'))
    throw invalidSetting(name, text, `use file:PATH, for example ${example}`)
  const path = text.startsWith('file://') ? pathOfFileUrl(text) : resolve(text.slice('file:'.length))
  if (path === undefined) throw invalidSetting(name, text, `use one slash or three, for example ${example}`)
  if (text.endsWith('/') || (existsSync(path) && statSync(path).isDirectory()))
    throw invalidSetting(name, text, `it is a folder; name a file in it: ${text.replace(/\/$/, '')}/latchkey.db`)
  return path
}

function pathOfFileUrl(text: string): string | undefined {
  try {
    return fileURLToPath(text)
  } catch {
    return undefined
  }
}

export function parseListen(name: SettingName, text: string): ListenAddress {
  const address = readListen(text)
  if (address !== undefined) return address
  throw invalidSetting(name, text, 'use ADDRESS:PORT, for example 127.0.0.1:8787 or [::1]:8787')
}

function readListen(text: string): ListenAddress | undefined {
  const match = /^(?:\[(?<v6>[0-9a-fA-F:.]+)\]|(?<host>[A-Za-z0-9.-]+)):(?<port>\d{1,5})$/.exec(text)
  const port = Number(match?.groups?.port)
  const hostname = match?.groups?.v6 ?? match?.groups?.host
  return hostname === undefined || port > 65_535 ? undefined : { hostname, port }
}

const loopback = addressList('127.0.0.0/8', '::1')

/** Anyone who reaches it reads it without a credential, so it must not be reachable from other machines. */
export function parseMetricsListen(name: SettingName, text: string): ListenAddress | { socketPath: string } {
  const rule = 'use a loopback address such as 127.0.0.1:9464, or unix:/run/latchkey/metrics.sock'
  if (text.startsWith('unix:')) {
    const socketPath = resolve(text.slice('unix:'.length))
    const bytes = Buffer.byteLength(socketPath)
    if (text === 'unix:' || bytes > socketPathBytesMax)
      throw invalidSetting(name, text, `use unix: and a path of at most ${socketPathBytesMax} bytes`)
    return { socketPath }
  }
  const address = readListen(text)
  if (address === undefined || !(address.hostname === 'localhost' || loopback.has(address.hostname)))
    throw invalidSetting(name, text, rule)
  return address
}

/** The URL without trailing slashes. */
export function parseHttpUrl(name: SettingName, text: string): string {
  // A URL with an @ may hold a password.
  const invalid = (rule: string) => (text.includes('@') ? invalidSecret(name, rule) : invalidSetting(name, text, rule))
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || text.length > urlCharactersMax)
    throw invalid('use an http:// or https:// URL')
  if (url.username !== '' || url.password !== '')
    throw invalid('remove the user name and password; URLs end up in logs')
  if (url.search !== '' || url.hash !== '' || /[?#]/.test(text)) throw invalid('remove the query and fragment')
  const trimmed = text.replace(/\/+$/, '')
  if (trimmed !== url.href.replace(/\/+$/, '')) throw invalid(`write it as ${url.href}`)
  return trimmed
}

/** A URL without a path: scheme, host and port. */
export function parseOrigin(name: SettingName, text: string): string {
  const url = parseHttpUrl(name, text)
  if (new URL(url).origin === url) return url
  throw invalidSetting(name, text, `use scheme, host and port alone: ${new URL(url).origin}`)
}

export function parseBaseUrl(name: SettingName, text: string): string {
  const url = parseHttpUrl(name, text)
  if (new URL(url).pathname.endsWith('/v1')) return url
  throw invalidSetting(name, text, 'end it in the version segment /v1, for example https://latchkey.example.com/v1')
}

/** A credential that fits into a header. */
export function parseCredential(name: SettingName, text: string): string {
  if (/[^\x21-\x7e]/.test(text)) throw invalidSecret(name, 'use printable ASCII without spaces')
  return text
}

export function parseMasterKey(name: SettingName, text: string): string {
  if (!/^[0-9a-fA-F]{64}$/.test(text))
    throw invalidSecret(name, 'use 64 hex digits, for example from openssl rand -hex 32')
  return text.toLowerCase()
}

export function parseNetworks(name: SettingName, text: string): AddressList {
  const list = parseAddressList(text)
  if (typeof list !== 'string') return list
  throw invalidSetting(name, list, 'use addresses and networks separated by commas, for example 10.0.0.0/8,::1')
}
