// Where browsers open the admin page, and which requests provably come from the page itself.
import { addressList } from '../values/ip-address.ts'

export type PageOrigin = {
  /** For example `https://latchkey.example.com`. */
  origin: string
  /** Over plain HTTP only a page on the browser's own machine may sign in. */
  isSecure: boolean
  isLoopback: boolean
  port: string
}

const loopback = addressList('127.0.0.0/8', '::1')

/** The origin of an `http:` or `https:` URL. */
export function pageOriginOf(url: string): PageOrigin {
  const { origin, protocol, hostname, port } = new URL(url)
  return { origin, isSecure: protocol === 'https:', isLoopback: isLoopbackName(hostname), port: port || '80' }
}

function isLoopbackName(hostname: string): boolean {
  return hostname === 'localhost' || loopback.has(hostname.replace(/^\[(.*)\]$/, '$1'))
}

/** Whether the page can sign in there: over HTTPS, or on the browser's own machine. */
export function allowsSessions({ isSecure, isLoopback }: PageOrigin): boolean {
  return isSecure || isLoopback
}

/**
 * Whether the browser says that the page sent the request. Without `Sec-Fetch-Site` it does not, so older browsers and other programs
 * are not the page. A request that can change something also needs the `Origin` of the page.
 */
export function isFromPage({ method, headers }: Request, page: PageOrigin): boolean {
  if (!allowsSessions(page) || headers.get('sec-fetch-site') !== 'same-origin') return false
  // A proxy in front may replace Host, but plain HTTP comes without one.
  if (!page.isSecure && !isSameOrigin(`http://${headers.get('host')}`, page)) return false
  const origin = headers.get('origin')
  return origin === null ? method === 'GET' || method === 'HEAD' : isSameOrigin(origin, page)
}

/** On the browser's own machine, `localhost` and `127.0.0.1` are the same server. */
function isSameOrigin(text: string, page: PageOrigin): boolean {
  if (text === page.origin) return true
  if (page.isSecure || !page.isLoopback || !URL.canParse(text)) return false
  const other = pageOriginOf(text)
  return !other.isSecure && other.isLoopback && other.port === page.port && other.origin === text
}
