// An OpenAI-compatible inference server that returns the text of the request, as JSON or as an event stream, and counts words as tokens.
import { Fault } from '../../src/fault.ts'
import { readBody } from '../../src/http/body.ts'
import { errorReply, json } from '../../src/http/reply.ts'
import { echoBodyBytesMax } from '../../src/limits.ts'
import type { Handler } from '../../src/runtime/listener.ts'
import { decodeUtf8 } from '../../src/values/bytes.ts'
import { dialects, type Echo, wordsOf } from './echo-dialects.ts'

type Message = { role?: string; content?: unknown }
type ChatBody = { model?: string; messages?: Message[]; stream?: boolean; stream_options?: { include_usage?: boolean } }
type Usage = { prompt_tokens: number; completion_tokens: number; total_tokens: number }

const model = 'echo'

/** Serves the inference paths and `GET …/models` to callers with this `apiKey`. */
export function createEchoUpstream(apiKey: string): Handler {
  return async (request) => {
    try {
      if (request.headers.get('authorization') !== `Bearer ${apiKey}`)
        throw new Fault('unauthorized', 'Wrong upstream credential')
      const { pathname } = new URL(request.url)
      if (pathname.endsWith('/models'))
        return json(200, {
          object: 'list',
          data: [{ id: model, object: 'model', created: 0, owned_by: 'latchkey-dev' }],
        })
      const path = pathname.endsWith('/chat/completions')
        ? '/chat/completions'
        : pathname.slice(pathname.lastIndexOf('/'))
      const dialect = dialects[path]
      if ((dialect === undefined && path !== '/chat/completions') || request.method !== 'POST')
        throw new Fault(
          'not_found',
          `The echo upstream has /chat/completions, ${Object.keys(dialects).join(', ')} and /models`,
        )
      const body = JSON.parse(decodeUtf8(await readBody(request, echoBodyBytesMax)) ?? '') as ChatBody
      return dialect === undefined ? complete(body) : echo(dialect(body), body.stream === true)
    } catch (error) {
      return errorReply(
        error instanceof Fault
          ? error
          : new Fault('invalid', 'The body must be a chat-completions request', { cause: error }),
      )
    }
  }
}

function echo({ response, events }: Echo, streams: boolean): Response {
  if (!streams) return json(200, response)
  const text = function* () {
    for (const { event, data } of events())
      yield `${event === undefined ? '' : `event: ${event}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
  }
  return streamOf(text())
}

function streamOf(events: Generator<string>): Response {
  return new Response(encode(events), { headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' } })
}

function complete(body: ChatBody): Response {
  const messages = body.messages ?? []
  const words = wordsOf(messages.at(-1)?.content)
  const promptTokens = messages.reduce((sum, message) => sum + wordsOf(message.content).length, 0)
  const usage = {
    prompt_tokens: promptTokens,
    completion_tokens: words.length,
    total_tokens: promptTokens + words.length,
  }
  const head = {
    id: `chatcmpl-${crypto.randomUUID()}`,
    created: Math.floor(Date.now() / 1_000),
    model: body.model ?? model,
    system_fingerprint: model,
  }
  if (body.stream === true)
    return streamOf(events(head, words, body.stream_options?.include_usage === true ? usage : undefined))
  const choice = { index: 0, message: { role: 'assistant', content: words.join(' ') }, finish_reason: 'stop' }
  return json(200, { ...head, object: 'chat.completion', choices: [choice], usage })
}

function* events(head: object, words: string[], usage: Usage | undefined): Generator<string> {
  const chunk = (choices: object[], more = {}) =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices, ...more })}\n\n`
  yield chunk([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }])
  for (const [index, word] of words.entries())
    yield chunk([{ index: 0, delta: { content: index === 0 ? word : ` ${word}` }, finish_reason: null }])
  yield chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])
  if (usage !== undefined) yield chunk([], { usage })
  yield 'data: [DONE]\n\n'
}

/** Sends one chunk per pull, so that the stream has many chunks. */
function encode(texts: Generator<string>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull: async (controller) => {
      // A turn of the event loop between chunks, as between the tokens of a model.
      await new Promise((resolve) => setTimeout(resolve, 0))
      const { done, value } = texts.next()
      if (done === true) controller.close()
      else controller.enqueue(new TextEncoder().encode(value))
    },
  })
}
