// Where webhooks may lead, their signatures and how long a retry waits.
import { describe, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { retryDelay } from '../../../src/monitoring/alerts/outbox.ts'
import { sendEvent } from '../../../src/monitoring/alerts/send.ts'
import {
  joinSecrets,
  newSecret,
  secretProblem,
  secretsIn,
  signedHeaders,
} from '../../../src/monitoring/alerts/signature.ts'
import { addressProblem, webhookUrlProblem } from '../../../src/monitoring/alerts/webhook-url.ts'
import { addressList } from '../../../src/values/ip-address.ts'

const containing = (problem: string | undefined) =>
  problem === undefined ? undefined : expect.stringContaining(problem)
const networks = addressList('10.1.0.0/16', '127.0.0.0/8')

describe('the URL of a webhook', () => {
  test.each([
    ['https://hooks.example.com/a?b=c', undefined],
    ['https://9.9.9.9/a', undefined],
    ['http://hooks.example.com/a', 'must begin with https://'],
    ['ftp://hooks.example.com/a', 'must begin with https://'],
    ['hooks.example.com', 'is not a URL'],
    ['https://a:b@hooks.example.com/', 'user name'],
    ['https://hooks.example.com/#a', 'fragment'],
    ['https://10.1.0.1/', 'LATCHKEY_WEBHOOK_NETWORKS'],
    ['https://192.168.0.1/', 'LATCHKEY_WEBHOOK_NETWORKS'],
    ['https://127.0.0.1/', 'LATCHKEY_WEBHOOK_NETWORKS'],
    ['https://localhost/', 'LATCHKEY_WEBHOOK_NETWORKS'],
    ['https://[::1]/', 'LATCHKEY_WEBHOOK_NETWORKS'],
    ['https://[fd00::1]/', 'LATCHKEY_WEBHOOK_NETWORKS'],
    ['https://169.254.169.254/latest/meta-data', 'link-local or reserved'],
    ['https://0.0.0.0/', 'link-local or reserved'],
    ['https://2130706433/', 'LATCHKEY_WEBHOOK_NETWORKS'],
  ])('%p without the setting', (url, problem) => {
    expect(webhookUrlProblem(url, undefined)).toEqual(containing(problem))
  })

  test.each([
    ['https://10.1.0.1/', undefined],
    ['http://10.1.0.1:9000/a', undefined],
    ['http://localhost:9000/a', undefined],
    ['http://alerts.internal/', undefined],
    ['http://10.2.0.1/', 'LATCHKEY_WEBHOOK_NETWORKS'],
    ['http://9.9.9.9/', 'use https://'],
    ['https://169.254.169.254/', 'link-local or reserved'],
  ])('%p with 10.1.0.0/16 and 127.0.0.0/8', (url, problem) => {
    expect(webhookUrlProblem(url, networks)).toEqual(containing(problem))
  })

  test('has a bounded length', () => {
    const url = `https://hooks.example.com/${'a'.repeat(2_100)}`
    expect(webhookUrlProblem(url, undefined)).toContain('at most 2048 characters')
  })

  test('with a name is judged by every address that it leads to', () => {
    expect(addressProblem(['9.9.9.9', '10.1.0.1'], false, undefined)).toContain('10.1.0.1')
    expect(addressProblem(['9.9.9.9'], false, undefined)).toBeUndefined()
    expect(addressProblem(['10.1.0.1', '9.9.9.9'], true, networks)).toContain('9.9.9.9')
    expect(addressProblem(['10.1.0.1'], true, networks)).toBeUndefined()
  })

  test('with a name that leads to a private address when the event is sent sends nothing', async () => {
    const sent: string[] = []
    const fetch = async (url: string) => {
      sent.push(url)
      return new Response(null, { status: 204 })
    }
    const context = (address: string) => ({
      outbound: { fetch, resolve: async () => [address], usesProxy: false },
      config: { webhookNetworks: undefined },
      now: () => 0,
    })
    const target = { url: 'https://hooks.example.com/', caPem: null, secrets: [newSecret()] }
    const event = { id: 'msg_1', type: 'webhook.test' as const, at: 0, data: {} }
    expect(await sendEvent(context('192.168.1.1'), target, event)).toMatchObject({ ok: false, isGone: false })
    expect(sent).toEqual([])
    expect(await sendEvent(context('9.9.9.9'), target, event)).toEqual({ ok: true, status: 204 })
    expect(sent).toEqual([target.url])
  })
})

test.each([
  [newSecret(), undefined],
  [Buffer.alloc(24).toString('base64'), undefined],
  [`whsec_${Buffer.alloc(64).toString('base64')}`, undefined],
  [`whsec_${Buffer.alloc(23).toString('base64')}`, '24 to 64 bytes'],
  [`whsec_${Buffer.alloc(65).toString('base64')}`, '24 to 64 bytes'],
  ['not base64 at all, by any means, really', 'base64'],
  ['', '24 to 64 bytes'],
])('the secret %p', (secret, problem) => {
  expect(secretProblem(secret)).toEqual(containing(problem))
})

test('a signature is that of the official package, and covers id, time and body', () => {
  const secret = newSecret()
  const at = Date.now()
  const body = JSON.stringify({ type: 'webhook.test', data: { text: 'Grüße' } })
  const headers = signedHeaders([secret], 'msg_1', at, body)
  const second = new Date(Math.floor(at / 1_000) * 1_000)
  expect(headers['webhook-signature']).toBe(new Webhook(secret).sign('msg_1', second, body))
  const verify = (changed: object, text = body) => new Webhook(secret).verify(text, { ...headers, ...changed })
  expect(verify({})).toEqual(JSON.parse(body))
  expect(() => verify({ 'webhook-id': 'msg_2' })).toThrow()
  expect(() => verify({ 'webhook-timestamp': String(Number(headers['webhook-timestamp']) + 1) })).toThrow()
  expect(() => verify({}, `${body} `)).toThrow()
})

test('for a while after a change, both secrets sign, and receivers verify with either', () => {
  const [before, secret] = [newSecret(), newSecret()]
  const joined = joinSecrets(secret, before, 1_000)
  expect(secretsIn(joined, 999)).toEqual([secret, before])
  expect(secretsIn(joined, 1_000)).toEqual([secret])
  expect(secretsIn(joinSecrets(secret, undefined, 1_000), 0)).toEqual([secret])
  const headers = signedHeaders(secretsIn(joined, 0), 'msg_1', Date.now(), '{}')
  for (const each of [before, secret]) expect(new Webhook(each).verify('{}', headers)).toEqual({})
  expect(() => new Webhook(newSecret()).verify('{}', headers)).toThrow()
})

test('retries wait longer each time, up to about an hour', () => {
  const delays = Array.from({ length: 12 }, (_, index) => retryDelay(index + 1, 0.5))
  expect(delays.slice(0, 4)).toEqual([5_000, 15_000, 45_000, 135_000])
  expect(delays.at(-1)).toBe(3_600_000)
  expect([retryDelay(1, 0), retryDelay(1, 1)]).toEqual([4_000, 6_000])
})
