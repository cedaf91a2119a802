// Responses of the echo upstream on paths other than chat completions: completions, responses, messages, embeddings, rerank.

export type Tokens = { prompt: number; completion: number }
export type Echo = {
  /** The response without a stream. */
  response: object
  /** The events of a stream, each a type (or none) and its data. */
  events: () => Iterable<{ event?: string; data: object | string }>
}
type Body = Record<string, unknown>

const model = 'echo'
const modelOf = (body: Body) => (typeof body.model === 'string' ? body.model : model)

/** The words of a text, of a message content, or of a list of either. */
export function wordsOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(wordsOf)
  if (typeof value === 'object' && value !== null) {
    const { text, content } = value as { text?: unknown; content?: unknown }
    return wordsOf(text ?? content ?? '')
  }
  return String(value ?? '')
    .split(/\s+/)
    .filter((word) => word !== '')
}

/** By the end of the path. */
export const dialects: Record<string, (body: Body) => Echo> = {
  '/completions': echoCompletion,
  '/responses': echoResponse,
  '/messages': echoMessage,
  '/embeddings': echoEmbeddings,
  '/rerank': echoRanking,
}

function echoCompletion(body: Body): Echo {
  const words = wordsOf(body.prompt)
  const usage = usageOf({ prompt: words.length, completion: words.length })
  const head = { id: `cmpl-${crypto.randomUUID()}`, object: 'text_completion', created: now(), model: modelOf(body) }
  const { stream_options } = body as { stream_options?: { include_usage?: boolean } }
  return {
    response: { ...head, choices: [{ index: 0, text: words.join(' '), finish_reason: 'stop', logprobs: null }], usage },
    events: function* () {
      for (const text of pieces(words))
        yield { data: { ...head, choices: [{ index: 0, text, finish_reason: null, logprobs: null }] } }
      if (stream_options?.include_usage === true) yield { data: { ...head, choices: [], usage } }
      yield { data: '[DONE]' }
    },
  }
}

function echoResponse(body: Body): Echo {
  const words = wordsOf(Array.isArray(body.input) ? body.input.at(-1) : body.input)
  const prompt = wordsOf([body.instructions, body.input]).length
  const usage = {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: words.length,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: prompt + words.length,
  }
  const content = [{ type: 'output_text', text: words.join(' '), annotations: [] }]
  const item = { id: `msg_${crypto.randomUUID()}`, type: 'message', role: 'assistant', status: 'completed', content }
  const head = {
    id: `resp_${crypto.randomUUID()}`,
    object: 'response',
    created_at: now(),
    model: modelOf(body),
    error: null,
  }
  const response = { ...head, status: 'completed', output: [item], usage }
  return {
    response,
    events: function* () {
      const running = { ...head, status: 'in_progress', output: [], usage: null }
      let sequence_number = 0
      const event = (type: string, more: object) => ({
        event: type,
        data: { type, sequence_number: sequence_number++, ...more },
      })
      yield event('response.created', { response: running })
      const place = { item_id: item.id, output_index: 0, content_index: 0 }
      for (const delta of pieces(words)) yield event('response.output_text.delta', { ...place, delta })
      yield event('response.completed', { response })
    },
  }
}

function echoMessage(body: Body): Echo {
  const { messages } = body as { messages?: unknown[] }
  const words = wordsOf(messages?.at(-1))
  const usage = { input_tokens: wordsOf([body.system, messages]).length, output_tokens: words.length }
  const head = {
    id: `msg_${crypto.randomUUID()}`,
    type: 'message',
    role: 'assistant',
    model: modelOf(body),
    stop_sequence: null,
  }
  return {
    response: { ...head, content: [{ type: 'text', text: words.join(' ') }], stop_reason: 'end_turn', usage },
    events: function* () {
      const event = (type: string, more: object = {}) => ({ event: type, data: { type, ...more } })
      const message = { ...head, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } }
      yield event('message_start', { message })
      yield event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
      for (const text of pieces(words))
        yield event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
      yield event('content_block_stop', { index: 0 })
      yield event('message_delta', {
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: usage.output_tokens },
      })
      yield event('message_stop')
    },
  }
}

function echoEmbeddings(body: Body): Echo {
  const inputs = Array.isArray(body.input) ? body.input : [body.input]
  const prompt = wordsOf(inputs).length
  const vector = (text: unknown) => [wordsOf(text).length, 0.5]
  const embedding = (text: unknown) =>
    body.encoding_format === 'base64'
      ? Buffer.from(new Float32Array(vector(text)).buffer).toString('base64')
      : vector(text)
  const data = inputs.map((text, index) => ({ object: 'embedding', index, embedding: embedding(text) }))
  const usage = { prompt_tokens: prompt, total_tokens: prompt }
  return { response: { object: 'list', data, model: modelOf(body), usage }, events: () => [] }
}

function echoRanking(body: Body): Echo {
  const { documents = [] } = body as { documents?: unknown[] }
  const results = documents.map((document, index) => ({
    index,
    document: { text: document },
    relevance_score: 1 / (index + 1),
  }))
  const usage = { total_tokens: wordsOf([body.query, documents]).length }
  return { response: { id: `rerank-${crypto.randomUUID()}`, model: modelOf(body), results, usage }, events: () => [] }
}

function usageOf({ prompt, completion }: Tokens) {
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion }
}

function pieces(words: string[]): string[] {
  return words.map((word, index) => (index === 0 ? word : ` ${word}`))
}

function now(): number {
  return Math.floor(Date.now() / 1_000)
}
