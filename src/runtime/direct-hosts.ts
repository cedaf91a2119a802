// Which hosts are never reached through a proxy: this machine, its links and the metadata services of clouds. Their
// requests carry credentials that are not meant to leave the machine. Go's `http.ProxyFromEnvironment` exempts loopback.
import { BlockList, isIP } from 'node:net'

/** The metadata services of AWS, Google, Azure and Alibaba Cloud lie outside the link-local ranges, too. */
const ranges = [
  ...['127.0.0.0/8', '::1/128', '0.0.0.0/32', '::/128', '::ffff:127.0.0.0/104', '::ffff:0.0.0.0/128'],
  ...['169.254.0.0/16', 'fe80::/10', '::ffff:169.254.0.0/112'],
  ...['fd00:ec2::254/128', 'fd20:ce::254/128', '168.63.129.16/32', '100.100.100.200/32'],
]
const names = ['localhost', 'metadata.google.internal', 'metadata.goog']

/** The same hosts as `isDirect`, in the form of the variable NO_PROXY of Bun and Deno. */
export const directHosts: readonly string[] = [...ranges, ...names, ...names.map((name) => `${name}.`)]

const addresses = new BlockList()
for (const range of ranges) {
  const [address = '', bits] = range.split('/')
  addresses.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

/** Whether a URL leads to one of these hosts. */
export function isDirect(url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[|\]$|\.$/g, '')
  const version = isIP(host)
  if (version !== 0) return addresses.check(host, version === 6 ? 'ipv6' : 'ipv4')
  return names.some((name) => host === name || host.endsWith(`.${name}`))
}

/** The variables from which Bun, Deno and Node take a proxy. */
export const proxyVariables = ['http_proxy', 'HTTP_PROXY', 'https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY']
