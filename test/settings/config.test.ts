// Settings: flag over environment over file; a wrong value is refused in one sentence that quotes no secret.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describeError, Fault } from '../../src/fault.ts'
import { baseUrlFor } from '../../src/settings/addresses.ts'
import { type Config, type ConfigSources, loadConfig } from '../../src/settings/config.ts'
import { flagOf, type SettingName, settings } from '../../src/settings/settings.ts'
import { runCommand, temporaryFolder } from '../support/latchkey.ts'

let folder: ReturnType<typeof temporaryFolder>
beforeEach(() => {
  folder = temporaryFolder()
})
afterEach(() => folder.remove())

function fileOf(text: string): string {
  const path = join(folder.path, 'latchkey.conf')
  writeFileSync(path, text)
  return path
}

const load = (sources: Partial<ConfigSources> = {}) => loadConfig({ flags: {}, environment: {}, ...sources })

function faultOf(sources: Partial<ConfigSources>): Fault {
  let fault: unknown
  try {
    load(sources)
  } catch (error) {
    fault = error
  }
  expect(fault).toBeInstanceOf(Fault)
  expect(fault).toHaveProperty('code', 'configuration')
  return fault as Fault
}

/** Reads a file. */
type TokenFileSetting = 'LATCHKEY_DATABASE_TOKEN_FILE'
/** Read together with LATCHKEY_BACKUP_DIR. */
type BackupSetting = 'LATCHKEY_BACKUP_EVERY' | 'LATCHKEY_BACKUP_KEEP'
/** Set together. */
type TlsSetting =
  | 'LATCHKEY_TLS_CERT_FILE'
  | 'LATCHKEY_TLS_KEY_FILE'
  | 'LATCHKEY_DATABASE_CERT_FILE'
  | 'LATCHKEY_DATABASE_KEY_FILE'

const hex = (digit: string) => digit.repeat(64)
const daysOf = (text: string) => ({ 1: 1, '2d': 2, '72h': 3 })[text]
/** Three good values of each setting, and what the configuration makes of a value. */
const values: Record<
  Exclude<SettingName, TlsSetting | BackupSetting | TokenFileSetting>,
  [texts: [string, string, string], read: (config: Config) => unknown, expect: (text: string) => unknown]
