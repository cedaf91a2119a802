// Settings: flags over environment over file over default, each checked once. Knows names and rules, not where a value is used.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Fault } from './fault.ts'
import { bodyMegabytesMax, urlCharactersMax } from './limits.ts'
import { configFileSetting, type Setting, type SettingName, settings } from './settings.ts'
import type { MasterKeySource } from './tokens/master-key.ts'
import { type AddressList, parseAddressList } from './values/ip-address.ts'

export type ListenAddress = { hostname: string; port: number }

export type RateLimit = { perMinute: number; burst: number }

export type Config = {
  databasePath: string
  databaseSynchronous: 'normal' | 'full'
  listen: ListenAddress
  /** Without a trailing slash; undefined means that it follows the listen address. */
  baseUrl: string | undefined
  upstreamUrl: string | undefined
  upstreamApiKey: string | undefined
  /** The first length of an inference body that is too large. */
  bodyBytesMax: number
  masterKey: MasterKeySource
  /** Exchanges a minute and at once from one client address; undefined for no limit. */
  rateLimit: RateLimit | undefined
  trustedProxies: AddressList
  /** Networks inside the site that issuers may lie in; undefined for any. */
  issuerNetworks: AddressList | undefined
  /** Age at which the signing key is rotated, in days; undefined for never. */
  signingKeyDays: number | undefined
  /** Whether issuers on `http://` loopback addresses may be trusted: for a laptop and for tests. */
  insecureIssuers: boolean
}

export type ConfigSources = {
  /** By setting name, as given on the command line. */
  flags: Partial<Record<string, string>>
  environment: Partial<Record<string, string>>
  /** A command's own defaults, before those of the settings. */
  defaults?: Partial<Record<SettingName, string>>
}

/**
 * Reads and checks every setting. The result is frozen.
 * @throws Fault `configuration` with a sentence that names the setting, where it came from, and what it should be.
 */
export function loadConfig(sources: ConfigSources): Config {
  const file = readConfigFile(sources)
  const read = (name: SettingName): string | undefined => {
    const setting: Setting | undefined = settings.find(({ env }) => env === name)
    const given = [sources.flags[name], sources.environment[name], file[name]]
    return given.find((value) => value !== undefined && value !== '') ?? sources.defaults?.[name] ?? setting?.default
  }
  const databasePath = parseDatabaseUrl(read('LATCHKEY_DATABASE_URL') ?? '')
  return Object.freeze({
    databasePath,
    databaseSynchronous: parseChoice('LATCHKEY_DATABASE_SYNCHRONOUS', read('LATCHKEY_DATABASE_SYNCHRONOUS'), [
      'normal',
      'full',
    ]),
    listen: parseListen(read('LATCHKEY_LISTEN') ?? ''),
    baseUrl: optional(read('LATCHKEY_BASE_URL'), parseBaseUrl),
    upstreamUrl: optional(read('LATCHKEY_UPSTREAM_URL'), (text) => parseHttpUrl('LATCHKEY_UPSTREAM_URL', text)),
    upstreamApiKey: optional(read('LATCHKEY_UPSTREAM_API_KEY'), parseUpstreamApiKey),
    bodyBytesMax:
      parseCount('LATCHKEY_MAX_BODY_MB', read('LATCHKEY_MAX_BODY_MB') ?? '', 1, bodyMegabytesMax) * 1024 * 1024 + 1,
    masterKey: masterKeySource(read('LATCHKEY_MASTER_KEY'), read('LATCHKEY_MASTER_KEY_FILE'), databasePath),
    rateLimit: parseRateLimit(read('LATCHKEY_RATE_LIMIT') ?? '', read('LATCHKEY_RATE_BURST') ?? ''),
    trustedProxies: parseNetworks('LATCHKEY_TRUSTED_PROXIES', read('LATCHKEY_TRUSTED_PROXIES') ?? ''),
    issuerNetworks: optional(read('LATCHKEY_ISSUER_NETWORKS'), (text) =>
      parseNetworks('LATCHKEY_ISSUER_NETWORKS', text),
    ),
    signingKeyDays: parseCount('LATCHKEY_SIGNING_KEY_DAYS', read('LATCHKEY_SIGNING_KEY_DAYS') ?? '', 0) || undefined,
    insecureIssuers: parseBoolean('LATCHKEY_INSECURE_ISSUERS', read('LATCHKEY_INSECURE_ISSUERS') ?? ''),
  })
}

