// Who sends a request: the peer, or what a trusted proxy says of it. It decides nothing about the request.
import { BlockList, isIP } from 'node:net'

export type AddressList = { has: (address: string) => boolean }

const nobody: AddressList = { has: () => false }

/** Reads `10.0.0.0/8,::1`; answers the first entry that is neither an address nor a network, as it stands there. */
export function parseAddressList(text: string): AddressList | string {
  if (text.trim() === '') return nobody
  const list = new BlockList()
  for (const entry of text.split(',').map((part) => part.trim())) {
    if (entry === '') continue
    const [address = '', prefix, more] = entry.split('/')
    const version = isIP(address)
    const bits = prefix === undefined ? undefined : Number(prefix)
    const isPrefix = bits === undefined || (/^\d{1,3}$/.test(prefix ?? '') && bits <= (version === 4 ? 32 : 128))
    if (version === 0 || more !== undefined || !isPrefix) return entry
    const family = version === 4 ? 'ipv4' : 'ipv6'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, bits, family)
  }
  return { has: (address) => isIP(address) !== 0 && list.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6') }
}

/**
 * The address of the client. `X-Forwarded-For` counts only from a trusted proxy, and is read from its end, where the proxies write: up
 * to the first address that is no proxy of ours. What stands before that the client may have written itself.
 */
export function clientAddressOf(request: Request, peerAddress: string | null, proxies: AddressList): string | null {
  if (peerAddress === null) return null
  let client = plainAddress(peerAddress)
  if (!proxies.has(client)) return client
  const chain = (request.headers.get('x-forwarded-for') ?? '').split(',').reverse()
  for (const entry of chain) {
    const address = canonicalAddress(plainAddress(withoutPort(entry.trim())))
    if (isIP(address) === 0) break
    client = address
    if (!proxies.has(client)) break
  }
  return client
}

/** What one customer of a network provider holds: an IPv4 address, or the first 64 bits of an IPv6 one. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const [head = '', tail] = address.split('::')
  const [before, after] = [head, tail ?? ''].map((part) => (part === '' ? [] : part.split(':')))
  const missing = tail === undefined ? 0 : Math.max(0, 8 - (before?.length ?? 0) - (after?.length ?? 0))
  return [...(before ?? []), ...Array(missing).fill('0'), ...(after ?? [])].slice(0, 4).join(':')
}

/** An IPv6 address has many spellings, and a proxy may pass on whichever it got. */
function canonicalAddress(address: string): string {
  if (isIP(address) !== 6 || address.includes('%')) return address
  return new URL(`http://[${address}]`).hostname.slice(1, -1)
}

/** Some proxies write the client's port too: `192.0.2.1:50123`, `[2001:db8::1]:50123`. Anything else stays as it is. */
function withoutPort(entry: string): string {
  const [, bracketed, ipv4, port = '0'] = /^(?:\[([\da-f:.]+)\]|([\d.]+))(?::(\d{1,5}))?$/i.exec(entry) ?? []
  if (Number(port) > 65_535) return entry
  if (bracketed !== undefined) return isIP(bracketed) === 6 ? bracketed : entry
  return ipv4 ?? entry
}

/** A socket that takes both versions tells an IPv4 address as an IPv6 one. */
function plainAddress(address: string): string {
  if (!address.startsWith('::')) return address
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address
}
