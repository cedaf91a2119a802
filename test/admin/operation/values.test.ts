// Values that no operation takes: what they would mean is not what was written, or must not be echoed.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { OperationName } from '../../../src/admin/operations.ts'
import { type Row, startTestServer, type TestServer } from '../../support/latchkey.ts'

let served: TestServer
beforeAll(async () => {
  served = await startTestServer()
})
afterAll(() => served.stop())

const url = 'http://127.0.0.1:1/v1'
let made = 0
const upstream = (fields: object) => ({ name: `u${made++}`, base_url: url, ...fields })
const refused = async (name: OperationName, input: object) => {
  const error = await served.admin(name, input as Record<string, unknown>).then(
    () => new Error('It was taken'),
    (error: Error) => error,
  )
  expect(error).toMatchObject({ code: 'invalid' })
  return error.message
}

describe('a credential of an upstream', () => {
  for (const credential of [
    'SECRET with a space',
    'SECRET\nORG=acme',
    'SECRETé',
    '',
    'SECRET'.repeat(1_000),
    ['SECRET'],
  ])
    test(`such as ${JSON.stringify(credential).slice(0, 30)} is refused and not echoed`, async () => {
      for (const [name, input] of [
        ['upstreams.add', upstream({ credential })],
        ['upstreams.update', { upstream: 'x', credential }],
      ] as const) {
        const message = await refused(name, input)
        expect(message).toContain('credential must be')
        expect(message).not.toContain('SECRET')
        expect(message).not.toContain('ORG')
      }
    })

  test('may be a text of 4,096 printable characters, or none', async () => {
    for (const credential of ['x'.repeat(4_096), null])
      expect(await served.admin<Row>('upstreams.add', upstream({ credential }))).toMatchObject({
        has_credential: credential !== null,
      })
  })
})

describe('the address of an upstream', () => {
  const rows: [address: string, normal: string | undefined][] = [
    [' http://127.0.0.1:1/v1', 'http://127.0.0.1:1/v1'],
    ['http://127.0.0.1:1/v1\n', 'http://127.0.0.1:1/v1'],
    ['ht\ntp://127.0.0.1:1', 'http://127.0.0.1:1'],
    ['http:\\\\127.0.0.1\\v1', 'http://127.0.0.1/v1'],
    ['http:127.0.0.1', 'http://127.0.0.1'],
    ['http://x/%2e%2e/v1', 'http://x/v1'],
    ['HTTP://X/V1', 'http://x/V1'],
    ['http://x:80/v1', 'http://x/v1'],
    ['ftp://x', undefined],
    ['http://user:SECRET@x/', undefined],
    ['http://x/v1?key=SECRET', undefined],
    ['http://x/v1#SECRET', undefined],
    ['http://a b/', undefined],
  ]
  for (const [address, normal] of rows)
    test(`${JSON.stringify(address)} is refused${normal === undefined ? '' : `, and ${normal} is what was meant`}`, async () => {
      for (const [name, input] of [
        ['upstreams.add', upstream({ base_url: address })],
        ['upstreams.update', { upstream: 'x', base_url: address }],
      ] as const) {
        const message = await refused(name, input)
        expect(message).toContain(normal ?? 'an http:// or https:// address without')
        expect(message).not.toContain('SECRET')
      }
    })

  test('in its normal form is taken, whatever slashes end it', async () => {
    for (const base_url of ['http://127.0.0.1:1', 'http://127.0.0.1:1/', 'http://[::1]:1/v1//', 'https://x/v1;a=b'])
      expect(await served.admin<Row>('upstreams.add', upstream({ base_url }))).toMatchObject({
        base_url: base_url.replace(/\/+$/, ''),
      })
  })
})

describe('an amount of money', () => {
  test('below a billionth of a dollar, which would become nothing, is refused', async () => {
    for (const tiny of [1e-12, 9.9e-10]) {
      await refused('prices.set', { prices: [{ model: 'm', prompt: tiny, completion: 1 }] })
      await refused('prices.set', { prices: [{ model: 'm', prompt: 1, completion: 1, cached: tiny }] })
      await refused('keys.create', { name: `k${made++}`, limit: tiny })
    }
    for (const amount of [0, 1e-9, 1_000_000])
      await served.admin('prices.set', { prices: [{ model: 'm', prompt: amount, completion: amount }] })
  })
})

describe('a time', () => {
  const wrong = [
    '2030-02-30T00:00:00Z',
    '2030-02-30',
    '2031-02-29',
    '2030-04-31T00:00:00Z',
    '2030-13-01',
    '2030-00-01',
    '2030-01-00',
    '2030-01-01T24:00:00Z',
    '2030-01-01T00:60:00Z',
    '2030-01-01T00:00:60Z',
    '2030-01-01T00:00:00-99:00',
    '2030-01-01T00:00:00+00',
    '2030-W01-1',
    '2030',
    '+275760-09-13T00:00:00Z',
    '01/02/2030',
    'tomorrow',
    '',
  ]
  for (const expires_at of wrong)
    test(`${JSON.stringify(expires_at)} is refused`, async () => {
      expect(await refused('keys.create', { name: `k${made++}`, expires_at })).toContain('2026-11-21T09:30:00Z')
      await refused('usage.requests', { since: expires_at })
    })

  const rows: [text: string, time: string][] = [
    ['2030-01-01', '2030-01-01T00:00:00.000Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
    ['2030-01-01T09:30', '2030-01-01T09:30:00.000Z'],
    ['2030-01-01T09:30:15', '2030-01-01T09:30:15.000Z'],
    ['2030-01-01T09:30:15.1234567Z', '2030-01-01T09:30:15.123Z'],
    ['2030-01-01T00:00:00+02:00', '2029-12-31T22:00:00.000Z'],
    ['2030-01-01T00:00:00-05:30', '2030-01-01T05:30:00.000Z'],
  ]
  for (const [expires_at, time] of rows)
    test(`${expires_at} is ${time}, wherever the server stands`, async () => {
      process.env.TZ = 'America/New_York'
      try {
        expect(await served.admin<Row>('keys.create', { name: `k${made++}`, expires_at })).toMatchObject({
          expires_at: time,
        })
      } finally {
        process.env.TZ = 'Etc/UTC'
      }
    })
})

describe('the period of a limit', () => {
  test('is refused where there is no limit, and taken where there is', async () => {
    const name = `k${made++}`
    expect(await refused('keys.create', { name, limit_reset: 'monthly' })).toContain('limit')
    await refused('keys.create', { name, limit: null, limit_reset: 'monthly' })
    await served.admin('keys.create', { name })
    await refused('keys.update', { key: name, limit_reset: 'daily' })
    await served.admin('keys.update', { key: name, limit_reset: null })
    await served.admin('keys.update', { key: name, limit: 5 })
    await served.admin('keys.update', { key: name, limit_reset: 'daily' })
    expect(await served.admin<Row>('keys.update', { key: name, limit: null })).toMatchObject({ limit: null })
    await refused('keys.update', { key: name, limit_reset: 'weekly' })
  })
})
