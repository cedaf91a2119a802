// Fetching from an issuer: which addresses are allowed, and that size, time and redirects are bounded while the bytes arrive.
import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describeError, Fault, tellForCommands } from '../../../src/fault.ts'
import { fetchDocument, type Outbound } from '../../../src/federation/issuer/guarded-fetch.ts'
import { objectionToIssuerUrl, objectionToNetwork, urlProblem } from '../../../src/federation/issuer/issuer-url.ts'
import type { Fetch } from '../../../src/runtime/outbound.ts'
import { outboundFetch } from '../../../src/runtime/outbound.ts'
import { parseAddressList } from '../../../src/values/ip-address.ts'
import { listenLocally } from '../../support/latchkey.ts'

const url = 'https://idp.example.com/keys'
const bytesMax = 256 * 1024

describe('an address', () => {
  const good = [
    'https://idp.example.com',
    'https://idp.example.com:8443/a/b',
    'https://[2001:db8::1]/keys',
    'https://localhost/',
  ]
  for (const address of good) test(`${address} is allowed`, () => expect(urlProblem(address, false)).toBeUndefined())

  const loopback = ['http://localhost:8080', 'http://127.0.0.1/keys', 'http://127.1.2.3', 'http://[::1]:1/keys']
  for (const address of loopback) {
    test(`${address} is allowed only with the insecure setting`, () => {
      expect(urlProblem(address, true)).toBeUndefined()
      expect(urlProblem(address, false)).toContain('LATCHKEY_INSECURE_ISSUERS')
    })
  }

  const bad = [
    'http://idp.example.com',
    'http://localhost.evil.example',
    'http://127.0.0.1.evil.example',
    'http://0.0.0.0',
    'http://169.254.169.254/latest/meta-data',
    'http://[::ffff:127.0.0.1]',
    'ftp://idp.example.com',
    'file:///etc/passwd',
    'data:application/json,{}',
    'https://user@idp.example.com',
    'https://user:password@idp.example.com',
    'https://idp.example.com/#fragment',
    ' https://idp.example.com',
    'https://idp.example.com/a b',
    'idp.example.com',
    '/keys',
    '',
    `https://idp.example.com/${'x'.repeat(2_048)}`,
  ]
  for (const address of bad) {
    test(`${address.slice(0, 60)} is refused`, () => expect(urlProblem(address, true)).toBeString())
  }

  test('of a key set may have a query, an issuer URL may not', () => {
    const address = 'https://idp.example.com/keys?p=policy'
    expect(urlProblem(address, false)).toBeUndefined()
    expect(objectionToIssuerUrl(address, false)).toContain('query')
    expect(objectionToIssuerUrl('https://idp.example.com', false)).toBeUndefined()
    expect(objectionToIssuerUrl('http://idp.example.com', false)).toBeString()
    expect(objectionToIssuerUrl('https://login.microsoftonline.com/{tenantid}/v2.0', false)).toContain('placeholder')
  })

  const sameByIpv6 = ['[64:ff9b::a9fe:a9fe]', '[2002:a9fe:a9fe::]', '[::a9fe:a9fe]', '[fd20:ce::254]']
  for (const host of [
    '169.254.169.254',
    '[fe80::1]',
    '[::ffff:169.254.169.254]',
    '0.0.0.0',
    '2852039166',
    ...sameByIpv6,
    '168.63.129.16',
  ])
    test(`https://${host} is refused as a link-local or reserved address`, () =>
      expect(urlProblem(`https://${host}/keys`, true)).toContain('reserved'))

  test('that is a name is nothing to object to by its network', () => {
    expect(objectionToNetwork('idp.example.com', undefined)).toBeUndefined()
  })

  test('is never allowed on plain http beyond this machine, whatever the host', () => {
    fc.assert(
      fc.property(fc.domain(), fc.webPath(), (host, path) => {
        expect(urlProblem(`http://${host}${path}`, true)).toBeString()
      }),
    )
  })
})

const way: Outbound = {
  fetch: () => Promise.reject(new Error('Not to be asked')),
  resolve: async () => [],
  insecureIssuers: false,
  usesProxy: false,
  privateNetworks: () => undefined,
}

