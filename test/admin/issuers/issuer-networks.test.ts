// Where an installation reaches when it verifies or refreshes an issuer, and what a tenant learns of it: no scan of the networks inside.
import { afterEach, describe, expect, test } from 'bun:test'
import type { IssuerVerification } from '../../../src/admin/issuers/verify-issuer.ts'
import { json } from '../../../src/http/reply.ts'
import { type Row, startTestServer, type TestServer } from '../../support/latchkey.ts'
import { createKeyPair } from '../../support/subject-token.ts'

const failing = (code: string) => () => Promise.reject(Object.assign(new TypeError('It failed'), { code }))
const { publicJwk } = await createKeyPair('ES256', 'es')
const answering = async () => json(200, { keys: [publicJwk] })

type Network = {
  addresses?: string[]
  answer?: () => Promise<Response>
  organizations?: number
  /** Of the management key that calls over HTTP. */
  caller?: { organization?: string }
  settings?: Partial<Record<string, string>>
}
type Site = TestServer & {
  fetched: string[]
  /** Verifies an issuer at a URL: by command, and with a management key over HTTP. */
  verify: (url?: string) => Promise<IssuerVerification>
  verifyOverHttp: (url?: string) => Promise<IssuerVerification>
  overHttp: (path: string, body?: object) => Promise<Response>
  /** An issuer over HTTP. */
  read: (path: string) => Promise<Row>
  /** What the doctor says over HTTP. */
  findings: () => Promise<string>
}

let site: Site | undefined
afterEach(async () => {
  await site?.stop()
  site = undefined
})

const host = 'https://idp.example.com'
const at = (url: string) => ({ issuer_url: url, jwks_url: `${url}/keys` })

