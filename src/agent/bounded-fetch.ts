// A request that cannot take longer, return more, or lead elsewhere than its caller allows.
import { describeError, Fault } from '../fault.ts'

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

const bodyBytesMax = 64 * 1024

/**
 * Sends a request and returns the status and the text of the response. `name` starts the sentence of every failure: no
 * connection, a redirect, more than 64 KB, or `milliseconds` without the whole response.
 */
export async function fetchText(
  fetch: Fetch,
  url: string,
  init: RequestInit,
  name: string,
  milliseconds = 20_000,
): Promise<{ status: number; text: string }> {
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
    return { status: response.status, text: await readBounded(response, signal, name) }
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

async function readBounded(response: Response, signal: AbortSignal, name: string): Promise<string> {
  const reader = response.body?.getReader()
  if (reader === undefined) return ''
  const cancel = () => void reader.cancel().catch(() => {})
  signal.addEventListener('abort', cancel)
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      // A canceled body ends like a whole one.
      if (signal.aborted) throw signal.reason
      if (done) return text + decoder.decode()
      bytes += value.byteLength
      if (bytes > bodyBytesMax) {
        cancel()
        throw new Fault('bad_gateway', `${name} sent more than 64 KB`, { hint: ': check that the URL is right' })
      }
      text += decoder.decode(value, { stream: true })
    }
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

/** The URL without its query, which can hold what a platform keeps private. */
function shown(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}
