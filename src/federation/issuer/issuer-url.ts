// Which addresses keys may be trusted from: the form of a URL, and the networks that its host lies in. It fetches nothing.
import { BlockList, isIP } from 'node:net'
import type { AddressList } from '../../http/client-address.ts'
import { urlCharactersMax } from '../../limits.ts'

/**
 * What is wrong with an address from which keys are to be trusted, or undefined. Only https, or http on a loopback host when the
 * insecure setting is on. Used when an issuer is saved and again before each fetch.
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
    : 'must begin with https:// (http:// on this machine is accepted where the server, or without one the command, has LATCHKEY_INSECURE_ISSUERS=true)'
}

/** The same for an issuer URL, which besides has no query (OpenID Connect Discovery 1.0 §3). The address of a key set may have one. */
export function objectionToIssuerUrl(text: string, insecureIssuers: boolean): string | undefined {
  return text.includes('?') ? 'may not have a query' : urlProblem(text, insecureIssuers)
}

/** The host of a URL as a name or a plain IP address. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}

/** Where clouds tell a machine its own credentials, and addresses that mean no one machine. */
const forbidden = new BlockList()
forbidden.addSubnet('0.0.0.0', 8, 'ipv4')
forbidden.addSubnet('169.254.0.0', 16, 'ipv4')
forbidden.addAddress('100.100.100.200', 'ipv4')
forbidden.addAddress('192.0.0.192', 'ipv4')
forbidden.addAddress('168.63.129.16', 'ipv4')
forbidden.addSubnet('224.0.0.0', 3, 'ipv4')
// Ways to write an IPv4 address as an IPv6 one, besides ::ffff:0:0/96, which is read as the address it means.
forbidden.addSubnet('::', 96, 'ipv6')
forbidden.addSubnet('::ffff:0:0:0', 96, 'ipv6')
forbidden.addSubnet('64:ff9b::', 96, 'ipv6')
forbidden.addSubnet('64:ff9b:1::', 48, 'ipv6')
forbidden.addSubnet('2002::', 16, 'ipv6')
forbidden.addSubnet('2001::', 32, 'ipv6')
forbidden.addSubnet('fe80::', 10, 'ipv6')
forbidden.addAddress('fd00:ec2::254', 'ipv6')
forbidden.addAddress('fd20:ce::254', 'ipv6')
forbidden.addSubnet('ff00::', 8, 'ipv6')

/** Networks that only a site itself can reach. */
const inside = new BlockList()
inside.addSubnet('10.0.0.0', 8, 'ipv4')
inside.addSubnet('100.64.0.0', 10, 'ipv4')
inside.addSubnet('127.0.0.0', 8, 'ipv4')
inside.addSubnet('172.16.0.0', 12, 'ipv4')
inside.addSubnet('192.168.0.0', 16, 'ipv4')
inside.addAddress('::1', 'ipv6')
inside.addSubnet('fc00::', 7, 'ipv6')

/**
 * What is wrong with an IP address as the host of an issuer; a name has no objection. With `networks`, which the operator may set, an
 * address inside the site has to lie in one of them.
 */
export function objectionToNetwork(host: string, networks: AddressList | undefined): string | undefined {
  const address = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(host)?.[1] ?? host
  const version = isIP(address)
  if (version === 0) return undefined
  const family = version === 4 ? 'ipv4' : 'ipv6'
  if (address !== '::1' && forbidden.check(address, family))
    return `may not lead to ${address}, a link-local or reserved address`
  if (networks === undefined || !inside.check(address, family) || networks.has(address)) return undefined
  return `leads to ${address}, which is not in LATCHKEY_ISSUER_NETWORKS`
}

/** This machine, which the setting for tests allows. */
const thisMachine: AddressList = {
  has: (address) => isIP(address) !== 0 && isLoopback(address.includes(':') ? `[${address}]` : address),
}
const nowhere: AddressList = { has: () => false }

/**
 * The networks inside the site that issuers may lie in: those that the operator names, or any; undefined for any. Where several
 * organizations share an installation, none that is not named: an admin of one of them could ask what listens there.
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
