// A server in front of a scripted upstream, and the chat completions that a test requests from it.
import { modelListMilliseconds } from '../../src/limits.ts'
import { type Federation, type Row, startFederation, type TestServerOptions } from './latchkey.ts'
import { type ScriptedUpstream, startScriptedUpstream } from './scripted-upstream.ts'

/** After that, nothing is known of an upstream that failed. */
const restMilliseconds = 91_000

export type UsageRow = Row & { request_id: string; completed: boolean; status: number }
export type Inference = Federation & {
  upstream: ScriptedUpstream
  /** Acts as the target key. */
  accessToken: string
  /** Posts a chat completion with the target key, unless `headers` contain another credential. */
  complete: (body?: unknown, headers?: Record<string, string>, signal?: AbortSignal) => Promise<Response>
  /** Returns the ledger rows of a request. */
  usageOf: (response: Response) => Promise<UsageRow[]>
  /** Resets the upstream and the ledger, and advances the clock until model lists are fetched again and no upstream rests. */
  reset: () => void
}

export const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }
export const answer = { model: 'real-model', choices: [{ message: { content: 'hi' } }], usage }
export const question = { model: 'asked-model', messages: [{ role: 'user', content: 'hello' }] }
export const usageEvent = eventOf({ choices: [], usage })

export function eventOf(data: object | string): string {
  return `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
}

export function deltaOf(content: string): string {
  return eventOf({ model: 'm', choices: [{ delta: { content } }] })
}

/** Returns the last content of a choice. */
export function finishOf(index = 0, finish_reason = 'stop'): string {
  return eventOf({ model: 'm', choices: [{ index, delta: {}, finish_reason }] })
}

export function streamReply(text: string): Response {
  return new Response(text, { headers: { 'content-type': 'text/event-stream; charset=utf-8' } })
}

/** `now` replaces the clock. */
export async function startInference(
  settings: TestServerOptions['settings'] = {},
  now: () => number = Date.now,
): Promise<Inference> {
  const upstream = await startScriptedUpstream()
  let aheadMilliseconds = 0
  const monotonic = () => performance.now() + aheadMilliseconds
  const federation = await startFederation({ upstreamUrl: upstream.url, settings, dependencies: { monotonic, now } })
  const reply = await federation.exchange(await federation.mint())
  const { access_token: accessToken } = (await reply.json()) as { access_token: string }
  const { writer } = federation.server.context
  const { appendUsage } = writer
  return {
    ...federation,
    upstream,
    accessToken,
    complete: (body = question, headers = {}, signal) =>
      fetch(`${federation.server.baseUrl}/chat/completions`, {
        method: 'POST',
        signal,
        headers: { authorization: `Bearer ${federation.key.key}`, 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    usageOf: async (response) => {
      const { data } = await federation.admin<{ data: UsageRow[] }>('usage.requests', { limit: 10_000 })
      return data.filter((row) => row.request_id === response.headers.get('x-request-id'))
    },
    reset: () => {
      upstream.requests.length = 0
      upstream.answer.current = () => Response.json(answer)
      writer.appendUsage = appendUsage
      aheadMilliseconds += Math.max(modelListMilliseconds, restMilliseconds)
    },
    stop: async () => {
      await federation.stop()
      await upstream.stop()
    },
  }
}
