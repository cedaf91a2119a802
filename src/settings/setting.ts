// What a setting is.

export type Setting = {
  /** The name in environment and file. The flag has the name without the prefix: LATCHKEY_BASE_URL is --base-url. */
  env: `LATCHKEY_${string}`
  value: string
  help: string
  default?: string
  /** Shown as "set", never by its value. */
  isSecret?: true
  /** A running server takes a new value when it reloads; any other setting needs a restart. */
  isReloadable?: true
}
