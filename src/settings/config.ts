// The configuration of a process: flags over environment over file over default, each checked once.
import { dirname, join, resolve } from 'node:path'
import { isServerUrl } from '../../db/remote/kinds.ts'
import { type Retention, retentionOf } from '../archive/retention.ts'
import { type AuditLogSettings, auditLogModes } from '../audit-log/mode.ts'
import { Fault } from '../fault.ts'
import { backupsKeptMax, bodyMegabytesMax } from '../limits.ts'
import type { AccessLogTarget } from '../observe/access-log.ts'
import { type LogLevel, logLevels } from '../observe/log.ts'
import type { MasterKeySource } from '../tokens/master-key.ts'
import type { AddressList } from '../values/ip-address.ts'
import { readConfigFile } from './config-file.ts'
import { type DatabaseServer, databaseServer } from './database-server.ts'
import type { Setting } from './setting.ts'
import {
  type ListenAddress,
  parseBaseUrl,
  parseBoolean,
  parseChoice,
  parseCount,
  parseCountOf,
  parseCredential,
  parseDatabaseServerUrl,
  parseDatabaseUrl,
  parseDuration,
  parseDurationOrZero,
  parseGrace,
  parseHttpUrl,
  parseListen,
  parseMasterKey,
  parseMetricsListen,
  parseNetworks,
  parseOrigin,
} from './setting-values.ts'
import { type SettingName, settings } from './settings.ts'

/** Paths of PEM files. */
export type TlsFiles = { certFile: string; keyFile: string }
export type RateLimit = { perMinute: number; burst: number }

/** Where backups are written, how often, and how many are kept. */
export type BackupPlan = { folder: string; everyMilliseconds: number; keep: number }

export type Config = {
  /** The database file, or the URL of the database server. */
  databasePath: string
  /** Undefined for a database file. */
  databaseServer: DatabaseServer | undefined
  databaseSynchronous: 'normal' | 'full'
  listen: ListenAddress
  /** Without a trailing slash; undefined where it follows from the listen address. */
  baseUrl: string | undefined
  /** Undefined to serve plain HTTP. */
  tls: TlsFiles | undefined
  upstreamUrl: string | undefined
  upstreamApiKey: string | undefined
  /** The smallest inference body that is too large. */
  bodyBytesMax: number
  /** Whether inference bodies may not refer to what upstreams store. */
  refusesSharedState: boolean
  /** Whether the token endpoint takes the jwt-bearer grant too. */
  jwtBearer: boolean
  masterKey: MasterKeySource
  /** Exchanges per minute, and in one burst, from one client address; undefined for no limit. */
  rateLimit: RateLimit | undefined
  trustedProxies: AddressList
  /** Private networks that issuers may be fetched from; undefined for any. */
  issuerNetworks: AddressList | undefined
  webhookNetworks: AddressList | undefined
  /** Where metrics are served without a credential; undefined for nowhere. */
  metricsListen: ListenAddress | { socketPath: string } | undefined
  /** Whether the admin page is served. */
  adminPage: boolean
  /** Where the page alone is served; undefined to serve it on `listen`. */
  adminListen: ListenAddress | undefined
  /** Undefined where it follows from the address. */
  adminOrigin: string | undefined
  retention: Retention
  auditLog: AuditLogSettings
  /** Age in days at which the signing key is rotated; undefined for never. */
  signingKeyDays: number | undefined
  /** How long running requests may take after a stop signal. */
  drainMilliseconds: number
  /** Whether issuers on `http://` loopback addresses may be trusted: for a laptop and for tests. */
  insecureIssuers: boolean
  /** How long the keys of an issuer stay usable after they expire. */
  bundleGraceMilliseconds: number
  logLevel: LogLevel
  accessLog: AccessLogTarget | undefined
  /** Scheduled backups; undefined without. */
  backup: BackupPlan | undefined
}

export type ConfigSources = {
  /** By setting name, from the command line. */
  flags: Partial<Record<string, string>>
  environment: Partial<Record<string, string>>
  /** A command's own defaults; they precede those of the table. */
  defaults?: Partial<Record<SettingName, string>>
}

/** A stop that takes longer looks like one that hangs. */
const drainSecondsMax = 3_600