> = {
  LATCHKEY_DATABASE_URL: [
    ['file:a.db', 'file:/b/b.db', 'file:///c/c.db'],
    (config) => config.databasePath,
    (text) => resolve(text.replace(/^file:(\/\/)?/, '')),
  ],
  LATCHKEY_DATABASE_SYNCHRONOUS: [['full', 'normal', 'full'], (config) => config.databaseSynchronous, (text) => text],
  LATCHKEY_MASTER_KEY_FILE: [
    ['/a', '/b', '/c'],
    (config) => config.masterKey,
    (path) => ({ kind: 'file', path, isDefault: false }),
  ],
  LATCHKEY_MASTER_KEY: [
    [hex('a'), hex('b'), hex('C')],
    (config) => config.masterKey,
    (text) => ({ kind: 'value', hex: text.toLowerCase() }),
  ],
  LATCHKEY_LISTEN: [
    ['127.0.0.1:1', '[::1]:2', 'localhost:3'],
    (config) => config.listen,
    (text) => ({ hostname: text.replace(/:\d$|[[\]]/g, ''), port: Number(text.at(-1)) }),
  ],
  LATCHKEY_BASE_URL: [
    ['https://a.example/v1', 'https://b.example/x/v1/', 'http://c.example:1/v1'],
    (config) => config.baseUrl,
    (text) => text.replace(/\/$/, ''),
  ],
  LATCHKEY_UPSTREAM_URL: [
    ['https://a.example', 'https://b.example/v1/', 'http://c:1'],
    (config) => config.upstreamUrl,
    (text) => text.replace(/\/$/, ''),
  ],
  LATCHKEY_UPSTREAM_API_KEY: [['one', 'two', 'three'], (config) => config.upstreamApiKey, (text) => text],
  LATCHKEY_MAX_BODY_MB: [['1', '2', '3'], (config) => (config.bodyBytesMax - 1) / 1024 / 1024, Number],
  LATCHKEY_RATE_LIMIT: [['1', '2', '3'], (config) => config.rateLimit?.perMinute, Number],
  LATCHKEY_RATE_BURST: [['1', '2', '3'], (config) => config.rateLimit?.burst, Number],
  LATCHKEY_TRUSTED_PROXIES: [
    ['10.0.0.1', '10.0.0.2/32', '10.0.0.3, ::1'],
    (config) => ['10.0.0.1', '10.0.0.2', '10.0.0.3'].filter((address) => config.trustedProxies.has(address)),
    (text) => [text.slice(0, 8)],
  ],
  LATCHKEY_ISSUER_NETWORKS: [
    ['10.0.0.1', '10.0.0.2/32', '10.0.0.3, ::1'],
    (config) => ['10.0.0.1', '10.0.0.2', '10.0.0.3'].filter((address) => config.issuerNetworks?.has(address)),
    (text) => [text.slice(0, 8)],
  ],
  LATCHKEY_WEBHOOK_NETWORKS: [
    ['10.0.0.1', '10.0.0.2/32', '10.0.0.3, ::1'],
    (config) => ['10.0.0.1', '10.0.0.2', '10.0.0.3'].filter((address) => config.webhookNetworks?.has(address)),
    (text) => [text.slice(0, 8)],
  ],
  LATCHKEY_METRICS_LISTEN: [
    ['127.0.0.1:1', '[::1]:2', 'unix:/run/m.sock'],
    (config) => config.metricsListen,
    (text) =>
      text.startsWith('unix:')
        ? { socketPath: text.slice('unix:'.length) }
        : { hostname: text.replace(/:\d$|[[\]]/g, ''), port: Number(text.at(-1)) },
  ],
  LATCHKEY_REFUSE_SHARED_STATE: [
    ['true', 'false', 'no'],
    (config) => config.refusesSharedState,
    (text) => text === 'true',
  ],
  LATCHKEY_JWT_BEARER: [['true', 'false', 'no'], (config) => config.jwtBearer, (text) => text === 'true'],
  LATCHKEY_ADMIN_PAGE: [['true', 'false', 'no'], (config) => config.adminPage, (text) => text === 'true'],
  LATCHKEY_ADMIN_LISTEN: [
    ['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:3'],
    (config) => config.adminListen,
    (text) => ({ hostname: '127.0.0.1', port: Number(text.at(-1)) }),
  ],
  LATCHKEY_ADMIN_ORIGIN: [
    ['https://a.example', 'https://b.example:8443', 'http://127.0.0.1:1'],
    (config) => config.adminOrigin,
    (text) => text,
  ],
  LATCHKEY_RETAIN_EXCHANGES_DAYS: [['1', '2d', '72h'], (config) => config.retention.days.exchanges, daysOf],
  LATCHKEY_RETAIN_USAGE_DAYS: [['1', '2d', '72h'], (config) => config.retention.days.usage, daysOf],
  LATCHKEY_ARCHIVE_DIR: [['/a', 'b', '/c/d'], (config) => config.retention.folder, (text) => resolve(text)],
  LATCHKEY_AUDIT_LOG: [['changes', 'off', 'full'], (config) => config.auditLog.mode, (text) => text],
  LATCHKEY_AUDIT_DIR: [['/a', 'b', '/c/d'], (config) => config.auditLog.folder, (text) => resolve(text)],
  LATCHKEY_SIGNING_KEY_DAYS: [['1', '2d', '72h'], (config) => config.signingKeyDays, daysOf],
  LATCHKEY_DRAIN_SECONDS: [
    ['1', '60s', '1h'],
    (config) => config.drainMilliseconds,
    (text) => ({ 1: 1_000, '60s': 60_000, '1h': 3_600_000 })[text],
  ],
  LATCHKEY_INSECURE_ISSUERS: [['true', 'false', 'true'], (config) => config.insecureIssuers, (text) => text === 'true'],
  LATCHKEY_BUNDLE_GRACE: [
    ['0', '90s', '2d'],
    (config) => config.bundleGraceMilliseconds,
    (text) => ({ 0: 0, '90s': 90_000, '2d': 172_800_000 })[text],
  ],
  LATCHKEY_LOG_LEVEL: [['debug', 'warn', 'error'], (config) => config.logLevel, (text) => text],
  LATCHKEY_ACCESS_LOG: [
    ['/a.log', 'stderr', 'b.log'],
    (config) => config.accessLog,
    (text) => (text === 'stderr' ? { kind: 'stderr' } : { kind: 'file', path: resolve(text) }),
  ],
  LATCHKEY_DATABASE_TOKEN: [['a', 'b', 'c'], (config) => config.databaseServer?.token, (text) => text],
  LATCHKEY_DATABASE_GRACE: [
    ['1s', '30s', '5m'],
    (config) => config.databaseServer?.grace?.milliseconds,
    (text) => ({ '1s': 1_000, '30s': 30_000, '5m': 300_000 })[text],
  ],
  LATCHKEY_DATABASE_GRACE_DIR: [
    ['/a', '/b', 'c'],
    (config) => config.databaseServer?.grace?.folder,
    (text) => resolve(text),
  ],
  LATCHKEY_DATABASE_CA_FILE: [['/a', '/b', 'c'], (config) => config.databaseServer?.caFile, (text) => resolve(text)],
  LATCHKEY_BACKUP_DIR: [['/a', '/b', 'c'], (config) => config.backup?.folder, (text) => resolve(text)],
}

