// Decides from which URLs keys may be fetched, by the form of the URL and the network of its host. It fetches nothing.
import { isIP } from 'node:net'
import { urlCharactersMax } from '../../limits.ts'
import { type AddressList, addressList, parseAddress } from '../../values/ip-address.ts'

/**
 * Returns the problem with a URL for fetching keys, or undefined. Allows https, and http on a loopback host if insecure
 * issuers are enabled. Used when an issuer is saved and before each fetch.
 */
export function urlProblem(text: string, insecureIssuers: boolean): string | undefined {
  if (text.length > urlCharactersMax) return `must be at most ${urlCharactersMax} characters`
  if (!URL.canParse(text)) return 'is not a URL'
  const url = new URL(text)
  if (url.username !== '' || url.password !== '') return 'may not hold a user name or password'
  if (/[#\s\p{Cc}]/u.test(text)) return 'may not have a fragment, white space or control characters'
  if (url.protocol === 'https:') return objectionToNetwork(hostOf(url), undefined)
  if (url.protocol !== 'http:') return 'must begin with https://'
  if (!isLoopback(url.hostname)) return 'must begin with https://'
  return insecureIssuers
    ? undefined
    : 'must begin with https:// (for tests, LATCHKEY_INSECURE_ISSUERS=true accepts http:// on this machine; set it for the server or, without one, for the command)'
}

/**
 * Returns the problem with an issuer URL, which must not have a query (OpenID Connect Discovery 1.0 §3). A JWKS URL may
 * have one.
 */
export function objectionToIssuerUrl(text: string, insecureIssuers: boolean): string | undefined {
  // No token has such an issuer, though the discovery document of Microsoft's `common` names one.
  if (/[{}]/.test(text)) return 'may not have a placeholder such as {tenantid}: replace it with the id of your tenant'
  return text.includes('?') ? 'may not have a query' : urlProblem(text, insecureIssuers)
}

/** Names that no public name server resolves (RFC 6761, RFC 6762, RFC 8375, ICANN SAC113), and those inside a cluster. */
const privateName = /^[^.]+$|\.(?:localhost|local|internal|test|svc)$|\.home\.arpa$/

/** Reports whether the host of a URL may be a service on the Internet: everything but private addresses and names. */
export function isPublicHost(url: string): boolean {
  if (!URL.canParse(url)) return true
  const host = hostOf(new URL(url)).replace(/\.$/, '')
  const range = parseAddress(host)?.range()
  return range === undefined ? !privateName.test(host) : range === 'unicast'
}

/** Returns the host of a URL as a name or a plain IP address. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}

/**
 * Ranges that identify no single machine, and IPv6 ranges that embed an IPv4 address. IPv4-mapped addresses are read as
 * IPv4.
 */
const forbiddenRanges: readonly string[] = [
  'unspecified',
  'linkLocal',
  'multicast',
  'broadcast',
  'rfc6145',
  'rfc6052',
  '6to4',
  'teredo',
]
/** Further such ranges, and the addresses where clouds serve credentials to machines. */
const forbidden = addressList(
  ...['240.0.0.0/4', '::/96'],
  ...['100.100.100.200', '192.0.0.192', '168.63.129.16', 'fd00:ec2::254', 'fd20:ce::254'],
)

/**
 * Returns why an IP address cannot be the host of an issuer, or undefined. It never refuses a name. With `networks`,
 * which the operator can set, an address that is not public must be in one of them. Public means global unicast in the
 * IANA special-purpose registries. `setting`: what names the networks.
 */
export function objectionToNetwork(
  host: string,
  networks: AddressList | undefined,
  setting = 'LATCHKEY_ISSUER_NETWORKS',
): string | undefined {
  if (isIP(host) === 0) return undefined
  const address = parseAddress(host)
  const text = address?.toString() ?? host
  const range = address?.range()
  if (range === undefined || forbiddenRanges.includes(range) || (range !== 'loopback' && forbidden.has(text)))
    return `may not lead to ${text}, a link-local or reserved address`
  if (networks === undefined || range === 'unicast' || networks.has(text)) return undefined
  return `leads to ${text}, which is not in ${setting}`
}

const thisMachine = addressList('127.0.0.0/8', '::1')
const nowhere = addressList()

/**
 * Returns the private networks that may contain issuers; undefined allows any. If several organizations share an
 * installation, only the networks that the operator names are allowed: an admin of one organization could otherwise
 * probe the others.
 */
export function privateNetworksFor(
  { issuerNetworks, insecureIssuers }: { issuerNetworks: AddressList | undefined; insecureIssuers: boolean },
  organizations: number,
): AddressList | undefined {
  if (issuerNetworks !== undefined || organizations < 2) return issuerNetworks
  return insecureIssuers ? thisMachine : nowhere
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}