/** The text of a setting; undefined where nothing sets it. */
type Read = (name: SettingName) => string | undefined

/** The text of every setting that has one, by default or because it is set. */
export type SettingTexts = Readonly<Partial<Record<SettingName, string>>>

/** @throws Fault `configuration` when the settings file cannot be read or has a line that sets nothing */
export function readSettingTexts(sources: ConfigSources): SettingTexts {
  const read = readerOf(sources)
  return Object.fromEntries(settings.map(({ env }) => [env, read(env)]))
}

/** @throws Fault `configuration` that names the setting and says what to use */
export function loadConfig(sources: ConfigSources): Config {
  return parseSettings(readSettingTexts(sources))
}

/**
 * Checks every setting. The result is frozen.
 * @throws Fault `configuration` that names the setting and says what to use
 */
export function parseSettings(texts: SettingTexts): Config {
  const read: Read = (name) => texts[name]
  /** A setting that may be left out. */
  const optional = <T>(name: SettingName, parse: (name: SettingName, text: string) => T): T | undefined => {
    const text = read(name)
    return text === undefined ? undefined : parse(name, text)
  }
  /** A setting that has a default. */
  const required = <T>(name: SettingName, parse: (name: SettingName, text: string) => T): T =>
    parse(name, read(name) ?? '')
  const count = (name: SettingName, min: number, max?: number) =>
    required(name, (_, text) => parseCount(name, text, min, max))
  const days = (name: SettingName, min: number) => required(name, (_, text) => parseCountOf('days', name, text, min))
  const isServer = isServerUrl(read('LATCHKEY_DATABASE_URL') ?? '')
  const databasePath = required('LATCHKEY_DATABASE_URL', isServer ? parseDatabaseServerUrl : parseDatabaseUrl)
  const grace = required('LATCHKEY_DATABASE_GRACE', parseGrace)
  if (grace > 0 && !isServer)
    throw new Fault(
      'configuration',
      'LATCHKEY_DATABASE_GRACE is set, but LATCHKEY_DATABASE_URL names a file: leave it out, since a file is never away',
    )
  return Object.freeze({
    databasePath,
    databaseServer: isServer ? databaseServer(read, databasePath, grace) : undefined,
    databaseSynchronous: required('LATCHKEY_DATABASE_SYNCHRONOUS', (name, text) =>
      parseChoice(name, text, ['normal', 'full']),
    ),
    listen: required('LATCHKEY_LISTEN', parseListen),
    baseUrl: optional('LATCHKEY_BASE_URL', parseBaseUrl),
    tls: tlsFilesOf(read),
    upstreamUrl: optional('LATCHKEY_UPSTREAM_URL', parseHttpUrl),
    upstreamApiKey: optional('LATCHKEY_UPSTREAM_API_KEY', parseCredential),
    bodyBytesMax: count('LATCHKEY_MAX_BODY_MB', 1, bodyMegabytesMax) * 1024 * 1024 + 1,
    refusesSharedState: required('LATCHKEY_REFUSE_SHARED_STATE', parseBoolean),
    jwtBearer: required('LATCHKEY_JWT_BEARER', parseBoolean),
    masterKey: masterKeySource(read, isServer ? undefined : dirname(databasePath)),
    rateLimit: rateLimitOf(count('LATCHKEY_RATE_LIMIT', 0), count('LATCHKEY_RATE_BURST', 1)),
    trustedProxies: required('LATCHKEY_TRUSTED_PROXIES', parseNetworks),
    issuerNetworks: optional('LATCHKEY_ISSUER_NETWORKS', parseNetworks),
    webhookNetworks: optional('LATCHKEY_WEBHOOK_NETWORKS', parseNetworks),
    metricsListen: optional('LATCHKEY_METRICS_LISTEN', parseMetricsListen),
    adminPage: required('LATCHKEY_ADMIN_PAGE', parseBoolean),
    adminListen: optional('LATCHKEY_ADMIN_LISTEN', parseListen),
    adminOrigin: optional('LATCHKEY_ADMIN_ORIGIN', parseOrigin),
    retention: retentionOf(days, read('LATCHKEY_ARCHIVE_DIR')),
    auditLog: {
      mode: required('LATCHKEY_AUDIT_LOG', (name, text) => parseChoice(name, text, auditLogModes)),
      folder: optional('LATCHKEY_AUDIT_DIR', (_, text) => resolve(text)),
    },
    signingKeyDays: days('LATCHKEY_SIGNING_KEY_DAYS', 0) || undefined,
    drainMilliseconds:
      1_000 *
      required('LATCHKEY_DRAIN_SECONDS', (name, text) => parseCountOf('seconds', name, text, 1, drainSecondsMax)),
    insecureIssuers: required('LATCHKEY_INSECURE_ISSUERS', parseBoolean),
    bundleGraceMilliseconds: required('LATCHKEY_BUNDLE_GRACE', parseDurationOrZero),
    logLevel: required('LATCHKEY_LOG_LEVEL', (name, text) => parseChoice(name, text, logLevels)),
    accessLog: optional('LATCHKEY_ACCESS_LOG', (_, text) => accessLogTarget(text)),
    backup: backupPlan(
      read,
      required('LATCHKEY_BACKUP_EVERY', parseDuration),
      count('LATCHKEY_BACKUP_KEEP', 1, backupsKeptMax),
    ),
  })
}