const onServer = { LATCHKEY_DATABASE_URL: 'https://db.example', LATCHKEY_MASTER_KEY: hex('a') }

describe('a server database', () => {
  test('has a URL of its kind, and a token from a file or from a secret that was made from a file', () => {
    const LATCHKEY_DATABASE_TOKEN_FILE = fileOf('secret\n')
    for (const token of [{ LATCHKEY_DATABASE_TOKEN_FILE }, { LATCHKEY_DATABASE_TOKEN: 'secret\n' }])
      expect(load({ environment: { ...onServer, ...token } }).databaseServer).toEqual({
        url: 'https://db.example',
        token: 'secret',
        caFile: undefined,
        client: undefined,
        grace: undefined,
      })
    const cluster = 'rqlite://10.0.0.1:4001,[::1]:4001,db-3.example'
    for (const url of ['http://127.0.0.1:8080', 'libsql://db.example/', cluster, 'rqlites://db.example/'])
      expect(load({ environment: { ...onServer, LATCHKEY_DATABASE_URL: url } }).databasePath).toBe(
        url.replace(/\/$/, ''),
      )
  })

  const wrong: [what: string, environment: Partial<Record<string, string>>, message: string][] = [
    ['no master key', { LATCHKEY_DATABASE_URL: 'https://db.example' }, 'the same on every node'],
    ['two lines as a token', { ...onServer, LATCHKEY_DATABASE_TOKEN: 'a\nb' }, 'use printable ASCII without spaces'],
    ['two tokens', { ...onServer, LATCHKEY_DATABASE_TOKEN: 'a', LATCHKEY_DATABASE_TOKEN_FILE: 'b' }, 'set one of them'],
    [
      'grace and no folder for it',
      { ...onServer, LATCHKEY_DATABASE_GRACE: '30s' },
      'set a folder that survives restarts',
    ],
    ['a folder for backups', { ...onServer, LATCHKEY_BACKUP_DIR: '/b' }, 'take snapshots of the server'],
    ['credentials in the URL', { ...onServer, LATCHKEY_DATABASE_URL: 'https://a:b@db.example' }, 'without credentials'],
    [
      'a certificate without its key',
      { ...onServer, LATCHKEY_DATABASE_CERT_FILE: '/a.pem' },
      'set both of them, or neither',
    ],
    ['a cluster without a host', { ...onServer, LATCHKEY_DATABASE_URL: 'rqlite://' }, 'use rqlite://HOST:PORT'],
    [
      'a cluster with a port that none has',
      { ...onServer, LATCHKEY_DATABASE_URL: 'rqlite://a:1,b:70000' },
      'HOST:PORT',
    ],
    ['a cluster with a path', { ...onServer, LATCHKEY_DATABASE_URL: 'rqlite://a:1/db' }, 'HOST:PORT'],
    [
      'credentials in the URL of a cluster',
      { ...onServer, LATCHKEY_DATABASE_URL: 'rqlite://u:p@a:1' },
      'without credentials',
    ],
    ['a web socket', { ...onServer, LATCHKEY_DATABASE_URL: 'wss://db.example' }, 'use the https://'],
  ]
  for (const [what, environment, message] of wrong)
    test(`with ${what} is refused`, () => expect(faultOf({ environment }).message).toContain(message))
})

