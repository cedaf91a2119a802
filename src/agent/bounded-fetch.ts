// A request that cannot take longer, return more, or lead elsewhere than its caller allows.
import { describeError, Fault } from '../fault.ts'
import { readBounded } from '../runtime/bounded-stream.ts'

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

const bodyBytesMax = 64 * 1024

/**
 * Sends a request and returns the status, the headers and the text of the response. `name` starts the sentence of every failure: no
 * connection, a redirect, more than 64 KB, or `milliseconds` without the whole response.
 */
export async function fetchText(
  fetch: Fetch,
  url: string,
  init: RequestInit,
  name: string,
  milliseconds = 20_000,
): Promise<{ status: number; headers: Headers; text: string }> {
  const signal = AbortSignal.timeout(milliseconds)
  const isRefused = (error: unknown) => error instanceof Fault
  try {
    const response = await fetch(url, { ...init, redirect: 'manual', signal })
    if (response.type === 'opaqueredirect' || (response.status >= 300 && response.status < 400)) {
      await response.body?.cancel()
      throw new Fault('bad_gateway', `${name} responded with a redirect, which is not followed`, {
        hint: `: check the URL ${shown(url)}`,
      })
    }
    const { status, headers } = response
    return { status, headers, text: await readText(response, signal, name) }
  } catch (error) {
    if (isRefused(error)) throw error
    if (signal.aborted)
      throw new Fault('timeout', `${name} did not respond within ${milliseconds / 1000} seconds`, {
        hint: `: check the network path to ${shown(url)}`,
      })
    const reason = describeError(error)
    const advice = /certificate/i.test(reason) ? '; with your own CA, set NODE_EXTRA_CA_CERTS to its file' : ''
    throw new Fault('unavailable', `${name} could not be reached`, {
      hint: ` at ${shown(url)}: ${reason}${advice}`,
      cause: error,
    })
  }
}

async function readText({ body }: Response, signal: AbortSignal, name: string): Promise<string> {
  const tooLarge = () =>
    new Fault('bad_gateway', `${name} sent more than 64 KB`, { hint: ': check that the URL is right' })
  return new TextDecoder().decode(await readBounded(body, { bytesMax: bodyBytesMax, tooLarge, signal }))
}

/** The URL without its query, which can hold what a platform keeps private. */
function shown(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}
