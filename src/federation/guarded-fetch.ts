// Fetches a JSON document of an issuer: which addresses are allowed, and bounds on time, size and redirects.

import { joinChunks } from '../bytes.ts'
import { Fault } from '../fault.ts'
import { issuerDocumentBytesMax, issuerFetchMillisecondsMax, urlCharactersMax } from '../limits.ts'

export type Fetch = (url: string, init: RequestInit & { decompress?: boolean }) => Promise<Response>
export type FetchedDocument = { document: unknown; cacheControl: string | null }

/**
 * What is wrong with an address from which keys are to be trusted, or undefined. Only https, or http on a loopback host when the
 * insecure setting is on. Used when an issuer is saved and again before each fetch.
 */
export function objectionToAddress(text: string, insecureIssuers: boolean): string | undefined {
  if (text.length > urlCharactersMax) return `must be at most ${urlCharactersMax} characters`
  if (!URL.canParse(text)) return 'is not a URL'
  const url = new URL(text)
  if (url.username !== '' || url.password !== '') return 'may not hold a user name or password'
  if (/[#\s\p{Cc}]/u.test(text)) return 'may not have a fragment, white space or control characters'
  if (url.protocol === 'https:') return undefined
  if (url.protocol !== 'http:') return 'must begin with https://'
  if (!isLoopback(url.hostname)) return 'must begin with https://'
  return insecureIssuers
    ? undefined
    : 'must begin with https:// (http:// on this machine is accepted where the server, or without one the command, has LATCHKEY_INSECURE_ISSUERS=true)'
}

/** The same for an issuer URL, which besides has no query (OpenID Connect Discovery 1.0 §3). The address of a key set may have one. */
export function objectionToIssuerUrl(text: string, insecureIssuers: boolean): string | undefined {
  return text.includes('?') ? 'may not have a query' : objectionToAddress(text, insecureIssuers)
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}

/**
 * Fetches and parses one JSON document; follows no redirect and reads no more than `issuerDocumentBytesMax`.
 * @throws Fault `unavailable` whose reason tells what happened, without quoting the document
 */
export async function fetchDocument(fetch: Fetch, url: string, insecureIssuers: boolean): Promise<FetchedDocument> {
  const objection = objectionToAddress(url, insecureIssuers)
  if (objection !== undefined) throw unavailable(url, objection)
  try {
    const signal = AbortSignal.timeout(issuerFetchMillisecondsMax)
    const headers = { accept: 'application/json', 'accept-encoding': 'identity' }
    const response = await fetch(url, { redirect: 'manual', signal, decompress: false, headers })
    const objectionToHead = headObjection(response)
    if (objectionToHead !== undefined) {
      await response.body?.cancel()
      throw unavailable(url, objectionToHead)
    }
    const text = await readBounded(response, signal)
    return { document: parseJson(text, url), cacheControl: response.headers.get('cache-control') }
  } catch (error) {
    if (error instanceof Fault) throw error
    const isLate = error instanceof Error && error.name === 'TimeoutError'
    throw unavailable(
      url,
      isLate
        ? `did not answer within ${issuerFetchMillisecondsMax} ms`
        : `could not be fetched: ${(error as Error).message}`,
    )
  }
}

/** A compressed document could be any size, whatever arrives of it; it was not asked for. */
function headObjection({ status, headers }: Response): string | undefined {
  if (status !== 200) return `answered ${status}`
  const encoding = headers.get('content-encoding')
  return encoding === null || encoding === 'identity' ? undefined : 'answered with a compressed document'
}

function unavailable(url: string, what: string): Fault {
  return new Fault('unavailable', `${JSON.stringify(url)} ${what}`)
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
