// An inference server that counts its own responses, to compare with the ledger. The requested model controls it, as
// `<server>/<behavior>/<number>`; the number determines the token counts.
import type { Handler } from '../../src/runtime/listener.ts'
import { eventOf } from './inference.ts'
import { listenLocally } from './latchkey.ts'

/** The reported usage, or the least value of a stream that did not end; null if unknown. */
export type Counted = {
  prompt: number | null
  completion: number | null
  total: number | null
  cached: number | null
  reasoning: number | null
  costNanodollars: number | null
}

/** One response. `named` is the model in the response; `whole` is whether it was sent completely. */
export type Answered = Counted & { model: string; named: string; requestId: string; status: number; whole: boolean }

export type CountingUpstream = {
  url: string
  answered: Answered[]
  /** The models rejected with 429 or 503 because they start with one of `busyWith`. */
  sentAway: string[]
  /** The models of calls that the caller ended before or during the response. */
  abandoned: string[]
  /** Resolves when this model is requested. */
  reached: (model: string) => Promise<void>
  /** Breaks off the stream of this model, which waits for this call. */
  breakOff: (model: string) => void
  stop: () => Promise<void>
}

type Asked = { model: string; number: number; named: string; includesUsage: boolean }
/** What to send: JSON, or events and how they end. If both are missing, sends nothing until the caller disconnects. */
type Script = {
  status?: number
  json?: object
  events?: string[]
  ending?: 'whole' | 'broken' | 'held' | 'held when whole'
  counted?: Counted
}

export async function startCountingUpstream({
  busyWith = [],
  nameOf = (model) => model,
}: {
  busyWith?: string[]
  nameOf?: (model: string) => string
} = {}): Promise<CountingUpstream> {
  const answered: Answered[] = []
  const sentAway: string[] = []
  const abandoned: string[] = []
  const reach = eventsByName()
  const breakOff = eventsByName()

  const handler: Handler = async (request) => {
    const body = (await request.json()) as { model: string; stream_options?: { include_usage?: boolean } }
    const { model } = body
    reach(model).resolve()
    const [behavior = '', number = ''] = model.split('/').slice(-2)
    if (busyWith.some((start) => model.startsWith(start))) {
      sentAway.push(model)
      return refusal(Number(number) % 2 === 0 ? 429 : 503)
    }
    const asked = {
      model,
      number: Number(number),
      named: nameOf(model),
      includesUsage: body.stream_options?.include_usage === true,
    }
    const script = scripts[behavior]?.(asked)
    if (script === undefined) throw new Error(`No such behavior: ${behavior}`)
    const { status = 200, json, events, ending = 'whole', counted = countsOf({}) } = script
    const note = (whole: boolean) =>
      answered.push({
        model,
        named: asked.named,
        requestId: request.headers.get('x-request-id') ?? '',
        status,
        whole,
        ...counted,
      })
    if (json !== undefined) {
      note(true)
      return Response.json(json, { status })
    }
    if (events !== undefined) {
      const stream = streamOf(events, ending, note, breakOff(model).promise, () => abandoned.push(model))
      return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
    }
    await new Promise((resolve) => request.signal.addEventListener('abort', resolve))
    abandoned.push(model)
    return new Response()
  }
  const { url, listener } = await listenLocally(handler)
  return {
    url: `${url}/v1`,
    answered,
    sentAway,
    abandoned,
    reached: (model) => reach(model).promise,
    breakOff: (model) => breakOff(model).resolve(),
    stop: () => listener.drain(),
  }
}

/**
 * Returns each response by its requested model, which is unique per request.
 * @throws if a request got two responses
 */
export function answersOf(upstreams: Record<string, CountingUpstream>): Map<string, Answered & { upstream: string }> {
  const answers = new Map<string, Answered & { upstream: string }>()
  for (const [upstream, { answered }] of Object.entries(upstreams)) {
    for (const each of answered) {
      if (answers.has(each.model)) throw new Error(`${each.model} was answered twice`)
      answers.set(each.model, { ...each, upstream })
    }
  }
  return answers
}

function eventsByName(): (name: string) => PromiseWithResolvers<void> {
  const known = new Map<string, PromiseWithResolvers<void>>()
  return (name) => {
    const event = known.get(name) ?? Promise.withResolvers<void>()
    known.set(name, event)
    return event
  }
}

/**
 * Sends one event per pull. Records the response once: when it is complete, when it breaks, or when the caller
 * disconnects.
 */
function streamOf(
  events: string[],
  ending: NonNullable<Script['ending']>,
  note: (whole: boolean) => void,
  breaksOff: Promise<void>,
  abandon: () => void,
): ReadableStream<Uint8Array> {
  let sent = 0
  const held = Promise.withResolvers<void>()
  return new ReadableStream({
    pull: async (controller) => {
      const event = events[sent++]
      if (event !== undefined) {
        if (sent === events.length && ending.endsWith('whole')) note(true)
        controller.enqueue(new TextEncoder().encode(event))
      } else if (ending === 'whole') controller.close()
      else if (ending === 'broken') {
        await breaksOff
        note(false)
        controller.error(new Error('broken'))
      } else await held.promise
    },
    cancel: () => {
      held.resolve()
      abandon()
      if (ending === 'held') note(false)
    },
  })
}

function refusal(status: number): Response {
  return Response.json({ error: { message: 'no' } }, { status })
}