describe('every setting', () => {
  for (const { env } of settings) {
    // The two files of TLS are only set together.
    if (env === 'LATCHKEY_TLS_CERT_FILE' || env === 'LATCHKEY_TLS_KEY_FILE') continue
    if (env === 'LATCHKEY_DATABASE_CERT_FILE' || env === 'LATCHKEY_DATABASE_KEY_FILE') continue
    if (env === 'LATCHKEY_DATABASE_TOKEN_FILE') continue
    if (env === 'LATCHKEY_BACKUP_EVERY' || env === 'LATCHKEY_BACKUP_KEEP') continue
    // An age needs a folder.
    const defaults = env.startsWith('LATCHKEY_RETAIN_')
      ? { LATCHKEY_ARCHIVE_DIR: '/archive' }
      : /_(TOKEN|CA_FILE)$/.test(env)
        ? onServer
        : env.startsWith('LATCHKEY_DATABASE_GRACE')
          ? { ...onServer, LATCHKEY_DATABASE_GRACE: '30s', LATCHKEY_DATABASE_GRACE_DIR: '/grace' }
          : undefined
    const loadIt = (sources: Partial<ConfigSources> = {}) => load({ ...(defaults && { defaults }), ...sources })
    const [[first, second, third], read, expected] = values[env]
    test(`${env} works by flag, environment and file, in this order`, () => {
      const file = { LATCHKEY_CONFIG: fileOf(`${env}=${third}\n`) }
      expect(read(loadIt({ flags: { [env]: first }, environment: { ...file, [env]: second } }))).toEqual(
        expected(first),
      )
      expect(read(loadIt({ environment: { ...file, [env]: second } }))).toEqual(expected(second))
      expect(read(loadIt({ environment: file }))).toEqual(expected(third))
      expect(read(loadIt({ flags: file }))).toEqual(expected(third))
    })

    test(`${env} counts as not set when it is empty`, () => {
      const file = { LATCHKEY_CONFIG: fileOf(`${env}=${third}\n`) }
      expect(read(loadIt({ flags: { [env]: '' }, environment: { ...file, [env]: '' } }))).toEqual(expected(third))
      expect(read(loadIt({ environment: { [env]: '' } }))).toEqual(read(loadIt()))
    })
  }

  test('LATCHKEY_BACKUP_EVERY and LATCHKEY_BACKUP_KEEP apply to the folder of the backups', () => {
    const flags = { LATCHKEY_BACKUP_DIR: '/backup' }
    expect(load({ flags }).backup).toEqual({ folder: '/backup', everyMilliseconds: 86_400_000, keep: 14 })
    const environment = { LATCHKEY_BACKUP_EVERY: '90m', LATCHKEY_BACKUP_KEEP: '3' }
    expect(load({ flags, environment }).backup).toEqual({ folder: '/backup', everyMilliseconds: 5_400_000, keep: 3 })
  })

  test('LATCHKEY_TLS_CERT_FILE and LATCHKEY_TLS_KEY_FILE are set together, each by flag, environment or file', () => {
    const key = { LATCHKEY_TLS_KEY_FILE: '/flag.key' }
    const file = { LATCHKEY_CONFIG: fileOf('LATCHKEY_TLS_CERT_FILE=/file.pem\nLATCHKEY_TLS_KEY_FILE=/file.key\n') }
    expect(load({ flags: key, environment: file }).tls).toEqual({ certFile: '/file.pem', keyFile: '/flag.key' })
    const environment = { ...file, LATCHKEY_TLS_CERT_FILE: 'own.pem' }
    expect(load({ environment }).tls).toEqual({ certFile: resolve('own.pem'), keyFile: '/file.key' })
    expect(load({ flags: { LATCHKEY_TLS_CERT_FILE: '', LATCHKEY_TLS_KEY_FILE: '' } }).tls).toBeUndefined()
  })

  const switches: [text: string, isOn: boolean][] = [
    ['true', true],
    ['yes', true],
    ['1', true],
    ['false', false],
    ['no', false],
    ['0', false],
  ]
  for (const [text, isOn] of switches) {
    test(`that is a switch is ${isOn ? 'on' : 'off'} as ${text}, by flag, environment and file`, () => {
      const given = { LATCHKEY_INSECURE_ISSUERS: text }
      const file = { LATCHKEY_CONFIG: fileOf(`LATCHKEY_INSECURE_ISSUERS=${text}\n`) }
      for (const sources of [{ flags: given }, { environment: given }, { flags: file }])
        expect(load(sources).insecureIssuers).toBe(isOn)
    })
  }

  test("has a flag of its name, and a command's own default comes before the common one", () => {
    expect(settings.map(({ env }) => flagOf(env)).slice(0, 2)).toEqual(['database-url', 'database-synchronous'])
    const defaults = { LATCHKEY_DATABASE_URL: 'file:/own.db' }
    expect(load({ defaults }).databasePath).toBe('/own.db')
    expect(load({ defaults, environment: { LATCHKEY_DATABASE_URL: 'file:/given.db' } }).databasePath).toBe('/given.db')
  })

  test('has the documented default, and the result cannot be changed', () => {
    const config = load()
    expect(config).toEqual({
      databasePath: resolve('latchkey-data/latchkey.db'),
      databaseServer: undefined,
      databaseSynchronous: 'normal',
      listen: { hostname: '127.0.0.1', port: 8787 },
      baseUrl: undefined,
      tls: undefined,
      upstreamUrl: undefined,
      upstreamApiKey: undefined,
      masterKey: { kind: 'file', path: resolve('latchkey-data/master.key'), isDefault: true },
      bodyBytesMax: 32 * 1024 * 1024 + 1,
      refusesSharedState: false,
      jwtBearer: true,
      rateLimit: { perMinute: 600, burst: 200 },
      trustedProxies: { has: expect.any(Function) },
      issuerNetworks: undefined,
      webhookNetworks: undefined,
      metricsListen: undefined,
      adminPage: true,
      adminListen: undefined,
      adminOrigin: undefined,
      retention: { days: {}, folder: undefined },
      auditLog: { mode: 'full', folder: undefined },
      signingKeyDays: 90,
      drainMilliseconds: 10_000,
      insecureIssuers: false,
      bundleGraceMilliseconds: 0,
      logLevel: 'info',
      accessLog: undefined,
      backup: undefined,
    })
    expect(Object.isFrozen(config)).toBe(true)
  })
})

