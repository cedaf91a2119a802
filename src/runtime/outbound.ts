// Outbound requests on Bun and Deno: fetch with our own limits and trust, and name resolution.
import { lookup } from 'node:dns/promises'
import { findDeno } from './deno.ts'
import { directHosts, isDirect, proxyVariables } from './direct-hosts.ts'

/**
 * `decompress: false` leaves an encoded body as it is. `ca`: certificates in PEM to trust instead of the public ones. `client`: the
 * certificate in PEM, with its key, to show to the server. `address`: the IP address to connect to, while the certificate must be for the
 * host of the URL.
 */
export type FetchInit = RequestInit & {
  decompress?: boolean
  ca?: string
  client?: ClientCertificate
  address?: string
}
export type ClientCertificate = { cert: string; key: string }
export type Fetch = (url: string, init: FetchInit) => Promise<Response>

/** Whether the environment makes the runtime send its requests through a proxy. */
export const hasProxy = proxyVariables.some((name) => (process.env[name] ?? '') !== '')
/** An option of Bun. */
const withoutProxy = { proxy: false }
// Deno has no matching option. It reads its proxies at its first request, and the lower-case name before the other.
if (hasProxy && findDeno() !== undefined) {
  const given = process.env.no_proxy ?? process.env.NO_PROXY ?? ''
  process.env.no_proxy = [given, ...directHosts].filter((host) => host !== '').join(',')
}

/**
 * The runtime's fetch without its own time limit: every caller passes a signal. `decompress`, `ca` and `address` are Bun's options; of
 * these, Deno honors `ca`. Without `decompress: false`, a compressed body of a few kilobytes can take gigabytes and seconds. Hosts of
 * direct-hosts.ts are never reached through a proxy, as long as redirects are not followed.
 */
export function outboundFetch(url: string, init: FetchInit): Promise<Response> {
  const { ca, client, address } = init
  const trust = ca === undefined && client === undefined ? undefined : trusting(ca, client)
  const route = hasProxy && isDirect(url) ? withoutProxy : undefined
  const trusted = { ...init, ...trust, ...route, timeout: false }
  return address === undefined || !('Bun' in globalThis)
    ? fetch(url, trusted as RequestInit)
    : fetchPinned(url, address, trusted, trust)
}

/** Connects to the address, whatever the name in the URL resolves to. */
function fetchPinned(
  url: string,
  address: string,
  init: RequestInit,
  trust: TrustOptions | undefined,
): Promise<Response> {
  const target = new URL(url)
  const { host, hostname } = target
  target.hostname = address.includes(':') ? `[${address}]` : address
  const headers = new Headers(init.headers)
  headers.set('host', host)
  // A reused connection could have been verified for another name at the same address.
  const pinned = { headers, tls: { ...trust?.tls, serverName: hostname }, keepalive: false }
  return fetch(target.href, { ...init, ...pinned } as RequestInit)
}

type TrustOptions = { tls?: { ca?: string; cert?: string; key?: string }; client?: unknown }

/** Options that make a runtime trust these certificates (PEM) and no others, and show the one of the client. */
function trusting(ca: string | undefined, client: ClientCertificate | undefined): TrustOptions {
  const deno = findDeno()
  if (deno === undefined) return { tls: { ...(ca !== undefined && { ca }), ...client } }
  return { client: deno.createHttpClient({ ...(ca !== undefined && { caCerts: [ca] }), ...client }) }
}

/** The IP addresses of a host name as the system resolves it, IPv4 first. */
export async function resolveHost(hostname: string): Promise<string[]> {
  return (await lookup(hostname, { all: true, order: 'ipv4first' })).map(({ address }) => address)
}
