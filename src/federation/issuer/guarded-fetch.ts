// Fetches a JSON document from an issuer, with limits on origin, time, size and redirects.
import { isIP } from 'node:net'
import { Fault } from '../../fault.ts'
import { issuerDocumentBytesMax, issuerFetchMillisecondsMax, issuerRedirectsMax } from '../../limits.ts'
import { readBounded } from '../../runtime/bounded-stream.ts'
import { isDirect } from '../../runtime/direct-hosts.ts'
import type { Fetch, FetchInit } from '../../runtime/outbound.ts'
import type { AddressList } from '../../values/ip-address.ts'
import { describeFetchFailure } from './fetch-failure.ts'
import { hostOf, objectionToNetwork, urlProblem } from './issuer-url.ts'

/** Network access for fetches from issuers, and what the operator allows. */
export type Outbound = {
  fetch: Fetch
  /** Resolves a host name to its IP addresses. */
  resolve: (hostname: string) => Promise<string[]>
  /** Whether a proxy makes the connections and resolves the names. */
  usesProxy: boolean
  insecureIssuers: boolean
  /** Returns the private networks that currently may contain issuers; undefined allows any. */
  privateNetworks: () => AddressList | undefined
}
export type FetchedDocument = { document: unknown; cacheControl: string | null; date: string | null }

/**
 * Returns the time limit for one issuer. The discovery document and the key set share it, so a caller waits only once.
 */
export function fetchTime(): AbortSignal {
  return AbortSignal.timeout(issuerFetchMillisecondsMax)
}

/**
 * Where a URL leads. If `isNamed`, all its addresses are in networks that the operator names, so an admin may see why a
 * fetch fails.
 */
type Route = {
  /** The addresses to try in order. If empty, the runtime chooses. */
  addresses: string[]
  isNamed: boolean
}
const nowhere: Route = { addresses: [], isNamed: false }

/**
 * Fetches and parses one JSON document. Follows redirects only within the origin and reads at most
 * `issuerDocumentBytesMax`.
 * @throws Fault `unavailable`, which quotes nothing from the document. The cause of a failed connection is only in the
 * hint and the reason, so that a tenant cannot scan the network. The message includes it only for networks that the
 * operator names.
 */
export async function fetchDocument(
  outbound: Outbound,
  url: string,
  ca: string | null,
  signal: AbortSignal = fetchTime(),
): Promise<FetchedDocument> {
  let route = nowhere
  try {
    const response = await fetchWithin(outbound, url, ca, signal, (found) => {
      route = found
    })
    const { headers } = response
    const text = await readText(response, signal, url)
    return { document: parseJson(text, url), cacheControl: headers.get('cache-control'), date: headers.get('date') }
  } catch (error) {
    if (error instanceof Fault) throw error
    const isLate = error instanceof Error && error.name === 'TimeoutError'
    const late = { cause: `it did not answer within ${issuerFetchMillisecondsMax} ms`, code: 'TimeoutError' }
    const { cause, code } = isLate ? late : describeFetchFailure(error, ca !== null)
    throw notFetched(url, route, cause, code)
  }
}

/**
 * Sends one request to an issuer, with the limits of `fetchDocument`, and returns the response with its whole text. A redirect is not followed:
 * a request of a client carries credentials.
 * @throws Fault `unavailable`
 */
export async function sendToIssuer(
  outbound: Outbound,
  url: string,
  ca: string | null,
  { method, headers, body }: Pick<FetchInit, 'method' | 'headers' | 'body'>,
): Promise<Response> {
  const signal = fetchTime()
  try {
    const { addresses } = await findRoute(outbound, url, signal)
    const sent: FetchInit = { redirect: 'manual', signal, ...(ca === null ? {} : { ca }) }
    const response = await connect(outbound.fetch, url, { ...sent, method, headers, body } as FetchInit, addresses)
    const text = await readText(response, signal, url)
    const mediaType = response.headers.get('content-type') ?? 'text/plain'
    const hasBody = ![204, 205, 304].includes(response.status)
    return new Response(hasBody ? text : null, { status: response.status, headers: { 'content-type': mediaType } })
  } catch (error) {
    if (error instanceof Fault) throw error
    const { cause } = describeFetchFailure(error, ca !== null)
    throw notFetched(url, nowhere, signal.aborted ? `it did not answer within ${issuerFetchMillisecondsMax} ms` : cause)
  }
}