describe('a wrong value is refused with the name of the setting:', () => {
  const wrong: [name: SettingName, value: string][] = [
    ...[
      'latchkey.db',
      ':memory:',
      'file::memory:',
      'file:a.db?mode=ro',
      'file:',
      'file:data/',
      'file://host/a.db',
      'wss://db.example',
      'http://',
      'libsql:',
    ].map((value): [SettingName, string] => ['LATCHKEY_DATABASE_URL', value]),
    ['LATCHKEY_DATABASE_SYNCHRONOUS', 'off'],
    ['LATCHKEY_DATABASE_SYNCHRONOUS', 'FULL'],
    ['LATCHKEY_AUDIT_LOG', 'on'],
    ...['30', '0s', '500ms', '6m', '1h', '-1s'].map((value): [SettingName, string] => [
      'LATCHKEY_DATABASE_GRACE',
      value,
    ]),
    ['LATCHKEY_LOG_LEVEL', 'verbose'],
    ...['0h', '24', 'h', '1.5h', '-1h', '24 h'].map((value): [SettingName, string] => ['LATCHKEY_BACKUP_EVERY', value]),
    ...['36h', '1.5d', '-1', '90 d'].map((value): [SettingName, string] => ['LATCHKEY_SIGNING_KEY_DAYS', value]),
    ...['0', '1500ms', '2h', '3601'].map((value): [SettingName, string] => ['LATCHKEY_DRAIN_SECONDS', value]),
    ['LATCHKEY_BACKUP_KEEP', '0'],
    ['LATCHKEY_BACKUP_KEEP', 'all'],
    ...[
      '8787',
      'localhost',
      '127.0.0.1:',
      '127.0.0.1:65536',
      '127.0.0.1:-1',
      '::1:8787',
      '[::1]',
      'http://localhost:1',
      'a b:1',
    ].map((value): [SettingName, string] => ['LATCHKEY_LISTEN', value]),
    ...[
      '0.0.0.0:9464',
      '10.0.0.1:9464',
      '[::]:9464',
      '127.0.0.1',
      'metrics.example:9464',
      'unix:',
      `unix:/${'x'.repeat(103)}`,
    ].map((value): [SettingName, string] => ['LATCHKEY_METRICS_LISTEN', value]),
    ...[
      'llm.example/v1',
      'https://llm.example',
      'https://llm.example/v2',
      'https://llm.example/xv1',
      'ftp://llm.example/v1',
      'https://llm.example/v1?x',
      'https://llm.example/v1#x',
    ].map((value): [SettingName, string] => ['LATCHKEY_BASE_URL', value]),
    ...['vllm:8000', 'file:///x', '/v1', 'http://', `http://x/${'x'.repeat(2_048)}`].map(
      (value): [SettingName, string] => ['LATCHKEY_UPSTREAM_URL', value],
    ),
    ...['a b', 'a\nb', 'schlüssel'].map((value): [SettingName, string] => ['LATCHKEY_UPSTREAM_API_KEY', value]),
    ...['maybe', '2', 'TRUE', 'toString'].map((value): [SettingName, string] => ['LATCHKEY_INSECURE_ISSUERS', value]),
    ...['x', hex('a').slice(1), `${hex('a')}a`].map((value): [SettingName, string] => ['LATCHKEY_MASTER_KEY', value]),
  ]
  for (const [name, value] of wrong) {
    test(`${name}=${JSON.stringify(value).slice(0, 50)}`, () => {
      expect(faultOf({ environment: { [name]: value } }).message).toMatch(
        new RegExp(`^(".*" is not a valid value for ${name}|The value of ${name} is not valid): .+$`),
      )
    })
  }

  test('a database URL that names a folder', () => {
    mkdirSync(join(folder.path, 'data'))
    expect(faultOf({ flags: { LATCHKEY_DATABASE_URL: `file:${folder.path}/data` } }).message).toContain('folder')
  })

  for (const [set, missing] of [
    ['LATCHKEY_TLS_CERT_FILE', 'LATCHKEY_TLS_KEY_FILE'],
    ['LATCHKEY_TLS_KEY_FILE', 'LATCHKEY_TLS_CERT_FILE'],
  ] as const)
    test(`${set} alone`, () => {
      expect(faultOf({ flags: { [set]: '/a' } }).message).toBe(
        `${set} is set without ${missing}: set both to serve HTTPS, or neither`,
      )
    })

  for (const set of ['LATCHKEY_RETAIN_EXCHANGES_DAYS', 'LATCHKEY_RETAIN_USAGE_DAYS'] as const)
    test(`${set} without a folder`, () => {
      expect(faultOf({ flags: { [set]: '30' } }).message).toBe(
        `${set} is set without LATCHKEY_ARCHIVE_DIR: set it to the folder that gets the archives`,
      )
    })

  test('grace for a database file, which is never away', () => {
    expect(faultOf({ environment: { LATCHKEY_DATABASE_GRACE: '30s' } }).message).toContain('names a file: leave it out')
  })

  test('both ways to give the master key', () => {
    const both = { LATCHKEY_MASTER_KEY: hex('a'), LATCHKEY_MASTER_KEY_FILE: '/k' }
    expect(faultOf({ environment: both }).message).toContain('LATCHKEY_MASTER_KEY_FILE')
  })

  test('a settings file that is missing, or that sets what is no setting', () => {
    expect(faultOf({ flags: { LATCHKEY_CONFIG: join(folder.path, 'none') } }).message).toContain('cannot be read')
    const typo = faultOf({ flags: { LATCHKEY_CONFIG: fileOf('LATCHKEY_LISTN=127.0.0.1:1\n') } })
    expect(typo.message).toContain('"LATCHKEY_LISTN"')
  })

  const asWritten = ['abc#def', 'a"b', "it's", '`x`', 'a\\n']
  for (const value of asWritten) {
    test(`LATCHKEY_UPSTREAM_API_KEY is ${value} in a settings file that says so, in quotes or not`, () => {
      for (const written of [value, ` ${value} `, `"${value}"`, `'${value}'\r`]) {
        const text = `\ufeff; a comment\n# another\n\n LATCHKEY_UPSTREAM_API_KEY =${written}\n`
        expect(load({ flags: { LATCHKEY_CONFIG: fileOf(text) } }).upstreamApiKey).toBe(value)
      }
    })
  }

  test('a line of a settings file that sets nothing', () => {
    expect(faultOf({ flags: { LATCHKEY_CONFIG: fileOf('LATCHKEY_LISTEN 127.0.0.1:1\n') } }).message).toContain(
      'LATCHKEY_CONFIG',
    )
  })
})