/** A way out that answers as configured and remembers how it was asked. */
function fetching(answer: (url: string) => Response | Promise<Response>, change: Partial<Outbound> = {}) {
  const asked: { url: string; init: RequestInit }[] = []
  const fetch: Fetch = async (at, init) => {
    asked.push({ url: at, init })
    return answer(at)
  }
  return { asked, outbound: { ...way, fetch, ...change } }
}

async function faultOf(answer: () => Response | Promise<Response>): Promise<Fault> {
  const outcome = await fetchDocument(fetching(answer).outbound, url, null).catch((error: unknown) => error)
  expect(outcome).toBeInstanceOf(Fault)
  expect(outcome).toHaveProperty('code', 'unavailable')
  return outcome as Fault
}

/** A body in chunks that a test can look at: how many were taken, and whether the rest was refused. */
function bodyOf(chunk: Uint8Array, chunks: number) {
  const seen = { pulled: 0, cancelled: false }
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        if (seen.pulled++ < chunks) controller.enqueue(chunk)
        else controller.close()
      },
      cancel: () => {
        seen.cancelled = true
      },
    },
    { highWaterMark: 0 },
  )
  return { seen, body }
}

describe('a document', () => {
  test('is fetched without following redirects and without credentials', async () => {
    const headers = { 'cache-control': 'max-age=5', date: 'now' }
    const { asked, outbound } = fetching(() => new Response('{"a":1}', { headers }))
    const expected = { document: { a: 1 }, cacheControl: 'max-age=5', date: 'now' }
    expect(await fetchDocument(outbound, url, null)).toEqual(expected)
    expect(asked).toHaveLength(1)
    expect(asked[0]?.url).toBe(url)
    expect(asked[0]?.init).toMatchObject({ redirect: 'manual', headers: { accept: 'application/json' } })
  })

  test('is not fetched at all from an address that is not allowed', async () => {
    const { asked, outbound } = fetching(() => new Response('{}'), { insecureIssuers: true })
    await expect(fetchDocument(outbound, 'http://idp.example.com', null)).rejects.toBeInstanceOf(Fault)
    expect(asked).toEqual([])
  })

  for (const status of [201, 204, 300, 304, 400, 404, 500]) {
    test(`is refused with status ${status}, its body unread`, async () => {
      const { seen, body } = bodyOf(Buffer.from('{}'), 1)
      const fault = await faultOf(
        () => new Response(status === 204 ? null : body, { status, headers: { location: '/elsewhere' } }),
      )
      expect(fault.message).toContain(String(status))
      expect(seen.pulled).toBe(0)
    })
  }

  const redirects: [location: string, outcome: string][] = [
    ['/moved', 'found'],
    ['moved?a=b', 'found'],
    ['https://idp.example.com/moved', 'found'],
    ['https://idp.example.com:443/moved', 'found'],
    ['https://idp.example.com:8443/moved', 'another origin'],
    ['https://evil.example/moved', 'another origin'],
    ['http://idp.example.com/moved', 'another origin'],
    ['//evil.example/moved', 'another origin'],
    ['https://idp.example.com@evil.example/', 'another origin'],
    ['https://user:secret@idp.example.com/moved', 'user name or password'],
    ['https://', 'another origin'],
    ['/keys', 'redirects more than 3 times'],
  ]
  for (const [location, expected] of redirects) {
    for (const status of [301, 302, 303, 307, 308]) {
      test(`that is ${status} at ${location}: ${expected}`, async () => {
        const { asked, outbound } = fetching((at) =>
          at === url ? new Response('x', { status, headers: { location } }) : Response.json({ found: true }),
        )
        const outcome = await fetchDocument(outbound, url, null).then(
          ({ document }) => (document as { found?: true }).found && 'found',
          (error: Fault) => error.message,
        )
        expect(outcome).toContain(expected)
        expect(asked.every((each) => new URL(each.url).host === 'idp.example.com')).toBe(true)
        expect(asked.length).toBeLessThanOrEqual(4)
      })
    }
  }

  test('that has moved is fetched after exactly 3 redirects, and not after 4', async () => {
    const movedTimes = (times: number) =>
      fetching((at) => {
        const next = Number(new URL(at).searchParams.get('n') ?? 0) + 1
        return next > times
          ? Response.json({ found: true })
          : new Response(null, { status: 302, headers: { location: `?n=${next}` } })
      })
    const three = movedTimes(3)
    expect((await fetchDocument(three.outbound, url, null)).document).toEqual({ found: true })
    expect(three.asked).toHaveLength(4)
    const four = movedTimes(4)
    await expect(fetchDocument(four.outbound, url, null)).rejects.toThrow('redirects more than 3 times')
    expect(four.asked).toHaveLength(4)
  })

  const networks: [name: string, addresses: string[], allowed: string | undefined, isFetched: boolean][] = [
    ['a public address', ['9.9.9.9'], undefined, true],
    ['an address of the site', ['10.1.2.3'], undefined, true],
    ['the cloud’s own service', ['169.254.169.254'], undefined, false],
    ['the same as an IPv6 address', ['::ffff:169.254.169.254'], undefined, false],
    ['a link-local address', ['fe80::1'], undefined, false],
    ['no address at all', ['0.0.0.0'], undefined, false],
    ['one good and one bad address', ['203.0.113.1', '169.254.0.1'], undefined, false],
    ['an address in an allowed network', ['10.1.2.3'], '10.1.0.0/16', true],
    ['an address of the site that is in no allowed network', ['10.2.0.1'], '10.1.0.0/16', false],
    ['this machine, where networks are set', ['127.0.0.1'], '10.1.0.0/16', false],
    ['a public address, whatever networks are allowed', ['9.9.9.9'], '10.1.0.0/16', true],
    ['a benchmarking address that is in no allowed network', ['198.18.0.1'], '10.1.0.0/16', false],
  ]
  for (const [name, addresses, allowed, isFetched] of networks) {
    test(`from a name that leads to ${name} is ${isFetched ? 'fetched' : 'not fetched'}`, async () => {
      const list = allowed === undefined ? undefined : parseAddressList(allowed)
      if (typeof list === 'string') throw new Error(list)
      const { asked, outbound } = fetching(() => Response.json({}), {
        resolve: async () => addresses,
        privateNetworks: () => list,
      })
      const outcome = await fetchDocument(outbound, url, null).then(
        () => true,
        () => false,
      )
      expect({ outcome, asked: asked.length }).toEqual({ outcome: isFetched, asked: isFetched ? 1 : 0 })
    })
  }

  test('from a name that cannot be resolved is left to the fetch, which may know a proxy', async () => {
    const { outbound } = fetching(() => Response.json({ found: true }), {
      resolve: () => Promise.reject(new Error('no')),
    })
    expect((await fetchDocument(outbound, url, null)).document).toEqual({ found: true })
  })

  test('behind a private CA is fetched with that CA, and not without it', async () => {
    const read = (name: string) => readFileSync(join(import.meta.dirname, '../../fixtures/tls', name), 'utf8')
    const tls = { cert: read('server.pem'), key: read('server.key') }
    const server = Bun.serve({ port: 0, hostname: '127.0.0.1', tls, fetch: () => Response.json({ found: true }) })
    const outbound = { ...way, fetch: outboundFetch }
    const address = `https://localhost:${server.port}/keys`
    expect((await fetchDocument(outbound, address, read('ca.pem'))).document).toEqual({ found: true })
    await expect(fetchDocument(outbound, address, null)).rejects.toMatchObject({
      hint: expect.stringContaining('--ca-file'),
    })
    await server.stop(true)
  })

  for (const encoding of ['gzip', 'zstd', 'br, identity']) {
    test(`is refused when it comes as ${encoding}, its body unread`, async () => {
      const { seen, body } = bodyOf(Buffer.from('{}'), 1)
      const headers = { 'content-encoding': encoding }
      expect((await faultOf(() => new Response(body, { headers }))).message).toContain('compressed')
      expect(seen.pulled).toBe(0)
    })
  }

  test('is not inflated by the runtime before it is refused', async () => {
    const bomb = Bun.gzipSync(new Uint8Array(64 * 1024 * 1024))
    const headers = { 'content-encoding': 'gzip' }
    const { url: address, listener } = await listenLocally(async () => new Response(bomb, { headers }))
    const answer = await outboundFetch(address, { decompress: false })
    expect((await answer.bytes()).byteLength).toBe(bomb.byteLength)
    await expect(fetchDocument({ ...way, fetch: outboundFetch, insecureIssuers: true }, address, null)).rejects.toThrow(
      'compressed',
    )
    await listener.drain()
  })

  test('may have 262,144 bytes, and no byte more', async () => {
    const documentOf = (bytes: number) => `"${'x'.repeat(bytes - 2)}"`
    const { outbound } = fetching(() => new Response(documentOf(262_144)))
    expect((await fetchDocument(outbound, url, null)).document).toHaveLength(262_142)
    expect((await faultOf(() => new Response(documentOf(262_145)))).message).toContain('262144 bytes')
    // The same with two bytes a character, and in chunks.
    const { body } = bodyOf(Buffer.from('é'.repeat(64 * 1024)), 2)
    expect((await faultOf(() => new Response(body))).message).toContain('JSON')
    const parts = [Buffer.from('"'), Buffer.from('é'.repeat(131_071)), Buffer.from('" ')]
    const longer = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const part = parts.shift()
        if (part === undefined) controller.close()
        else controller.enqueue(part)
      },
    })
    expect((await faultOf(() => new Response(longer))).message).toContain('262144 bytes')
  })

  test('is given up at the first byte more than 256 KiB, though it never ends', async () => {
    const { seen, body } = bodyOf(new Uint8Array(64 * 1024).fill(0x20), Number.POSITIVE_INFINITY)
    const fault = await faultOf(() => new Response(body))
    expect(fault.message).toContain(String(bytesMax))
    expect(seen).toEqual({ pulled: 5, cancelled: true })
  })

  test('that is no JSON is refused without being quoted', async () => {
    const fault = await faultOf(() => new Response('<html>secret page</html>'))
    expect(describeError(fault)).not.toContain('secret')
  })

  test('an unavailable issuer is reported in our words, and in the log with the code of the runtime', async () => {
    const refused = Object.assign(new TypeError('Is the computer able to access the url?'), { code: 'ECONNREFUSED' })
    const fault = await faultOf(() => Promise.reject(refused))
    expect(tellForCommands(fault)).toBe(`"${url}" could not be fetched: nothing listens there`)
    expect(fault.message).toBe(`"${url}" could not be fetched`)
    expect(describeError(fault)).toBe(`${fault.message} (nothing listens there, ECONNREFUSED)`)
  })
})

