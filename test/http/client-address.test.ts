// Whose request it is: X-Forwarded-For counts only from trusted proxies, and only the part that they wrote.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { clientAddressOf, networkOf } from '../../src/http/client-address.ts'
import { type AddressList, parseAddressList } from '../../src/values/ip-address.ts'

function listOf(text: string): AddressList {
  const list = parseAddressList(text)
  if (typeof list === 'string') throw new Error(list)
  return list
}

describe('the client', () => {
  const proxies = '10.0.0.0/8,::1'
  const rows: [name: string, peer: string, forwarded: string | undefined, client: string][] = [
    ['is the peer', '203.0.113.1', undefined, '203.0.113.1'],
    ['is the peer, despite its header, unless the peer is a proxy', '203.0.113.1', '1.2.3.4', '203.0.113.1'],
    ['is what the proxy says', '10.0.0.1', '203.0.113.1', '203.0.113.1'],
    ['is what the nearest of two proxies says', '10.0.0.1', '203.0.113.1, 10.0.0.2', '203.0.113.1'],
    ['is not an entry before the ones that proxies wrote', '10.0.0.1', '1.2.3.4, 203.0.113.1', '203.0.113.1'],
    ['is the proxy where it says nothing', '10.0.0.1', undefined, '10.0.0.1'],
    ['is the proxy where it says nonsense', '10.0.0.1', '1.2.3.4, unknown', '10.0.0.1'],
    ['is a proxy where only proxies are named', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['is an IPv4 address also on a socket of both versions', '::ffff:10.0.0.1', '::ffff:203.0.113.1', '203.0.113.1'],
    ['is what a proxy on IPv6 says', '::1', '2001:db8::1', '2001:db8::1'],
    ['is the same however it is spelled', '::1', '2001:0DB8:0:0::0001', '2001:db8::1'],
    ['is the proxy where it says an address of one link', '::1', 'fe80::1%eth0', 'fe80::1%eth0'],
    ['is an address without the port that a proxy writes', '10.0.0.1', '203.0.113.1:50123', '203.0.113.1'],
    ['is a bracketed IPv6 address without its port', '::1', '[2001:db8::1]:50123', '2001:db8::1'],
    ['is a bracketed IPv6 address without a port', '::1', '[2001:0DB8::1]', '2001:db8::1'],
    ['is the IPv4 address in a bracketed IPv6 one', '::1', '[::ffff:203.0.113.1]:80', '203.0.113.1'],
    ['is found before a proxy that wrote its port', '10.0.0.1', '203.0.113.1:9, 10.0.0.2:443', '203.0.113.1'],
    ['is an IPv6 address whose last group looks like a port', '::1', '2001:db8::1:8080', '2001:db8::1:8080'],
    ['is the proxy where the port is too large', '10.0.0.1', '203.0.113.1:65536', '10.0.0.1'],
    ['is the proxy where the port is no number', '10.0.0.1', '203.0.113.1:http', '10.0.0.1'],
    ['is the proxy where the port is missing', '10.0.0.1', '203.0.113.1:', '10.0.0.1'],
    ['is the proxy where brackets hold an IPv4 address', '10.0.0.1', '[203.0.113.1]:80', '10.0.0.1'],
    ['is the proxy where brackets hold a name', '::1', '[client]:80', '::1'],
  ]
  for (const [name, peer, forwarded, client] of rows) {
    test(name, () => {
      const headers: Record<string, string> = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
      expect(clientAddressOf(new Request('http://x/', { headers }), peer, listOf(proxies))).toBe(client)
    })
  }

  test('of a local socket has none', () => {
    expect(clientAddressOf(new Request('http://x/'), null, listOf('0.0.0.0/0'))).toBeNull()
  })
})

describe('a network', () => {
  const rows: [address: string, network: string][] = [
    ['203.0.113.1', '203.0.113.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['2001:db8:1:2::', '2001:db8:1:2'],
    ['', ''],
  ]
  for (const [address, network] of rows)
    test(`of ${address} is ${network}`, () => expect(networkOf(address)).toBe(network))

  test('is the same for all addresses that share their first 64 bits', () => {
    fc.assert(fc.property(fc.ipV6(), (address) => expect(networkOf(address).split(':').length).toBeLessThanOrEqual(4)))
  })
})
