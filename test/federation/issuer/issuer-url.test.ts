// The networks that an issuer's address is compared with: each at its first and last address, and the addresses beside it.
import { describe, expect, test } from 'bun:test'
import { objectionToNetwork, urlProblem } from '../../../src/federation/issuer/issuer-url.ts'
import { parseAddressList } from '../../../src/values/ip-address.ts'

const somewhere = parseAddressList('203.0.113.0/24')
if (typeof somewhere === 'string') throw new Error(somewhere)

const judge = (address: string, networks: typeof somewhere | undefined) => {
  const objection = objectionToNetwork(address, networks)
  if (objection === undefined) return 'allowed'
  return objection.includes('reserved') ? 'reserved' : 'inside'
}

describe('an address that no issuer may have, whatever networks are set:', () => {
  const rows: [entry: string, addresses: string[]][] = [
    ['0.0.0.0/8', ['0.0.0.0', '0.0.0.1', '0.255.255.255']],
    ['169.254.0.0/16', ['169.254.0.0', '169.254.169.254', '169.254.255.255']],
    ['100.100.100.200', ['100.100.100.200']],
    ['192.0.0.192', ['192.0.0.192']],
    ['168.63.129.16', ['168.63.129.16']],
    ['224.0.0.0/3', ['224.0.0.0', '239.255.255.255', '240.0.0.1', '255.255.255.255']],
    ['::/96', ['::', '::2', '::a9fe:a9fe', '::ffff:ffff']],
    ['::ffff:0:0:0/96', ['::ffff:0:0:0', '::ffff:0:a9fe:a9fe', '::ffff:0:ffff:ffff']],
    ['64:ff9b::/96', ['64:ff9b::', '64:ff9b::a9fe:a9fe', '64:ff9b::ffff:ffff']],
    ['64:ff9b:1::/48', ['64:ff9b:1::', '64:ff9b:1:ffff:ffff:ffff:ffff:ffff']],
    ['2002::/16', ['2002::', '2002:a9fe:a9fe::', '2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff']],
    ['2001::/32', ['2001::', '2001:0:ffff:ffff:ffff:ffff:ffff:ffff']],
    ['fe80::/10', ['fe80::', 'fe80::1', 'febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff']],
    ['fd00:ec2::254', ['fd00:ec2::254']],
    ['fd20:ce::254', ['fd20:ce::254']],
    ['ff00::/8', ['ff00::', 'ff02::1', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff']],
    [
      'the same, read from ::ffff:0:0/96',
      ['::ffff:169.254.169.254', '::ffff:a9fe:a9fe', '::ffff:0.0.0.0', '::FFFF:224.0.0.1'],
    ],
  ]
  for (const [entry, addresses] of rows) {
    test(entry, () => {
      for (const address of addresses) {
        expect(judge(address, undefined)).toBe('reserved')
        expect(judge(address, { has: () => true })).toBe('reserved')
        const host = address.includes(':') ? `[${address}]` : address
        expect(urlProblem(`https://${host}/keys`, true)).toContain('reserved')
      }
    })
  }
})

describe('an address that is not public, which has to be in a network that is set:', () => {
  const rows: [entry: string, addresses: string[]][] = [
    ['10.0.0.0/8', ['10.0.0.0', '10.255.255.255']],
    ['100.64.0.0/10', ['100.64.0.0', '100.127.255.255']],
    ['127.0.0.0/8', ['127.0.0.0', '127.255.255.255']],
    ['172.16.0.0/12', ['172.16.0.0', '172.31.255.255']],
    ['192.168.0.0/16', ['192.168.0.0', '192.168.255.255']],
    ['::1', ['::1']],
    ['fc00::/7', ['fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff']],
    ['fec0::/10, the former site-local addresses', ['fec0::', 'feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff']],
    ['192.0.0.0/24', ['192.0.0.0', '192.0.0.191', '192.0.0.193', '192.0.0.255']],
    ['198.18.0.0/15, for benchmarks', ['198.18.0.0', '198.19.255.255']],
    ['the documentation networks', ['192.0.2.1', '198.51.100.1', '2001:db8::1', '3fff::1']],
    ['2001::/23, for protocols', ['2001:1::', '2001:1ff:ffff::']],
    ['the same, read from ::ffff:0:0/96', ['::ffff:10.0.0.1', '::ffff:a00:1', '::ffff:127.0.0.1']],
  ]
  for (const [entry, addresses] of rows) {
    test(entry, () => {
      for (const address of addresses) {
        expect(judge(address, somewhere)).toBe('inside')
        expect(judge(address, { has: () => true })).toBe('allowed')
      }
    })
  }
})

test('an address beside an entry is public', () => {
  const beside = [
    ...['1.0.0.0', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255', '128.0.0.0'],
    ...['168.63.129.15', '168.63.129.17', '169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0'],
    ...[
      '191.255.255.255',
      '192.0.1.0',
      '192.167.255.255',
      '192.169.0.0',
      '198.17.255.255',
      '198.20.0.0',
      '223.255.255.255',
    ],
    ...['::1:0:0', '::fffe:ffff:ffff:ffff', '::ffff:1:0:0', '64:ff9b::1:0:0', '64:ff9b:2::', '2001:200::', '2003::'],
    ...['2001:db7::1', '2001:db9::1', 'fbff::'],
  ]
  expect(beside.map((address) => [address, judge(address, somewhere)])).toEqual(
    beside.map((address) => [address, 'allowed']),
  )
})

describe('credentials in an address are refused:', () => {
  for (const [name, address] of [
    ['a user name alone', 'https://user@idp.example.com/'],
    ['a password alone', 'https://:secret@idp.example.com/'],
    ['both', 'https://user:secret@idp.example.com/'],
  ] as const)
    test(name, () => expect(urlProblem(address, true)).toBe('may not hold a user name or password'))
})