describe('time', () => {
  const controllers: AbortController[] = []
  const timeout = () =>
    spyOn(AbortSignal, 'timeout').mockImplementation(() => {
      const controller = new AbortController()
      controllers.push(controller)
      return controller.signal
    })
  const expire = () => controllers.at(-1)?.abort(new DOMException('The operation timed out.', 'TimeoutError'))
  let spied: ReturnType<typeof timeout> | undefined
  afterEach(() => spied?.mockRestore())

  test('a hanging issuer is given up after 5 s', async () => {
    spied = timeout()
    const hanging: Fetch = (_url, { signal }) =>
      new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
    const outcome = fetchDocument({ ...way, fetch: hanging }, url, null)
    expire()
    await expect(outcome).rejects.toMatchObject({ hint: ': it did not answer within 5000 ms' })
    expect(spied).toHaveBeenCalledWith(5_000)
  })

  test('an issuer that stops in the middle of the body is given up as well', async () => {
    spied = timeout()
    const reached = Promise.withResolvers<void>()
    let pulls = 0
    const body = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        if (pulls++ === 0) return controller.enqueue(Buffer.from('{"keys":'))
        reached.resolve()
        await new Promise(() => {})
      },
    })
    const outcome = fetchDocument(fetching(() => new Response(body)).outbound, url, null)
    outcome.catch(() => {})
    await reached.promise
    expire()
    await expect(outcome).rejects.toMatchObject({ hint: ': it did not answer within 5000 ms' })
  })
})