/**
 * Returns the response with status 200 after at most `issuerRedirectsMax` redirects. Each redirect is checked like the
 * first URL.
 */
async function fetchWithin(
  outbound: Outbound,
  url: string,
  ca: string | null,
  signal: AbortSignal,
  onRoute: (route: Route) => void,
): Promise<Response> {
  const headers = { accept: 'application/json', 'accept-encoding': 'identity' }
  const init: FetchInit = { redirect: 'manual', signal, decompress: false, headers, ...(ca === null ? {} : { ca }) }
  let address = url
  for (let redirects = 0; redirects <= issuerRedirectsMax; redirects++) {
    const route = await findRoute(outbound, address, signal)
    onRoute(route)
    const response = await connect(outbound.fetch, address, init, route.addresses)
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

/**
 * Checks every address that a URL leads to. If networks are set, the connection uses only the checked addresses, and an
 * unresolvable name is refused: its owner could point it to a private address at the next lookup. A proxy resolves
 * names itself.
 */
async function findRoute(outbound: Outbound, url: string, signal: AbortSignal): Promise<Route> {
  const objection = urlProblem(url, outbound.insecureIssuers)
  if (objection !== undefined) throw unavailable(url, objection)
  const host = hostOf(new URL(url))
  const late = new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  late.catch(() => {})
  const addresses = isIP(host) === 0 ? await Promise.race([outbound.resolve(host).catch(() => []), late]) : [host]
  const networks = outbound.privateNetworks()
  for (const each of addresses) {
    const objectionToEach = objectionToNetwork(each, networks)
    if (objectionToEach !== undefined) throw notFetched(url, nowhere, `it ${objectionToEach}`)
  }
  const isHeld = networks !== undefined && isIP(host) === 0 && (!outbound.usesProxy || isDirect(url))
  if (isHeld && addresses.length === 0) throw notFetched(url, nowhere, 'its name cannot be resolved')
  const isNamed = addresses.length > 0 && addresses.every((each) => networks?.has(each) === true)
  return { addresses: isHeld ? addresses : [], isNamed }
}

/** Tries the addresses in order; without any, the runtime chooses. */
export async function connect(fetch: Fetch, url: string, init: FetchInit, addresses: string[]): Promise<Response> {
  const [address, ...others] = addresses
  if (address === undefined) return fetch(url, init)
  try {
    return await fetch(url, { ...init, address })
  } catch (error) {
    if (others.length === 0 || init.signal?.aborted) throw error
    return connect(fetch, url, init, others)
  }
}

/** Rejects compressed documents: the request does not ask for one, and it could expand to any size. */
function headObjection({ status, headers }: Response): string | undefined {
  if (status !== 200) return `answered ${status}`
  const encoding = headers.get('content-encoding')
  return encoding === null || encoding === 'identity' ? undefined : 'answered with a compressed document'
}

function unavailable(url: string, what: string): Fault {
  return new Fault('unavailable', `${JSON.stringify(url)} ${what}`)
}

/**
 * Returns the fault for a document that did not arrive. The message omits the cause unless the operator names the
 * networks that the URL leads to.
 */
function notFetched(url: string, { isNamed }: Route, cause: string, code?: string): Fault {
  const message = `${JSON.stringify(url)} could not be fetched`
  const why = `: ${cause}`
  const detail = code === undefined ? cause : `${cause}, ${code}`
  return new Fault('unavailable', isNamed ? message + why : message, { hint: isNamed ? '' : why, detail })
}

function parseJson(text: string, url: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw unavailable(url, 'did not answer with JSON')
  }
}

async function readText({ body }: Response, signal: AbortSignal, url: string): Promise<string> {
  const tooLarge = () => unavailable(url, `is larger than ${issuerDocumentBytesMax} bytes`)
  return new TextDecoder().decode(await readBounded(body, { bytesMax: issuerDocumentBytesMax, tooLarge, signal }))
}
