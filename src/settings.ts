// The table of settings: names, defaults and help. What a value may be, and what it becomes, is config.ts's.

export type Setting = {
  /** The name in environment and file. The flag is the same without the prefix: LATCHKEY_BASE_URL is --base-url. */
  env: `LATCHKEY_${string}`
  value: string
  help: string
  default?: string
}

export const settings = [
  { env: 'LATCHKEY_DATABASE_URL', value: 'URL', help: 'database file', default: 'file:latchkey-data/latchkey.db' },
  {
    env: 'LATCHKEY_DATABASE_SYNCHRONOUS',
    value: 'MODE',
    help: 'normal survives a killed process, full survives power loss',
    default: 'normal',
  },
  {
    env: 'LATCHKEY_MASTER_KEY_FILE',
    value: 'FILE',
    help: 'key that encrypts signing keys and upstream credentials (default: master.key beside the database)',
  },
  {
    env: 'LATCHKEY_MASTER_KEY',
    value: 'HEX',
    help: 'the same as 64 hex digits; others can read flags, so better by environment',
  },
  {
    env: 'LATCHKEY_LISTEN',
    value: 'ADDRESS',
    help: 'address and port to serve',
    default: '127.0.0.1:8787',
  },
  {
    env: 'LATCHKEY_BASE_URL',
    value: 'URL',
    help: 'public address, ends in /v1 (default: http://<listen>/v1)',
  },
  {
    env: 'LATCHKEY_UPSTREAM_URL',
    value: 'URL',
    help: 'inference server, e.g. http://127.0.0.1:8000/v1',
  },
  {
    env: 'LATCHKEY_UPSTREAM_API_KEY',
    value: 'KEY',
    help: 'credential for the inference server; better by environment',
  },
  {
    env: 'LATCHKEY_MAX_BODY_MB',
    value: 'NUMBER',
    help: 'largest body of an inference request, in megabytes',
    default: '32',
  },
  {
    env: 'LATCHKEY_RATE_LIMIT',
    value: 'NUMBER',
    help: 'exchanges a minute from one client address; 0 for no limit',
    default: '600',
  },
  {
    env: 'LATCHKEY_RATE_BURST',
    value: 'NUMBER',
    help: 'exchanges at once from one client address, after a quiet time',
    default: '200',
  },
  {
    env: 'LATCHKEY_TRUSTED_PROXIES',
    value: 'ADDRESSES',
    help: 'proxies whose X-Forwarded-For tells the client address, e.g. 10.0.0.0/8,::1',
  },
  {
    env: 'LATCHKEY_ISSUER_NETWORKS',
    value: 'ADDRESSES',
    help: 'private networks that issuers may be fetched from, e.g. 10.1.0.0/16 (default: any; none with several organizations)',
  },
  {
    env: 'LATCHKEY_SIGNING_KEY_DAYS',
    value: 'DAYS',
    help: 'age at which the server rotates its signing key; 0 for never',
    default: '90',
  },
  {
    env: 'LATCHKEY_INSECURE_ISSUERS',
    value: 'BOOLEAN',
    help: 'true: trust issuers on http:// loopback addresses',
    default: 'false',
  },
] as const satisfies Setting[]

export type SettingName = (typeof settings)[number]['env']
export const configFileSetting = 'LATCHKEY_CONFIG'

/** `LATCHKEY_BASE_URL` → `base-url`, the flag's name. */
export function flagOf(env: string): string {
  return env.slice('LATCHKEY_'.length).toLowerCase().replaceAll('_', '-')
}
