// Sends one event to one webhook: where it may go, its signature, and whether it arrived. It knows no database.
import { isIP } from 'node:net'
import type { AlertType } from '../../../db/schema/alert-schema.ts'
import { describeFetchFailure } from '../../federation/issuer/fetch-failure.ts'
import { connect, type Outbound } from '../../federation/issuer/guarded-fetch.ts'
import { hostOf } from '../../federation/issuer/issuer-url.ts'
import { isDirect } from '../../runtime/direct-hosts.ts'
import type { AddressList } from '../../values/ip-address.ts'
import { signedHeaders } from './signature.ts'
import { addressProblem, webhookUrlProblem } from './webhook-url.ts'

/** How long a webhook may take to respond. */
export const webhookAnswerMillisecondsMax = 15_000

/** `at`: when it happened, in milliseconds. */
export type WebhookEvent = {
  id: string
  type: AlertType | 'webhook.test'
  at: number
  data: Readonly<Record<string, unknown>>
}
/** `secrets`: those that sign. */
export type WebhookTarget = { url: string; caPem: string | null; secrets: readonly string[] }
/** `isGone`: the receiver no longer wants it. */
export type SendOutcome = { ok: true; status: number } | { ok: false; problem: string; isGone: boolean }

export type SendContext = {
  outbound: Pick<Outbound, 'fetch' | 'resolve' | 'usesProxy'>
  config: { webhookNetworks: AddressList | undefined }
  now: () => number
}

/** Never throws. A response from 200 to 299 means that the event arrived; redirects are not followed. */
export async function sendEvent(
  { outbound, config, now }: SendContext,
  { url, caPem, secrets }: WebhookTarget,
  event: WebhookEvent,
  signal?: AbortSignal,
): Promise<SendOutcome> {
  const failed = (problem: string, isGone = false): SendOutcome => ({ ok: false, problem, isGone })
  const body = bodyOf(event)
  try {
    const addresses = await findAddresses(outbound, url, config.webhookNetworks)
    if (typeof addresses === 'string') return failed(`its URL ${addresses}`)
    const response = await connect(
      outbound.fetch,
      url,
      {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...signedHeaders(secrets, event.id, now(), body) },
        body,
        redirect: 'manual',
        decompress: false,
        signal: AbortSignal.any([AbortSignal.timeout(webhookAnswerMillisecondsMax), ...(signal ? [signal] : [])]),
        ...(caPem === null ? {} : { ca: caPem }),
      },
      addresses,
    )
    await response.body?.cancel()
    if (response.status >= 200 && response.status < 300) return { ok: true, status: response.status }
    return failed(`it responds with ${response.status}`, response.status === 410)
  } catch (error) {
    if (signal?.aborted) return failed('the server stopped before it responded')
    if ((error as Error).name === 'TimeoutError')
      return failed(`it did not respond within ${webhookAnswerMillisecondsMax / 1_000} s`)
    const { cause, code } = describeFetchFailure(error, caPem !== null)
    return failed(`${cause} (${code})`)
  }
}

/** The same text for every attempt. */
function bodyOf({ type, at, data }: WebhookEvent): string {
  return JSON.stringify({ type, timestamp: new Date(at).toISOString(), data })
}

/**
 * The addresses to connect to, or the problem with them. A name is resolved once, so that it cannot lead elsewhere when the connection is
 * made; a proxy resolves names itself.
 */
async function findAddresses(
  { resolve, usesProxy }: SendContext['outbound'],
  url: string,
  networks: AddressList | undefined,
): Promise<string[] | string> {
  const problem = webhookUrlProblem(url, networks)
  if (problem !== undefined) return problem
  const target = new URL(url)
  const host = hostOf(target)
  if (isIP(host) !== 0) return []
  if (usesProxy && !isDirect(url)) return []
  const addresses = await resolve(host).catch((): string[] => [])
  if (addresses.length === 0) return 'has a name that cannot be resolved'
  return addressProblem(addresses, target.protocol === 'http:', networks) ?? addresses
}
