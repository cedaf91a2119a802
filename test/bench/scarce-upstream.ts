// An inference server that takes as many milliseconds as the model says (`takes-100`), runs at most so many requests at once, and lets more
// wait in the order of their arrival. Prints its port; GET /most returns the most requests that it had at once, and begins to count again.
// As `bun scarce-upstream.ts RUNNING_MAX [PORT]`.
const [, , runningMax = '1', port = '0'] = process.argv
const answer = JSON.stringify({
  ...{ id: 'chatcmpl-bench', object: 'chat.completion', created: 1_795_261_099, model: 'bench' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 100, completion_tokens: 100, total_tokens: 200 },
})
const waiting: (() => void)[] = []
let [running, here, most] = [0, 0, 0]

async function serve(milliseconds: number): Promise<void> {
  if (running >= Number(runningMax)) await new Promise<void>((resolve) => waiting.push(resolve))
  else running += 1
  await Bun.sleep(milliseconds)
  const next = waiting.shift()
  if (next === undefined) running -= 1
  else next()
}

const server = Bun.serve({
  port: Number(port),
  hostname: '127.0.0.1',
  development: false,
  idleTimeout: 0,
  fetch: async (request) => {
    if (request.method === 'GET') {
      const response = Response.json(most)
      most = here
      return response
    }
    here += 1
    most = Math.max(most, here)
    const { model } = (await request.json()) as { model: string }
    await serve(Number(model.split('-')[1]))
    here -= 1
    return new Response(answer, { headers: { 'content-type': 'application/json' } })
  },
})
console.log(server.port)

export {}
