// What passes through the agent: which path of the server a local path stands for, and which headers pass. Rules only.
import { Fault } from '../fault.ts'
import type { Headers } from './caller-check.ts'

/** What most clients have at the end of their base URL. Some have it in their paths, and some nowhere. */
export const localPrefix = '/v1'

/**
 * Returns the URL of the server for a local path such as `/v1/models?limit=1`, or the same without `/v1`. Throws a fault
 * for a path that leads out of the base URL.
 */
export function targetOf(localPath: string, baseUrl: string): URL {
  const [path = '', query] = split(localPath)
  if (!path.startsWith('/')) throw new Fault('invalid', 'The request must name a path, not a URL')
  const target = `${baseUrl}${path.startsWith(`${localPrefix}/`) ? path.slice(localPrefix.length) : path}`
  const url = new URL(target)
  // A path such as /v1/../admin would leave the base URL.
  if (`${url.origin}${url.pathname}` !== target)
    throw new Fault('invalid', 'The path of the request must not contain dot segments or unescaped characters')
  if (query !== undefined) url.search = query
  return url
}

function split(path: string): [path: string, query?: string] {
  const at = path.indexOf('?')
  return at < 0 ? [path] : [path.slice(0, at), path.slice(at + 1)]
}

/** For one connection only (RFC 9110 §7.6.1). */
const hopByHop = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]
/** The credentials of the client are for the agent. The length is that of the body that is sent. */
const replaced = ['host', 'authorization', 'x-api-key', 'content-length', 'expect']

/** The headers of a request to the server, with the access token. */
export function requestHeaders(headers: Headers, accessToken: string): Record<string, string | string[]> {
  return { ...without(headers, replaced), authorization: `Bearer ${accessToken}` }
}

/** The headers of a response to the client. */
export function responseHeaders(headers: Headers): Record<string, string | string[]> {
  return without(headers, [])
}

function without(headers: Headers, names: readonly string[]): Record<string, string | string[]> {
  const listed = String(headers.connection ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
  const dropped = new Set([...hopByHop, ...listed, ...names])
  const kept: Record<string, string | string[]> = {}
  for (const [name, value] of Object.entries(headers)) if (value !== undefined && !dropped.has(name)) kept[name] = value
  return kept
}