/** The socket through which commands reach the server that holds a database file; undefined for a server database. */
export function socketPathFor({ databasePath, databaseServer }: Config): string | undefined {
  return databaseServer === undefined ? `${databasePath}.sock` : undefined
}

/** An empty text sets nothing. */
function readerOf(sources: ConfigSources): Read {
  const file = readConfigFile(sources)
  return (name) => {
    const setting: Setting | undefined = settings.find(({ env }) => env === name)
    const given = [sources.flags[name], sources.environment[name], file[name]]
    return given.find((value) => value !== undefined && value !== '') ?? sources.defaults?.[name] ?? setting?.default
  }
}

function tlsFilesOf(read: Read): TlsFiles | undefined {
  const [certFile, keyFile] = [read('LATCHKEY_TLS_CERT_FILE'), read('LATCHKEY_TLS_KEY_FILE')]
  if (certFile !== undefined && keyFile !== undefined) return { certFile: resolve(certFile), keyFile: resolve(keyFile) }
  if (certFile === undefined && keyFile === undefined) return undefined
  const [set, missing] = certFile === undefined ? ['KEY', 'CERT'] : ['CERT', 'KEY']
  throw new Fault(
    'configuration',
    `LATCHKEY_TLS_${set}_FILE is set without LATCHKEY_TLS_${missing}_FILE: set both to serve HTTPS, or neither`,
  )
}

function rateLimitOf(perMinute: number, burst: number): RateLimit | undefined {
  return perMinute === 0 ? undefined : { perMinute, burst }
}

/** `folder` gets a new key where no setting says; without it, a setting must. */
function masterKeySource(read: Read, folder: string | undefined): MasterKeySource {
  const [value, file] = [read('LATCHKEY_MASTER_KEY'), read('LATCHKEY_MASTER_KEY_FILE')]
  if (value === undefined) {
    if (file === undefined && folder === undefined)
      throw new Fault(
        'configuration',
        'LATCHKEY_DATABASE_URL names a server: set LATCHKEY_MASTER_KEY_FILE or LATCHKEY_MASTER_KEY, the same on every node',
      )
    const path = resolve(file ?? join(folder ?? '', 'master.key'))
    return { kind: 'file', path, isDefault: file === undefined }
  }
  if (file !== undefined)
    throw new Fault('configuration', 'LATCHKEY_MASTER_KEY and LATCHKEY_MASTER_KEY_FILE are both set: set one of them')
  return { kind: 'value', hex: parseMasterKey('LATCHKEY_MASTER_KEY', value) }
}

function accessLogTarget(text: string): AccessLogTarget {
  return text === 'stderr' ? { kind: 'stderr' } : { kind: 'file', path: resolve(text) }
}

function backupPlan(read: Read, everyMilliseconds: number, keep: number): BackupPlan | undefined {
  const folder = read('LATCHKEY_BACKUP_DIR')
  return folder === undefined ? undefined : { folder: resolve(folder), everyMilliseconds, keep }
}