describe('a secret is never quoted:', () => {
  const secrets: [name: SettingName, value: string][] = [
    ['LATCHKEY_MASTER_KEY', 'top-secret'],
    ['LATCHKEY_UPSTREAM_API_KEY', 'top-secret with a space'],
    ['LATCHKEY_UPSTREAM_URL', 'http://user:top-secret@vllm:8000/v1'],
    ['LATCHKEY_UPSTREAM_URL', 'http://top-secret@vllm:8000/v1'],
    ['LATCHKEY_UPSTREAM_URL', 'http://:top-secret@vllm:8000/v1'],
    ['LATCHKEY_UPSTREAM_URL', 'ftp://user:top-secret@vllm:8000/v1'],
    ['LATCHKEY_UPSTREAM_URL', 'http://user:top-secret@vllm:port/v1'],
    ['LATCHKEY_BASE_URL', 'https://user:top-secret@llm.example'],
    ['LATCHKEY_DATABASE_URL', 'libsql://db.example?authToken=top-secret'],
    ['LATCHKEY_DATABASE_URL', 'https://user:top-secret@db.example'],
  ]
  for (const [name, value] of secrets) {
    test(`${name}=${value}`, () => {
      const fault = faultOf({ environment: { [name]: value } })
      expect(describeError(fault)).not.toContain('top-secret')
    })
  }
})

