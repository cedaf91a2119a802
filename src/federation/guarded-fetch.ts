// Fetches a JSON document of an issuer, with bounds on where it may come from, and on time, size and redirects.

import { joinChunks } from '../bytes.ts'
import { Fault } from '../fault.ts'
import type { AddressList } from '../http/client-address.ts'
import { issuerDocumentBytesMax, issuerFetchMillisecondsMax, issuerRedirectsMax } from '../limits.ts'
import { describeFetchFailure } from './fetch-failure.ts'
import { hostOf, objectionToAddress, objectionToNetwork } from './issuer-address.ts'

/** `ca`: certificates in PEM to trust instead of the public ones. */
export type FetchInit = RequestInit & { decompress?: boolean; ca?: string }
export type Fetch = (url: string, init: FetchInit) => Promise<Response>

/** What a fetch from an issuer needs: the way out, and what the operator allows. */
export type Outbound = {
  fetch: Fetch
  /** The IP addresses of a host name. */
  resolve: (hostname: string) => Promise<string[]>
  insecureIssuers: boolean
  issuerNetworks: AddressList | undefined
}
export type FetchedDocument = { document: unknown; cacheControl: string | null; date: string | null }

/** The time that an issuer has; its discovery document and its key set may share one, so that nobody waits for it twice. */
export function fetchTime(): AbortSignal {
  return AbortSignal.timeout(issuerFetchMillisecondsMax)
}

/**
 * Fetches and parses one JSON document; follows redirects within the origin alone and reads no more than `issuerDocumentBytesMax`.
 * @throws Fault `unavailable` whose reason tells what happened, without quoting the document
 */
export async function fetchDocument(
  outbound: Outbound,
  url: string,
  ca: string | null,
  signal: AbortSignal = fetchTime(),
): Promise<FetchedDocument> {
  try {
    const response = await fetchWithin(outbound, url, ca, signal)
    const { headers } = response
    const text = await readBounded(response, signal)
    return { document: parseJson(text, url), cacheControl: headers.get('cache-control'), date: headers.get('date') }
  } catch (error) {
    if (error instanceof Fault) throw error
    const isLate = error instanceof Error && error.name === 'TimeoutError'
    if (isLate) throw unavailable(url, `did not answer within ${issuerFetchMillisecondsMax} ms`)
    const { told, code } = describeFetchFailure(error, ca !== null)
    throw unavailable(url, told, code)
  }
}

/** The answer with status 200, after at most `issuerRedirectsMax` redirects, each of them looked at as the first address is. */
async function fetchWithin(outbound: Outbound, url: string, ca: string | null, signal: AbortSignal): Promise<Response> {
  const headers = { accept: 'application/json', 'accept-encoding': 'identity' }
  const init: FetchInit = { redirect: 'manual', signal, decompress: false, headers, ...(ca === null ? {} : { ca }) }
  let address = url
  for (let redirects = 0; redirects <= issuerRedirectsMax; redirects++) {
    const objection = await objectionTo(outbound, address, signal)
    if (objection !== undefined) throw unavailable(address, objection)
    const response = await outbound.fetch(address, init)
    const location = redirectStatuses.includes(response.status) ? response.headers.get('location') : null
    const objectionToAnswer = location === null ? headObjection(response) : undefined
    if (location === null && objectionToAnswer === undefined) return response
    await response.body?.cancel()
    if (objectionToAnswer !== undefined) throw unavailable(address, objectionToAnswer)
    address = sameOrigin(address, location ?? '')
  }
  throw unavailable(url, `redirects more than ${issuerRedirectsMax} times`)
}

const redirectStatuses = [301, 302, 303, 307, 308]

function sameOrigin(address: string, location: string): string {
  const target = URL.canParse(location, address) ? new URL(location, address) : undefined
  if (target?.origin !== new URL(address).origin) throw unavailable(address, 'redirects to another origin')
  return target.href
}

/** A name is resolved only to look at its addresses; one that cannot be resolved is left to the fetch, which may go through a proxy. */
async function objectionTo(outbound: Outbound, address: string, signal: AbortSignal): Promise<string | undefined> {
  const objection = objectionToAddress(address, outbound.insecureIssuers)
  if (objection !== undefined) return objection
  const host = hostOf(new URL(address))
  const late = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  late.catch(() => {})
  const addresses = await Promise.race([outbound.resolve(host).catch(() => []), late])
  for (const each of [host, ...addresses]) {
    const objectionToEach = objectionToNetwork(each, outbound.issuerNetworks)
    if (objectionToEach !== undefined) return objectionToEach
  }
  return undefined
}

/** A compressed document could be any size, whatever arrives of it; it was not asked for. */
function headObjection({ status, headers }: Response): string | undefined {
  if (status !== 200) return `answered ${status}`
  const encoding = headers.get('content-encoding')
  return encoding === null || encoding === 'identity' ? undefined : 'answered with a compressed document'
}

/** `reason`, for the log, where it says more. */
function unavailable(url: string, what: string, reason?: string): Fault {
  return new Fault('unavailable', `${JSON.stringify(url)} ${what}`, reason === undefined ? {} : { reason })
}

function parseJson(text: string, url: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw unavailable(url, 'did not answer with JSON')
  }
}

async function readBounded(response: Response, signal: AbortSignal): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  const reader = response.body?.getReader()
  const cancel = () => reader?.cancel().catch(() => {})
  signal.addEventListener('abort', cancel)
  try {
    while (reader !== undefined) {
      const { done, value } = await reader.read()
      if (done) break
      length += value.byteLength
      if (length > issuerDocumentBytesMax) {
        cancel()
        throw unavailable(response.url, `is larger than ${issuerDocumentBytesMax} bytes`)
      }
      chunks.push(value)
    }
    signal.throwIfAborted()
  } finally {
    signal.removeEventListener('abort', cancel)
  }
  return new TextDecoder().decode(joinChunks(chunks, length))
}
