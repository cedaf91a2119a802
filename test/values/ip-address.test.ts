// Lists of networks find an address in whatever spelling, and take no text for an address that the runtime would not connect to.
import { describe, expect, test } from 'bun:test'
import { isIP } from 'node:net'
import fc from 'fast-check'
import { type AddressList, addressList, parseAddress, parseAddressList } from '../../src/values/ip-address.ts'

function listOf(text: string): AddressList {
  const list = parseAddressList(text)
  if (typeof list === 'string') throw new Error(list)
  return list
}

describe('a list of addresses', () => {
  const rows: [list: string, address: string, isIn: boolean][] = [
    ['10.0.0.0/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.1', false],
    ['10.0.0.1', '10.0.0.1', true],
    ['10.0.0.1', '10.0.0.2', false],
    [' 10.0.0.1 , fd00::/8 ', 'fd12::1', true],
    ['0.0.0.0/0', '203.0.113.9', true],
    ['0.0.0.0/0', '::1', false],
    ['', '10.0.0.1', false],
    ['10.0.0.0/8', 'nonsense', false],
    ['10.0.0.0/8', '::ffff:10.0.0.1', true],
    ['::ffff:10.0.0.0/104', '10.255.0.1', true],
    ['::ffff:10.0.0.0/104', '11.0.0.1', false],
    ['fe80::/10', 'fe80::1%eth0', true],
  ]
  for (const [list, address, isIn] of rows)
    test(`${list} ${isIn ? 'has' : 'has not'} ${address}`, () => expect(listOf(list).has(address)).toBe(isIn))

  for (const wrong of ['10.0.0', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/8/8', '::1/129', '10.0.0.0/-1', 'proxy.local'])
    test(`rejects ${wrong} and returns it`, () => expect(parseAddressList(`127.0.0.1,${wrong}`)).toBe(wrong))

  test('of the program itself fails loudly when it holds anything else', () => {
    expect(() => addressList('10.0.0.0/8', 'proxy.local')).toThrow('"proxy.local" is not an address or network')
  })
})

describe('an address', () => {
  for (const text of ['127.1', '0x7f000001', '2130706433', '010.0.0.1', '1.2.3', '', 'localhost'])
    test(`is not read from ${JSON.stringify(text)}`, () => expect(parseAddress(text)).toBeUndefined())

  test('is read from every text that the runtime takes for one, and keeps its value', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (text) => {
        const address = parseAddress(text)
        expect(address === undefined).toBe(isIP(text) === 0)
        expect(parseAddress(address?.toString() ?? '')?.toByteArray()).toEqual(address?.toByteArray())
      }),
    )
  })

  test('that embeds IPv4 without being IPv4-mapped stays IPv6', () => {
    expect(parseAddress('::10.0.0.1')?.toString()).toBe('::a00:1')
    expect(parseAddress('::ffff:10.0.0.1')?.toString()).toBe('10.0.0.1')
  })
})
