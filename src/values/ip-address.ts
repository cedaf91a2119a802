// IP addresses and lists of networks, as settings, proxies and name servers write them.
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

export type IpAddress = ReturnType<typeof ipaddr.process>

/** `has` accepts any text, and finds an address of its networks in every spelling. */
export type AddressList = { has: (address: string) => boolean }

/** The address that a text spells, an IPv4-mapped one as IPv4; undefined for other text and for a zone that is not alphanumeric. */
export function parseAddress(text: string): IpAddress | undefined {
  // The library alone would also read `127.1` and `0x7f000001`, and `::1.2.3.4` as `::ffff:1.2.3.4`.
  const plain = text.replace(/^::(?=\d+\.)/, '::0:')
  return isIP(text) === 0 || !ipaddr.isValid(plain) ? undefined : ipaddr.process(plain)
}

/** Reads `10.0.0.0/8,::1`. Returns the first entry that is neither an address nor a network, as it was written. */
export function parseAddressList(text: string): AddressList | string {
  const entries = text.split(',').map((entry) => entry.trim())
  const networks: Network[] = []
  for (const entry of entries.filter((each) => each !== '')) {
    const network = parseNetwork(entry)
    if (network === undefined) return entry
    networks.push(network)
  }
  return listOf(networks)
}

/** The same from networks that this program names. @throws an error for anything else */
export function addressList(...entries: string[]): AddressList {
  return listOf(entries.map((entry) => parseNetwork(entry) ?? raise(entry)))
}

type Network = [address: IpAddress, bits: number]

function listOf(networks: Network[]): AddressList {
  return {
    has: (text) => {
      const address = networks.length === 0 ? undefined : parseAddress(text)
      return address !== undefined && ipaddr.subnetMatch(address, { listed: networks }, '') === 'listed'
    },
  }
}

function parseNetwork(entry: string): Network | undefined {
  const [text = '', prefix, more] = entry.split('/')
  const address = parseAddress(text)
  const bitsMax = text.includes(':') ? 128 : 32
  const bits = Number(prefix ?? bitsMax)
  const isPrefix = prefix === undefined || (/^\d{1,3}$/.test(prefix) && bits <= bitsMax)
  if (address === undefined || !isPrefix || more !== undefined) return undefined
  if (bitsMax === 32 || address.kind() === 'ipv6') return [address, bits]
  // A network of IPv4-mapped addresses holds the IPv4 ones, which is how they are looked up.
  return bits >= 96 ? [address, bits - 96] : [ipaddr.parse(text), bits]
}

function raise(entry: string): never {
  throw new Error(`${JSON.stringify(entry)} is not an address or network`)
}
