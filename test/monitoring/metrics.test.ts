// What a scrape returns, and to whom: counts of what happened, bounded labels, nothing that identifies a caller.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { labelValuesMax } from '../../src/limits.ts'
import { createMetricsReport, metricsText } from '../../src/monitoring/metrics-report.ts'
import {
  type Federation,
  type Row,
  startFederation,
  startTestServer,
  subject,
  temporaryFolder,
} from '../support/latchkey.ts'
import { openRawRequest } from '../support/raw-request.ts'

let federation: Federation
let metricsUrl: string
beforeAll(async () => {
  federation = await startFederation({ settings: { LATCHKEY_METRICS_LISTEN: '127.0.0.1:0' } })
  const address = federation.server.metricsAddress
  if (address === undefined || 'socketPath' in address) throw new Error('Metrics are not served')
  metricsUrl = `http://127.0.0.1:${address.port}/metrics`
})
afterAll(() => federation.stop())

/** The value of a series as it is written, labels included; undefined when there is no matching line. */
function findValue(text: string, series: string): number | undefined {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

const scrape = async () => (await fetch(metricsUrl)).text()

function infer(credential: string, body: object = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }) {
  return fetch(`${federation.server.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

test('an exchange, an inference request and a refusal are counted', async () => {
  const before = await scrape()
  const issued = await federation.exchange(await federation.mint())
  const { access_token } = (await issued.json()) as { access_token: string }
  expect((await federation.exchange(await federation.mint({ sub: 'someone' }))).status).toBe(400)
  expect((await infer(access_token)).status).toBe(200)
  expect((await infer('sk-lk-v1-none')).status).toBe(401)
  const after = await scrape()
  const ofMismatch = 'reason="subject_mismatch",grant="token-exchange"'
  const grown = (series: string) => (findValue(after, series) ?? 0) - (findValue(before, series) ?? 0)
  expect(grown('latchkey_exchanges_total{organization="default",outcome="issued",grant="token-exchange"}')).toBe(1)
  expect(grown(`latchkey_exchanges_total{organization="default",outcome="refused",${ofMismatch}}`)).toBe(1)
  expect(grown('latchkey_exchange_duration_seconds_count{organization="default",outcome="issued"}')).toBe(1)
  const labels = 'organization="default",endpoint="/chat/completions"'
  expect(grown(`latchkey_inference_requests_total{${labels},model="m",upstream="configured",code="2xx"}`)).toBe(1)
  expect(grown(`latchkey_inference_duration_seconds_count{${labels}}`)).toBe(1)
  expect(grown(`latchkey_inference_first_byte_seconds_count{${labels}}`)).toBe(1)
  expect(grown('latchkey_tokens_total{organization="default",kind="prompt",model="m",key="target"}')).toBeGreaterThan(0)
  expect(grown('latchkey_refusals_total{reason="token_invalid"}')).toBe(1)
  expect(grown('latchkey_commit_duration_seconds_count')).toBeGreaterThanOrEqual(3)
  expect(findValue(after, 'latchkey_upstream_up{upstream="configured"}')).toBe(1)
  expect(findValue(after, 'latchkey_ready')).toBe(1)
  const isFile = federation.server.context.database.kind === 'file'
  expect(findValue(after, 'latchkey_database_read_seconds')).toBe(isFile ? 0 : undefined)
  const logBytes = findValue(after, 'latchkey_wal_bytes')
  expect((logBytes ?? 0) > 0).toBe(isFile)
  expect(findValue(after, 'process_resident_memory_bytes')).toBeGreaterThan(1e6)
})

test('the keys of an issuer have an age and an end, and failed fetches are counted', async () => {
  const text = await scrape()
  const labels = '{organization="default",issuer="idp"}'
  expect(findValue(text, `latchkey_issuer_keys_age_seconds${labels}`)).toBeLessThan(60)
  expect(findValue(text, `latchkey_issuer_keys_expire_timestamp_seconds${labels}`)).toBeGreaterThan(Date.now() / 1_000)
  expect(findValue(text, `latchkey_issuer_fetch_failures_total${labels}`)).toBe(0)
})

test('the issuers of one organization leave room for those of another', async () => {
  const { context } = federation.server
  const [own] = context.registry.issuers.values()
  if (own === undefined) throw new Error('There is no issuer')
  const others = Array.from({ length: labelValuesMax }, (_, index) => {
    const id = `other-${index}`
    return [id, { ...own, id, name: id, organizationId: 'other' }] as const
  })
  const registry = { ...context.registry, issuers: new Map([...others, [own.id, own]]) }
  // An issuer that fails more often comes first.
  const stateOf = (issuer: object) => ({
    failures: issuer === own ? 0 : 1,
    failuresTotal: 1,
    fetches: 1,
    keySet: undefined,
  })
  const text = await metricsText(
    { ...context, registry, issuerKeys: { ...context.issuerKeys, stateOf } },
    own.organizationId,
  )
  expect(text).toContain('latchkey_issuer_fetch_failures_total{organization="default",issuer="idp"}')
  expect(text).not.toContain('other-')
})

test('a budget and what was spent of it are shown once the key is used', async () => {
  const { key } = await federation.admin<Row & { key: string }>('keys.create', { name: 'bounded', limit: 5 })
  expect((await infer(key)).status).toBe(200)
  const text = await scrape()
  expect(findValue(text, 'latchkey_key_limit_usd{organization="default",key="bounded"}')).toBe(5)
  expect(findValue(text, 'latchkey_key_spent_usd{organization="default",key="bounded"}')).toBe(0)
})

test('no series has a subject, a token id, an address, a request id or a credential', async () => {
  const issued = await federation.exchange(await federation.mint({ jti: 'jti-of-a-token' }))
  const text = await scrape()
  const secrets = [
    subject,
    'jti-of-a-token',
    '127.0.0.1',
    String(issued.headers.get('x-request-id')),
    'sk-lk',
    federation.key.id,
  ]
  for (const secret of secrets) expect(text).not.toContain(secret)
})

describe('the metrics address', () => {
  test('has one path, and reads only', async () => {
    expect((await fetch(metricsUrl.replace('/metrics', '/v1/keys'))).status).toBe(404)
    expect((await fetch(metricsUrl, { method: 'POST' })).status).toBe(405)
    const head = await fetch(metricsUrl, { method: 'HEAD' })
    expect([head.status, head.headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
  })

  test('does not respond to a page in a browser, whose name leads here (DNS rebinding)', async () => {
    const statusFor = async (host: string) => (await openRawRequest(metricsUrl, 'GET', { host }).answer).status
    const { port } = new URL(metricsUrl)
    for (const host of ['attacker.example', `attacker.example:${port}`, 'localhost.attacker.example'])
      expect([host, await statusFor(host)]).toEqual([host, 421])
    for (const host of ['localhost', `127.0.0.1:${port}`, '[::1]', `[::1]:${port}`, 'LOCALHOST:1'])
      expect([host, await statusFor(host)]).toEqual([host, 200])
  })

  test('renders one text for scrapes at the same time', async () => {
    const { metrics } = federation.server.context
    const { read } = metrics
    let renderings = 0
    metrics.read = (live) => {
      renderings += 1
      return read(live)
    }
    const report = createMetricsReport(federation.server.context)
    const texts = await Promise.all(Array.from({ length: 20 }, () => report()))
    expect([renderings, new Set(texts).size]).toEqual([1, 1])
    await report()
    expect(renderings).toBe(2)
    metrics.read = read
  })

  test('that is in use stops the start, with the name of the setting', async () => {
    const { host } = new URL(metricsUrl)
    const starting = startTestServer({ settings: { LATCHKEY_METRICS_LISTEN: host } })
    await expect(starting).rejects.toThrow(
      `Cannot listen on ${host}: the address is in use; choose a different one with LATCHKEY_METRICS`,
    )
  })

  test('may be a socket, which goes when the server stops', async () => {
    const folder = temporaryFolder()
    const unix = join(folder.path, 'metrics.sock')
    const server = await startFederation({ settings: { LATCHKEY_METRICS_LISTEN: `unix:${unix}` } })
    const response = await fetch('http://localhost/metrics', { unix })
    expect(await response.text()).toContain('latchkey_build_info{version="')
    expect(statSync(unix).mode & 0o777).toBe(0o660)
    await server.stop()
    expect(existsSync(unix)).toBe(false)
    folder.remove()
  })
})

describe('/v1/metrics', () => {
  const ask = (key: string) =>
    fetch(`${federation.server.baseUrl}/metrics`, { headers: { authorization: `Bearer ${key}` } })
  const createKey = async (kind: string, organization = 'default') =>
    (await federation.admin<Row & { key: string }>('keys.create', { name: `${kind} key`, kind, organization })).key

  test('needs a management key, read-only is enough, and shows everything to the only organization', async () => {
    expect((await ask(federation.key.key)).status).toBe(403)
    expect((await fetch(`${federation.server.baseUrl}/metrics`)).status).toBe(401)
    const response = await ask(await createKey('management_read_only'))
    expect(response.status).toBe(200)
    const text = await response.text()
    expect(text).toContain('latchkey_ready ')
    expect(text).toContain('organization="default"')
  })

  test('shows only the series of the own organization when there are several', async () => {
    await federation.admin('organizations.create', { name: 'acme' })
    const ofDefault = await (await ask(await createKey('management'))).text()
    const ofAcme = await (await ask(await createKey('management', 'acme'))).text()
    expect(ofDefault).toContain('latchkey_exchanges_total{organization="default"')
    expect(ofDefault).not.toContain('latchkey_ready ')
    expect(ofAcme).not.toContain('default')
    expect(await scrape()).toContain('latchkey_ready ')
  })
})
