// Where clients reach a server: the base URL that follows from the settings, and addresses as text.

import { Fault } from '../fault.ts'
import { allowsSessions, pageOriginOf } from '../http/page-origin.ts'
import type { Config } from './config.ts'
import type { ListenAddress } from './setting-values.ts'

const defaultBasePath = '/v1'

/** The base URL in force: the configured one, or the one that follows from the address that the server listens on. */
export function baseUrlFor(config: Config, listening: ListenAddress): string {
  if (config.baseUrl !== undefined) return config.baseUrl
  if (!isUnspecified(config.listen.hostname))
    return `${config.tls === undefined ? 'http' : 'https'}://${formatAddress(listening)}${defaultBasePath}`
  const address = formatAddress(config.listen)
  const rule = 'set LATCHKEY_BASE_URL to the URL that clients use, for example https://latchkey.example.com/v1'
  throw new Fault(
    'configuration',
    `LATCHKEY_LISTEN is ${address}, which does not say how clients reach the server: ${rule}`,
  )
}

/** The path of the base URL, which is known before the server listens. */
export function basePathFor({ baseUrl }: Config): string {
  return baseUrl === undefined ? defaultBasePath : new URL(baseUrl).pathname
}

/**
 * The address of the admin page that browsers open: beside the base path, on the host of the base URL unless the settings say otherwise.
 * @throws Fault `configuration` for a second address that browsers could only reach over plain HTTP and a network
 */
export function pageUrlFor({ adminListen, adminOrigin }: Config, baseUrl: string, listening?: ListenAddress): string {
  const base = new URL(baseUrl)
  const ownOrigin = adminListen === undefined ? base.origin : `http://${formatAddress(listening ?? adminListen)}`
  const origin = adminOrigin ?? ownOrigin
  if (adminListen !== undefined && !allowsSessions(pageOriginOf(origin)))
    throw new Fault(
      'configuration',
      `LATCHKEY_ADMIN_LISTEN is ${formatAddress(adminListen)}, which serves plain HTTP: use a loopback address, or set LATCHKEY_ADMIN_ORIGIN to the https:// origin of the proxy in front`,
    )
  return `${origin}${base.pathname.slice(0, base.pathname.lastIndexOf('/'))}/admin/`
}

export function formatAddress({ hostname, port }: ListenAddress): string {
  return hostname.includes(':') ? `[${hostname}]:${port}` : `${hostname}:${port}`
}

function isUnspecified(hostname: string): boolean {
  return hostname === '0.0.0.0' || /^[0:]+$/.test(hostname)
}