/** The reported fields, and null for the others. */
export function countsOf(counted: Partial<Counted>): Counted {
  const none = { prompt: null, completion: null, total: null, cached: null, reasoning: null, costNanodollars: null }
  return { ...none, ...counted }
}

const choice = { index: 0, message: { role: 'assistant', content: 'hi' } }
const delta = { index: 0, delta: { content: 'hi' } }
const promptOf = (number: number) => 10 + (number % 17)
const completionOf = (number: number) => 1 + (number % 11)
const cachedOf = (number: number) => number % 5

function chatUsage(number: number, costNanodollars: number | null = null) {
  const [prompt, completion, cached] = [promptOf(number), completionOf(number), cachedOf(number)]
  const total = prompt + completion
  return {
    usage: {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: total,
      prompt_tokens_details: { cached_tokens: cached },
      completion_tokens_details: { reasoning_tokens: 1 },
      ...(costNanodollars === null ? {} : { cost: costNanodollars / 1e9 }),
    },
    counted: { prompt, completion, total, cached, reasoning: 1, costNanodollars },
  }
}

function chat({ number, named }: Asked, costNanodollars?: number): Script {
  const { usage, counted } = chatUsage(number, costNanodollars)
  return { json: { model: named, choices: [choice], usage }, counted }
}

/** Reports its usage only on request. */
function chatStream({ number, named, includesUsage }: Asked, costNanodollars?: number): Script {
  const { usage, counted } = chatUsage(number, costNanodollars)
  const words = new Array(1 + (number % 3)).fill(eventOf({ model: named, choices: [delta] }))
  const usageEvents = includesUsage ? [eventOf({ model: named, choices: [], usage })] : []
  return { events: [...words, ...usageEvents, eventOf('[DONE]')], counted: includesUsage ? counted : countsOf({}) }
}

function response({ number, named }: Asked) {
  const [prompt, completion, cached] = [promptOf(number), completionOf(number), cachedOf(number)]
  const usage = {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: cached },
    output_tokens: completion,
    output_tokens_details: { reasoning_tokens: 2 },
    total_tokens: prompt + completion,
  }
  const counted = countsOf({ prompt, completion, total: prompt + completion, cached, reasoning: 2 })
  return { body: { object: 'response', model: named, output: [], usage }, counted }
}

function message({ number, named }: Asked) {
  const [prompt, completion, cached] = [promptOf(number), completionOf(number), cachedOf(number)]
  // The uncached input only; input written to the cache also counts as input.
  const input = { input_tokens: prompt - cached - 1, cache_read_input_tokens: cached, cache_creation_input_tokens: 1 }
  const counted = countsOf({ prompt, completion, total: prompt + completion, cached })
  const start = { type: 'message_start', message: { model: named, usage: { ...input, output_tokens: 1 } } }
  return {
    body: { type: 'message', model: named, content: [], usage: { ...input, output_tokens: completion } },
    started: [eventOf(start), eventOf({ type: 'content_block_delta', index: 0 })],
    ended: [
      eventOf({ type: 'message_delta', usage: { output_tokens: completion } }),
      eventOf({ type: 'message_stop' }),
    ],
    counted,
    countedAtStart: { ...counted, completion: 1, total: prompt + 1 },
  }
}

/** A stream that ends after one piece of content, without usage: the ledger estimates what it used. */
function word({ named }: Asked) {
  return { events: [eventOf({ model: named, choices: [delta] })], counted: countsOf({ completion: 1, total: 1 }) }
}

const scripts: Record<string, (asked: Asked) => Script> = {
  chat: (asked) => chat(asked),
  cost: (asked) => chat(asked, asked.number * 1_000 + 7),
  uncounted: ({ named }) => ({ json: { model: named, choices: [choice] } }),
  embeddings: ({ number, named }) => ({
    json: { model: named, data: [], usage: { prompt_tokens: promptOf(number), total_tokens: promptOf(number) } },
    counted: countsOf({ prompt: promptOf(number), total: promptOf(number) }),
  }),
  rerank: ({ number, named }) => ({
    json: { model: named, results: [], usage: { total_tokens: promptOf(number) } },
    counted: countsOf({ total: promptOf(number) }),
  }),
  response: (asked) => ({ json: response(asked).body, counted: response(asked).counted }),
  message: (asked) => ({ json: message(asked).body, counted: message(asked).counted }),
  stream: (asked) => chatStream(asked),
  'cost-stream': (asked) => chatStream(asked, asked.number * 1_000 + 13),
  'response-stream': (asked) => {
    const { body, counted } = response(asked)
    const created = eventOf({ type: 'response.created', response: { ...body, usage: null } })
    return { events: [created, eventOf({ type: 'response.completed', response: body })], counted }
  },
  'message-stream': (asked) => {
    const { started, ended, counted } = message(asked)
    return { events: [...started, ...ended], counted }
  },
  refuse400: () => ({ status: 400, json: { error: { message: 'no' } } }),
  refuse429: () => ({ status: 429, json: { error: { message: 'no' } } }),
  refuse500: () => ({ status: 500, json: { error: { message: 'no' } } }),
  break: (asked) => ({ ...word(asked), ending: 'broken' }),
  hold: (asked) => ({ ...word(asked), ending: 'held' }),
  'message-hold': (asked) => {
    const { started, countedAtStart } = message(asked)
    return { events: started, ending: 'held', counted: countedAtStart }
  },
  linger: (asked) => ({ ...chatStream(asked), ending: 'held when whole' }),
  silence: () => ({}),
}