/** The base URL in force: the configured one, or the one that follows from where the server listens. */
export function baseUrlFor(config: Config, listening: ListenAddress): string {
  if (config.baseUrl !== undefined) return config.baseUrl
  if (isUnspecified(config.listen.hostname)) {
    throw wrong(
      'LATCHKEY_BASE_URL',
      `is needed when LATCHKEY_LISTEN is ${formatAddress(config.listen)}: say how clients reach the server, e.g. https://latchkey.example.com/v1`,
    )
  }
  return `http://${formatAddress(listening)}/v1`
}

export function formatAddress({ hostname, port }: ListenAddress): string {
  return hostname.includes(':') ? `[${hostname}]:${port}` : `${hostname}:${port}`
}

/** The socket through which commands reach the server that owns a database. */
export function socketPathFor(config: Config): string {
  return `${config.databasePath}.sock`
}

function readConfigFile({ flags, environment }: ConfigSources): Partial<Record<string, string>> {
  const path = flags[configFileSetting] ?? environment[configFileSetting]
  if (path === undefined || path === '') return {}
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    throw wrong(configFileSetting, `names ${JSON.stringify(path)}, which cannot be read: ${(error as Error).message}`)
  }
  const values: Record<string, string> = {}
  for (const [index, line] of text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .entries()) {
    if (/^\s*([#;].*)?$/.test(line)) continue
    const { name = '', value = '' } = /^\s*(?<name>\w+)\s*=(?<value>.*)$/.exec(line)?.groups ?? {}
    const place = `names ${JSON.stringify(path)}, whose line ${index + 1}`
    if (name === '') throw wrong(configFileSetting, `${place} is not NAME=value`)
    if (!settings.some(({ env }) => env === name)) {
      const known = settings.map(({ env }) => env).join(', ')
      throw wrong(configFileSetting, `${place} sets ${JSON.stringify(name)}; known are ${known}`)
    }
    values[name] = unquoted(value.trim())
  }
  return values
}

/** A value may stand in quotes, as systemd writes it. Nothing within it has a meaning of its own, a # least of all. */
function unquoted(value: string): string {
  return /^(["']).*\1$/.test(value) && value.length > 1 ? value.slice(1, -1) : value
}

function wrong(name: string, sentence: string): Fault {
  return new Fault('configuration', `${name} ${sentence}`)
}

function optional<T>(value: string | undefined, parse: (text: string) => T): T | undefined {
  return value === undefined ? undefined : parse(value)
}

function parseChoice<const T extends string>(name: SettingName, value: string | undefined, choices: readonly T[]): T {
  const choice = choices.find((candidate) => candidate === value)
  if (choice === undefined) throw wrong(name, `is ${JSON.stringify(value)}, but must be ${choices.join(' or ')}`)
  return choice
}

const booleans: Partial<Record<string, boolean>> = { true: true, yes: true, 1: true, false: false, no: false, 0: false }

export function isBoolean(text: string): boolean {
  return Object.hasOwn(booleans, text)
}

function parseBoolean(name: SettingName, text: string): boolean {
  const value = isBoolean(text) ? booleans[text] : undefined
  if (value === undefined) throw wrong(name, `is ${JSON.stringify(text)}, but must be true or false`)
  return value
}

function parseDatabaseUrl(text: string): string {
  if (/^(libsql|https?|wss?):/.test(text)) {
    throw wrong('LATCHKEY_DATABASE_URL', 'names a remote database, which is not supported yet: use file:PATH')
  }
  if (!text.startsWith('file:') || /[?#]/.test(text) || text.includes(':memory:')) {
    throw wrong(
      'LATCHKEY_DATABASE_URL',
      `is ${JSON.stringify(text)}, but must be file:PATH, e.g. file:/var/lib/latchkey/latchkey.db`,
    )
  }
  const path = text.startsWith('file://') ? filePathOf(text) : resolve(text.slice('file:'.length))
  if (text.endsWith('/') || (existsSync(path) && statSync(path).isDirectory())) {
    throw wrong(
      'LATCHKEY_DATABASE_URL',
      `is ${JSON.stringify(text)}, which is a folder: name a file in it, e.g. ${text.replace(/\/$/, '')}/latchkey.db`,
    )
  }
  return path
}

function filePathOf(text: string): string {
  try {
    return fileURLToPath(text)
  } catch {
    throw wrong(
      'LATCHKEY_DATABASE_URL',
      `is ${JSON.stringify(text)}, but a file URL has one slash or three, e.g. file:/var/lib/latchkey/latchkey.db`,
    )
  }
}

function parseListen(text: string): ListenAddress {
  const match = /^(?:\[(?<v6>[0-9a-fA-F:.]+)\]|(?<host>[A-Za-z0-9.-]+)):(?<port>\d{1,5})$/.exec(text)
  const port = Number(match?.groups?.port)
  const hostname = match?.groups?.v6 ?? match?.groups?.host
  if (hostname === undefined || port > 65_535) {
    throw wrong(
      'LATCHKEY_LISTEN',
      `is ${JSON.stringify(text)}, but must be ADDRESS:PORT, e.g. 127.0.0.1:8787 or [::1]:8787`,
    )
  }
  return { hostname, port }
}

function parseHttpUrl(name: SettingName, text: string): string {
  // What holds an @ may hold a password.
  const quoted = text.includes('@') ? 'has a value' : `is ${JSON.stringify(text)}`
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || text.length > urlCharactersMax) {
    throw wrong(name, `${quoted}, but must be an http:// or https:// address`)
  }
  if (url.username !== '' || url.password !== '') {
    throw wrong(name, 'holds a user name or password; a URL ends up in logs, so keep credentials out of it')
  }
  if (url.search !== '' || url.hash !== '' || /[?#]/.test(text))
    throw wrong(name, `${quoted}, but may not have a query or fragment`)
  const trimmed = text.replace(/\/+$/, '')
  if (trimmed !== url.href.replace(/\/+$/, '')) throw wrong(name, `${quoted}, but must be written as ${url.href}`)
  return trimmed
}

function parseBaseUrl(text: string): string {
  const url = parseHttpUrl('LATCHKEY_BASE_URL', text)
  if (!new URL(url).pathname.endsWith('/v1')) {
    throw wrong(
      'LATCHKEY_BASE_URL',
      `is ${JSON.stringify(text)}, but must end in the version segment /v1, e.g. https://latchkey.example.com/v1`,
    )
  }
  return url
}

function parseUpstreamApiKey(text: string): string {
  if (/[^\x21-\x7e]/.test(text))
    throw wrong('LATCHKEY_UPSTREAM_API_KEY', 'may hold only printable ASCII without spaces')
  return text
}

function parseRateLimit(perMinute: string, burst: string): RateLimit | undefined {
  const [rate, atOnce] = [parseCount('LATCHKEY_RATE_LIMIT', perMinute, 0), parseCount('LATCHKEY_RATE_BURST', burst, 1)]
  return rate === 0 ? undefined : { perMinute: rate, burst: atOnce }
}

function parseCount(name: SettingName, text: string, min: number, max = 9_999_999): number {
  const count = Number(text)
  if (/^\d{1,7}$/.test(text) && count >= min && count <= max) return count
  throw wrong(name, `is ${JSON.stringify(text)}, but must be a whole number from ${min} to ${max}`)
}

function parseNetworks(name: SettingName, text: string): AddressList {
  const list = parseAddressList(text)
  if (typeof list !== 'string') return list
  throw wrong(name, `holds ${JSON.stringify(list)}, which is no address or network such as 10.0.0.0/8`)
}

function masterKeySource(value: string | undefined, file: string | undefined, databasePath: string): MasterKeySource {
  if (value === undefined) {
    return {
      kind: 'file',
      path: resolve(file ?? join(dirname(databasePath), 'master.key')),
      isDefault: file === undefined,
    }
  }
  if (file !== undefined)
    throw wrong('LATCHKEY_MASTER_KEY', 'and LATCHKEY_MASTER_KEY_FILE are both set; set one of them')
  if (!/^[0-9a-fA-F]{64}$/.test(value))
    throw wrong('LATCHKEY_MASTER_KEY', 'must be 64 hex digits, e.g. from: openssl rand -hex 32')
  return { kind: 'value', hex: value.toLowerCase() }
}

function isUnspecified(hostname: string): boolean {
  return hostname === '0.0.0.0' || /^[0:]+$/.test(hostname)
}