describe('the base URL', () => {
  test('follows the address unless it is set, and has to be set where the address says nothing', () => {
    expect(baseUrlFor(load(), { hostname: '127.0.0.1', port: 1 })).toBe('http://127.0.0.1:1/v1')
    expect(baseUrlFor(load(), { hostname: '::1', port: 1 })).toBe('http://[::1]:1/v1')
    const named = load({ flags: { LATCHKEY_BASE_URL: 'https://llm.example/v1/', LATCHKEY_LISTEN: '0.0.0.0:1' } })
    expect(baseUrlFor(named, { hostname: '0.0.0.0', port: 1 })).toBe('https://llm.example/v1')
    const secure = load({ flags: { LATCHKEY_TLS_CERT_FILE: '/a', LATCHKEY_TLS_KEY_FILE: '/b' } })
    expect(baseUrlFor(secure, { hostname: '127.0.0.1', port: 1 })).toBe('https://127.0.0.1:1/v1')
    for (const listen of ['0.0.0.0:1', '[::]:1', '[0:0:0:0:0:0:0:0]:1']) {
      expect(() => baseUrlFor(load({ flags: { LATCHKEY_LISTEN: listen } }), { hostname: 'x', port: 1 })).toThrow(
        'LATCHKEY_BASE_URL',
      )
    }
  })
})

describe('the program stops with exit code 3 and one sentence', () => {
  const rows: [name: string, args: string[], env: Record<string, string>][] = [
    ['LATCHKEY_LISTEN', ['serve', '--listen', 'nowhere'], {}],
    ['LATCHKEY_BASE_URL', ['serve'], { LATCHKEY_BASE_URL: 'https://llm.example' }],
    ['LATCHKEY_MASTER_KEY', ['init'], { LATCHKEY_MASTER_KEY: 'top-secret' }],
    ['LATCHKEY_CONFIG', ['keys', 'list', '--config', 'missing.conf'], {}],
  ]
  for (const [name, args, env] of rows) {
    test(`for a wrong ${name}`, async () => {
      const { code, stdout, stderr } = await runCommand(args, { cwd: folder.path, env })
      expect({ code, stdout, stderr }).toEqual({
        code: 3,
        stdout: '',
        stderr: expect.stringMatching(new RegExp(`^latchkey: [^\n]*\\b${name}\\b[^\n]+\n$`)),
      })
      expect(stderr).not.toContain('top-secret')
    })
  }
})