/** A server on whose network the names have these addresses and answer so. */
async function startSite({
  addresses = [],
  answer = answering,
  organizations = 1,
  caller = {},
  settings = {},
}: Network): Promise<Site> {
  const fetched: string[] = []
  const test = await startTestServer({
    settings: { LATCHKEY_INSECURE_ISSUERS: 'false', ...settings },
    dependencies: {
      resolve: async () => addresses,
      fetch: (url) => {
        fetched.push(url)
        return answer()
      },
    },
  })
  for (let count = 1; count < organizations; count++)
    await test.admin('organizations.create', { name: `tenant-${count}`, plan: 'business' })
  const { key } = await test.admin<Row & { key: string }>('keys.create', {
    ...{ name: 'admin', kind: 'management', ...caller },
  })
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const overHttp: Site['overHttp'] = (path, body = {}) =>
    fetch(`${test.server.baseUrl}/workload-identity/issuers${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
  site = {
    ...test,
    fetched,
    overHttp,
    read: async (path) => {
      const response = await fetch(`${test.server.baseUrl}/workload-identity/issuers${path}`, { headers })
      return ((await response.json()) as { data: Row }).data
    },
    findings: async () => (await fetch(`${test.server.baseUrl}/workload-identity/findings`, { headers })).text(),
    verify: (url = host) => test.admin('issuers.verify', at(url)),
    verifyOverHttp: async (url = host) =>
      ((await (await overHttp('/verify', at(url))).json()) as { data: IssuerVerification }).data,
  }
  return site
}

describe('with more than one organization', () => {
  const inside: [name: string, url: string, addresses: string[]][] = [
    ['a private address', 'https://10.1.2.3', []],
    ['a private IPv6 address', 'https://[fd12::1]', []],
    ['this machine', 'https://127.0.0.1:8443', []],
    ['this machine by name', 'https://localhost', ['127.0.0.1']],
    ['a name that leads to a private address', host, ['192.168.1.1']],
    ['a name that leads to a private address as well', host, ['9.9.9.9', '172.16.0.1']],
  ]
  for (const [name, url, addresses] of inside) {
    test(`${name} is not asked`, async () => {
      const { verify, verifyOverHttp, fetched } = await startSite({ addresses, organizations: 2 })
      const verification = await verify(url)
      expect(verification.ok).toBe(false)
      expect(verification.checks[0]?.detail).toContain('LATCHKEY_ISSUER_NETWORKS')
      expect((await verifyOverHttp(url)).ok).toBe(false)
      expect(fetched).toEqual([])
    })

    test(`${name} is asked where the operator names its network`, async () => {
      const settings = { LATCHKEY_ISSUER_NETWORKS: '10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,127.0.0.0/8,fc00::/7' }
      const { verify, verifyOverHttp } = await startSite({ addresses, organizations: 2, settings })
      expect([(await verify(url)).ok, (await verifyOverHttp(url)).ok]).toEqual([true, true])
    })

    test(`${name} is asked where there is one organization`, async () => {
      const { verify, verifyOverHttp } = await startSite({ addresses })
      expect([(await verify(url)).ok, (await verifyOverHttp(url)).ok]).toEqual([true, true])
    })
  }

  test('a public address is asked', async () => {
    const { verify, verifyOverHttp } = await startSite({ addresses: ['9.9.9.9'], organizations: 2 })
    expect([(await verify()).ok, (await verifyOverHttp()).ok]).toEqual([true, true])
  })

  test('the second organization counts from the moment in which it is made', async () => {
    const { verify, admin } = await startSite({ addresses: ['10.0.0.1'] })
    expect((await verify()).ok).toBe(true)
    await admin('organizations.create', { name: 'tenant', plan: 'business' })
    expect((await verify()).ok).toBe(false)
  })

  test('issuers of this machine are asked under the setting for tests', async () => {
    const settings = { LATCHKEY_INSECURE_ISSUERS: 'true' }
    const { verify } = await startSite({ organizations: 2, settings })
    expect((await verify('http://127.0.0.1:8080')).ok).toBe(true)
    expect((await verify('https://10.0.0.1')).ok).toBe(false)
  })

  test('a name is fetched from the very address that was looked at', async () => {
    const asked: unknown[] = []
    let resolved = 0
    const test = await startTestServer({
      settings: { LATCHKEY_INSECURE_ISSUERS: 'false' },
      dependencies: {
        // A name whose owner leads it elsewhere once it has been looked at.
        resolve: async () => (resolved++ === 0 ? ['9.9.9.9', '9.9.9.10'] : ['10.0.0.1']),
        fetch: async (url, { address }) => {
          asked.push([url, address])
          return address === '9.9.9.9' ? failing('ECONNREFUSED')() : answering()
        },
      },
    })
    await test.admin('organizations.create', { name: 'tenant', plan: 'business' })
    expect((await test.admin<IssuerVerification>('issuers.verify', at(host))).ok).toBe(true)
    expect(asked).toEqual([
      [`${host}/keys`, '9.9.9.9'],
      [`${host}/keys`, '9.9.9.10'],
    ])
    await test.stop()
  })

  test('a name that cannot be resolved is not asked, unless a proxy resolves it', async () => {
    const { verify, fetched, server } = await startSite({ organizations: 2 })
    expect((await verify()).checks[0]?.detail).toContain('its name cannot be resolved')
    expect(fetched).toEqual([])
    server.context.outbound.usesProxy = true
    expect((await verify()).ok).toBe(true)
  })
})

describe('over HTTP', () => {
  const failures: [name: string, network: Network, told: string][] = [
    ['refuses the connection', { answer: failing('ECONNREFUSED') }, 'nothing listens there'],
    ['is unreachable', { answer: failing('EHOSTUNREACH') }, 'it cannot be reached'],
    ['does not speak TLS', { answer: failing('EPROTO') }, 'it does not speak TLS there'],
    ['closes the connection', { answer: failing('ECONNRESET') }, 'the connection was closed early'],
    ['has the certificate of another', { answer: failing('ERR_TLS_CERT_ALTNAME_INVALID') }, 'another host name'],
    ['has a certificate of nobody', { answer: failing('UNABLE_TO_VERIFY_LEAF_SIGNATURE') }, '--ca-file'],
    ['fails in a new way', { answer: failing('NEW') }, ''],
    ['may not be asked', { addresses: ['10.0.0.1'], organizations: 2 }, 'LATCHKEY_ISSUER_NETWORKS'],
    ['is the service of a cloud', { addresses: ['169.254.169.254'] }, 'reserved'],
    ['has no address', { answer: failing('ENOTFOUND') }, 'its name cannot be resolved'],
  ]
  const tenant = { organizations: 2, caller: { organization: 'tenant-1' } }
  const hidden = `"${host}/keys" could not be fetched; the server log has the reason`

  for (const [name, network, told] of failures) {
    test(`verify has one text for an issuer that ${name}, and a command has the reason`, async () => {
      const { verify, verifyOverHttp, logLines } = await startSite({
        addresses: ['9.9.9.9'],
        ...tenant,
        ...network,
      })
      expect((await verify()).checks[0]?.detail).toStartWith(`"${host}/keys" could not be fetched`)
      expect((await verify()).checks[0]?.detail).toContain(told)
      expect((await verifyOverHttp()).checks).toEqual([{ step: 'keys', ok: false, detail: hidden }])
      expect(logLines.at(-1)).toContain('issuer_verification_failed')
      expect(logLines.at(-1)).toContain(JSON.stringify(told).slice(1, -1))
    })
  }

  test('a refresh has the same text for all of them', async () => {
    for (const [, network, told] of failures) {
      const { admin, overHttp, logLines, stop } = await startSite({
        addresses: ['9.9.9.9'],
        ...tenant,
        ...network,
      })
      await admin('issuers.add', { organization: 'tenant-1', name: 'idp', ...at(host) })
      const response = await overHttp('/idp/refresh')
      expect(response.status).toBe(503)
      expect(await response.json()).toEqual({
        error: { code: 503, message: hidden, metadata: { error_type: expect.any(String) } },
      })
      expect(logLines.join()).toContain(JSON.stringify(told).slice(1, -1))
      const refreshed = admin('issuers.refresh', { organization: 'tenant-1', issuer: 'idp' })
      await expect(refreshed).rejects.toMatchObject({ hint: expect.stringContaining(told) })
      await stop()
      site = undefined
    }
  })

  test('an administrator of the installation gets the reason, and one of another organization does not', async () => {
    const network = { addresses: ['9.9.9.9'], answer: failing('ECONNREFUSED') }
    const told = `"${host}/keys" could not be fetched: nothing listens there`
    const { verifyOverHttp, admin, overHttp, findings, stop } = await startSite(network)
    await admin('issuers.add', { organization: 'default', name: 'idp', ...at(host) })
    expect((await verifyOverHttp()).checks).toEqual([{ step: 'keys', ok: false, detail: told }])
    expect(await (await overHttp('/idp/refresh')).json()).toMatchObject({ error: { message: told } })
    const shown = await admin<Row>('issuers.show', { organization: 'default', issuer: 'idp' })
    expect(shown).toMatchObject({
      ...{ keys_failing_since: expect.any(String), keys_failure: told, keys_usable_until: null },
      keys_fetched_since_start: true,
    })
    expect(await findings()).toContain(JSON.stringify(told).slice(1, -1))
    await stop()
    const other = await startSite({ ...network, ...tenant })
    expect((await other.verifyOverHttp()).checks[0]?.detail).toBe(hidden)
    await other.admin('issuers.add', { ...tenant.caller, name: 'idp', ...at(host) })
    expect(await other.read('/idp')).toMatchObject({ keys_fetched_since_start: false })
    await other.overHttp('/idp/refresh')
    expect(await other.findings()).toContain('the last fetch failed')
    expect(await other.read('/idp')).toMatchObject({ keys_failing_since: expect.any(String), keys_failure: null })
    expect(await other.findings()).not.toContain('nothing listens')
  })

  test('the reason is reported of an address in a network that the operator names', async () => {
    const settings = { LATCHKEY_ISSUER_NETWORKS: '10.0.0.0/8' }
    const network = { answer: failing('ECONNREFUSED'), settings }
    const detail = `"${host}/keys" could not be fetched: nothing listens there`
    const { verify, verifyOverHttp } = await startSite({ ...network, addresses: ['10.0.0.1'], organizations: 2 })
    for (const { checks } of [await verify(), await verifyOverHttp()]) expect(checks[0]?.detail).toBe(detail)
    await site?.stop()
    const mixed = await startSite({ ...network, ...tenant, addresses: ['10.0.0.1', '9.9.9.9'] })
    expect((await mixed.verifyOverHttp()).checks[0]?.detail).toBe(hidden)
  })

  test('what an issuer answers is reported, since its certificate has proved whose it is', async () => {
    const { verifyOverHttp } = await startSite({ answer: async () => new Response('', { status: 404 }) })
    expect((await verifyOverHttp()).checks[0]?.detail).toBe(`"${host}/keys" answered 404`)
  })
})
