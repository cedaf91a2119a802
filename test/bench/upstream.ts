// An inference server that costs as little as it can: one fixed chat completion, as JSON or as fifty events that each go out by themselves.
// The model asked for shows how many milliseconds lie between two events: `paced-4`. Prints its port.
const usage = { prompt_tokens: 412, completion_tokens: 187, total_tokens: 599 }
const content = 'The quick brown fox jumps over the lazy dog, and then it has a rest. '.repeat(12)
const common = { id: 'chatcmpl-bench', created: 1_795_261_099, model: 'bench', system_fingerprint: 'bench' }
const whole = JSON.stringify({
  ...common,
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content }, logprobs: null, finish_reason: 'stop' }],
  usage,
})
const eventOf = (choices: object[], more = {}) =>
  `data: ${JSON.stringify({ ...common, object: 'chat.completion.chunk', choices, ...more })}\n\n`
const deltaOf = (text: string) => eventOf([{ index: 0, delta: { content: text }, logprobs: null, finish_reason: null }])
const encoder = new TextEncoder()
const events = [
  ...Array.from({ length: 47 }, (_, index) => deltaOf(` word${index}`)),
  eventOf([{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }]),
  eventOf([], { usage }),
  'data: [DONE]\n\n',
].map((text) => encoder.encode(text))

function stream(milliseconds: number): Response {
  let next = 0
  const body = new ReadableStream({
    type: 'direct',
    pull: async (controller: ReadableStreamDirectController) => {
      for (const event of events) {
        if (next++ > 0) await Bun.sleep(milliseconds)
        controller.write(event)
        await controller.flush()
      }
      controller.close()
    },
  } as unknown as UnderlyingDefaultSource)
  return new Response(body, { headers: { 'content-type': 'text/event-stream; charset=utf-8' } })
}

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  development: false,
  idleTimeout: 0,
  fetch: async (request) => {
    const asked = (await request.json()) as { model: string; stream?: boolean }
    if (asked.stream === true) return stream(Number(asked.model.split('-')[1]))
    return new Response(whole, { headers: { 'content-type': 'application/json' } })
  },
})
console.log(server.port)

export {}
