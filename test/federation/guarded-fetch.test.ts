// Fetching from an issuer: which addresses are allowed, and that size, time and redirects are bounded while the bytes arrive.
import { afterEach, describe, expect, spyOn, test } from 'bun:test'
import fc from 'fast-check'
import { Fault } from '../../src/fault.ts'
import {
  type Fetch,
  fetchDocument,
  objectionToAddress,
  objectionToIssuerUrl,
} from '../../src/federation/guarded-fetch.ts'
import { outboundFetch } from '../../src/runtime.ts'
import { listenLocally } from '../support/latchkey.ts'

const url = 'https://idp.example.com/keys'
const bytesMax = 256 * 1024

describe('an address', () => {
  const good = [
    'https://idp.example.com',
    'https://idp.example.com:8443/a/b',
    'https://[2001:db8::1]/keys',
    'https://localhost/',
  ]
  for (const address of good)
    test(`${address} is allowed`, () => expect(objectionToAddress(address, false)).toBeUndefined())

  const loopback = ['http://localhost:8080', 'http://127.0.0.1/keys', 'http://127.1.2.3', 'http://[::1]:1/keys']
  for (const address of loopback) {
    test(`${address} is allowed only with the insecure setting`, () => {
      expect(objectionToAddress(address, true)).toBeUndefined()
      expect(objectionToAddress(address, false)).toContain('LATCHKEY_INSECURE_ISSUERS')
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
    test(`${address.slice(0, 60)} is refused`, () => expect(objectionToAddress(address, true)).toBeString())
  }

  test('of a key set may have a query, an issuer URL may not', () => {
    const address = 'https://idp.example.com/keys?p=policy'
    expect(objectionToAddress(address, false)).toBeUndefined()
    expect(objectionToIssuerUrl(address, false)).toContain('query')
    expect(objectionToIssuerUrl('https://idp.example.com', false)).toBeUndefined()
    expect(objectionToIssuerUrl('http://idp.example.com', false)).toBeString()
  })

  test('is never allowed on plain http beyond this machine, whatever the host', () => {
    fc.assert(
      fc.property(fc.domain(), fc.webPath(), (host, path) => {
        expect(objectionToAddress(`http://${host}${path}`, true)).toBeString()
      }),
    )
  })
})

/** A fetch that answers as told and remembers how it was asked. */
function fetching(answer: () => Response | Promise<Response>) {
  const asked: { url: string; init: RequestInit }[] = []
  const fetch: Fetch = async (at, init) => {
    asked.push({ url: at, init })
    return answer()
  }
  return { asked, fetch }
}

async function faultOf(answer: () => Response | Promise<Response>): Promise<Fault> {
  const outcome = await fetchDocument(fetching(answer).fetch, url, false).catch((error: unknown) => error)
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
    const { asked, fetch } = fetching(() => new Response('{"a":1}', { headers: { 'cache-control': 'max-age=5' } }))
    expect(await fetchDocument(fetch, url, false)).toEqual({ document: { a: 1 }, cacheControl: 'max-age=5' })
    expect(asked).toHaveLength(1)
    expect(asked[0]?.url).toBe(url)
    expect(asked[0]?.init).toMatchObject({ redirect: 'manual', headers: { accept: 'application/json' } })
  })

  test('is not fetched at all from an address that is not allowed', async () => {
    const { asked, fetch } = fetching(() => new Response('{}'))
    await expect(fetchDocument(fetch, 'http://idp.example.com', true)).rejects.toBeInstanceOf(Fault)
    expect(asked).toEqual([])
  })

  for (const status of [201, 204, 301, 302, 303, 307, 308, 400, 404, 500]) {
    test(`is refused with status ${status}, its body unread`, async () => {
      const { seen, body } = bodyOf(Buffer.from('{}'), 1)
      const fault = await faultOf(
        () => new Response(status === 204 ? null : body, { status, headers: { location: '/elsewhere' } }),
      )
      expect(fault.message).toContain(String(status))
      expect(seen.pulled).toBe(0)
    })
  }

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
    await expect(fetchDocument(outboundFetch, address, true)).rejects.toThrow('compressed')
    await listener.drain()
  })

  test('may have 256 KiB', async () => {
    const text = `"${'x'.repeat(bytesMax - 2)}"`
    const { document } = await fetchDocument(fetching(() => new Response(text)).fetch, url, false)
    expect(document).toHaveLength(bytesMax - 2)
  })

  test('is given up at the first byte more than 256 KiB, though it never ends', async () => {
    const { seen, body } = bodyOf(new Uint8Array(64 * 1024).fill(0x20), Number.POSITIVE_INFINITY)
    const fault = await faultOf(() => new Response(body))
    expect(fault.message).toContain(String(bytesMax))
    expect(seen).toEqual({ pulled: 5, cancelled: true })
  })

  test('that is no JSON is refused without being quoted', async () => {
    const fault = await faultOf(() => new Response('<html>secret page</html>'))
    expect(fault.message + fault.reason).not.toContain('secret')
  })

  test('that cannot be had is told with its cause', async () => {
    const fault = await faultOf(() => Promise.reject(new Error('getaddrinfo ENOTFOUND')))
    expect(fault.reason).toContain('ENOTFOUND')
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
    const outcome = fetchDocument(hanging, url, false)
    expire()
    await expect(outcome).rejects.toThrow('did not answer within 5000 ms')
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
    const outcome = fetchDocument(fetching(() => new Response(body)).fetch, url, false)
    outcome.catch(() => {})
    await reached.promise
    expire()
    await expect(outcome).rejects.toThrow('did not answer within 5000 ms')
  })
})
