// The table of settings: names, defaults and help. setting-values.ts has the rule of each value.

import { databaseSettings } from './database-settings.ts'
import type { Setting } from './setting.ts'

export const settings = [
  ...databaseSettings,
  {
    env: 'LATCHKEY_MASTER_KEY_FILE',
    value: 'FILE',
    help: 'key that encrypts signing keys and upstream credentials (default: master.key next to the database)',
  },
  {
    env: 'LATCHKEY_MASTER_KEY',
    value: 'HEX',
    help: 'the key itself, 64 hex digits; set it in the environment, because other users can read flags',
    isSecret: true,
  },
  {
    env: 'LATCHKEY_LISTEN',
    value: 'ADDRESS',
    help: 'address and port to listen on',
    default: '127.0.0.1:8787',
  },
  {
    env: 'LATCHKEY_BASE_URL',
    value: 'URL',
    help: 'URL that clients use; must end in /v1 (default: http://<listen>/v1, or https:// with TLS)',
  },
  {
    env: 'LATCHKEY_TLS_CERT_FILE',
    value: 'FILE',
    help: 'certificate chain (PEM) to serve HTTPS with; set the key file too',
    isReloadable: true,
  },
  {
    env: 'LATCHKEY_TLS_KEY_FILE',
    value: 'FILE',
    help: 'private key (PEM) of the certificate',
    isReloadable: true,
  },
  {
    env: 'LATCHKEY_UPSTREAM_URL',
    value: 'URL',
    help: 'inference server, for example http://127.0.0.1:8000/v1',
  },
  {
    env: 'LATCHKEY_UPSTREAM_API_KEY',
    value: 'KEY',
    help: 'credential for the inference server; set it in the environment',
    isSecret: true,
    isReloadable: true,
  },
  {
    env: 'LATCHKEY_MAX_BODY_MB',
    value: 'NUMBER',
    help: 'largest body of an inference request, in megabytes',
    default: '32',
  },
  {
    env: 'LATCHKEY_REFUSE_SHARED_STATE',
    value: 'BOOLEAN',
    help: 'true refuses inference bodies that refer to stored responses, conversations or files, which callers share',
    default: 'false',
  },
  {
    env: 'LATCHKEY_JWT_BEARER',
    value: 'BOOLEAN',
    help: 'false turns the jwt-bearer grant (RFC 7523) off, so that only token exchange (RFC 8693) remains',
    default: 'true',
  },
  {
    env: 'LATCHKEY_RATE_LIMIT',
    value: 'NUMBER',
    help: 'exchanges per minute from one client address; 0 removes the limit',
    default: '600',
    isReloadable: true,
  },
  {
    env: 'LATCHKEY_RATE_BURST',
    value: 'NUMBER',
    help: 'exchanges in one burst from one client address',
    default: '200',
    isReloadable: true,
  },
  {
    env: 'LATCHKEY_TRUSTED_PROXIES',
    value: 'ADDRESSES',
    help: 'proxies whose X-Forwarded-For is trusted, for example 10.0.0.0/8,::1',
    isReloadable: true,
  },
  {
    env: 'LATCHKEY_ISSUER_NETWORKS',
    value: 'ADDRESSES',
    help: 'private networks that issuers may be fetched from, for example 10.1.0.0/16 (default: any; none with several organizations)',
  },
  {
    env: 'LATCHKEY_WEBHOOK_NETWORKS',
    value: 'ADDRESSES',
    help: 'private networks that alerts may be sent to, also without TLS, for example 10.2.0.0/16 (default: none)',
  },
  {
    env: 'LATCHKEY_METRICS_LISTEN',
    value: 'ADDRESS',
    help: 'loopback address and port, or unix:PATH, that serves /metrics to Prometheus without a credential (default: off)',
  },
  {
    env: 'LATCHKEY_ADMIN_PAGE',
    value: 'BOOLEAN',
    help: 'false turns the admin page off',
    default: 'true',
  },
  {
    env: 'LATCHKEY_ADMIN_LISTEN',
    value: 'ADDRESS',
    help: 'second address and port, over plain HTTP, to which the admin page moves (default: it is on LATCHKEY_LISTEN)',
  },
  {
    env: 'LATCHKEY_ADMIN_ORIGIN',
    value: 'URL',
    help: 'where browsers reach the admin page, for example https://admin.example.com (default: as the base URL, or http://<admin listen>)',
  },
  {
    env: 'LATCHKEY_RETAIN_EXCHANGES_DAYS',
    value: 'DURATION',
    help: 'age at which the server moves exchanges from the audit log to the archive folder, for example 180d; 0 keeps them',
    default: '0',
  },
  {
    env: 'LATCHKEY_RETAIN_USAGE_DAYS',
    value: 'DURATION',
    help: 'age at which the server moves requests from the ledger to the archive folder, for example 180d; 0 keeps them',
    default: '0',
  },
  {
    env: 'LATCHKEY_ARCHIVE_DIR',
    value: 'FOLDER',
    help: 'existing folder for archives',
  },
  {
    env: 'LATCHKEY_AUDIT_LOG',
    value: 'MODE',
    help: 'what the transparent audit log covers: full, changes (without exchanges) or off',
    default: 'full',
  },
  {
    env: 'LATCHKEY_AUDIT_DIR',
    value: 'FOLDER',
    help: 'folder that gets the transparent audit log as files: checkpoints, tiles and entries (default: none)',
  },
  {
    env: 'LATCHKEY_SIGNING_KEY_DAYS',
    value: 'DURATION',
    help: 'age at which the server rotates its signing key, for example 30d; 0 turns rotation off',
    default: '90',
  },
  {
    env: 'LATCHKEY_DRAIN_SECONDS',
    value: 'DURATION',
    help: 'how long running requests may take after a stop signal, for example 90s',
    default: '10',
  },
  {
    env: 'LATCHKEY_INSECURE_ISSUERS',
    value: 'BOOLEAN',
    help: 'true accepts issuers at http:// loopback addresses; for tests only',
    default: 'false',
  },
  {
    env: 'LATCHKEY_BUNDLE_GRACE',
    value: 'DURATION',
    help: 'how long bundled and pasted issuer keys stay usable after they expire, for example 12h or 2d; 0 for not at all',
    default: '0',
  },
  {
    env: 'LATCHKEY_LOG_LEVEL',
    value: 'LEVEL',
    help: 'least important lines of the log: error, warn, info or debug',
    default: 'info',
    isReloadable: true,
  },
  {
    env: 'LATCHKEY_ACCESS_LOG',
    value: 'FILE',
    help: 'file that gets one JSON line for each request, or stderr',
    isReloadable: true,
  },
  {
    env: 'LATCHKEY_BACKUP_DIR',
    value: 'FOLDER',
    help: 'folder that gets a backup of the database now and then (default: no backups)',
  },
  {
    env: 'LATCHKEY_BACKUP_EVERY',
    value: 'DURATION',
    help: 'time between two backups, for example 30m, 24h or 7d',
    default: '24h',
  },
  {
    env: 'LATCHKEY_BACKUP_KEEP',
    value: 'NUMBER',
    help: 'how many backups stay in the folder; older ones are removed',
    default: '14',
  },
] as const satisfies Setting[]

export type SettingName = (typeof settings)[number]['env']
export const configFileSetting = 'LATCHKEY_CONFIG'

/** The flag of a setting: `base-url` for `LATCHKEY_BASE_URL`. */
export function flagOf(env: string): string {
  return env.slice('LATCHKEY_'.length).toLowerCase().replaceAll('_', '-')
}
