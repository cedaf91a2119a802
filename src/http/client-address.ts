// Who sends a request: the peer, or the client that a trusted proxy names. It decides nothing about the request.
import { isIP } from 'node:net'
import { type AddressList, parseAddress } from '../values/ip-address.ts'

/**
 * The address of the client. `X-Forwarded-For` counts only from a trusted proxy. It is read from its end, where proxies write, up to the
 * first address that is not a trusted proxy; the client itself may have written everything before that.
 */
export function clientAddressOf(request: Request, peerAddress: string | null, proxies: AddressList): string | null {
  if (peerAddress === null) return null
  // The runtime writes an IPv4 address as we would.
  let client = isIP(peerAddress) === 4 ? peerAddress : (parseAddress(peerAddress)?.toString() ?? peerAddress)
  if (!proxies.has(client)) return client
  const chain = (request.headers.get('x-forwarded-for') ?? '').split(',').reverse()
  for (const entry of chain) {
    const address = parseAddress(withoutPort(entry.trim()))
    if (address === undefined) break
    client = address.toString()
    if (!proxies.has(client)) break
  }
  return client
}

/** The network of one customer of a provider: an IPv4 address, or the first 64 bits of an IPv6 address. Other text is returned unchanged. */
export function networkOf(text: string): string {
  const address = text.includes(':') ? parseAddress(text) : undefined
  if (address === undefined) return text
  if (!('parts' in address)) return address.toString()
  const prefix = address.parts.slice(0, 4).map((part) => part.toString(16))
  return prefix.join(':')
}

/** Some proxies also write the client's port: `192.0.2.1:50123`, `[2001:db8::1]:50123`. Any other text is returned unchanged. */
function withoutPort(entry: string): string {
  const [, bracketed, ipv4, port = '0'] = /^(?:\[([\da-f:.]+)\]|([\d.]+))(?::(\d{1,5}))?$/i.exec(entry) ?? []
  if (Number(port) > 65_535) return entry
  if (bracketed !== undefined) return isIP(bracketed) === 6 ? bracketed : entry
  return ipv4 ?? entry
}
