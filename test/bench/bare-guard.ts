// The least that a guard of an inference server can cost on this runtime: verify the access token, remember that, pass the request on with
// another credential, and read the usage of the answer. It has no limits or presets and keeps no record. Prints its port; GET /tokens?count=N
// mints tokens. `bun bare-guard.ts UPSTREAM_ORIGIN`
const [, , origin = ''] = process.argv
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const { privateKey, publicKey } = await crypto.subtle.generateKey(algorithm, false, ['sign', 'verify'])
const encoder = new TextEncoder()
const decoder = new TextDecoder()
/** When each verified token expires, in seconds. */
const verified = new Map<string, number>()
const usage = { tokens: 0 }

async function mint(): Promise<string> {
  const parts = [
    { alg: 'ES256', typ: 'at+jwt', kid: 'bare' },
    { iss: 'x', aud: 'x', sub: 'workload', exp: Math.floor(Date.now() / 1_000) + 900, jti: crypto.randomUUID() },
  ].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  const signature = await crypto.subtle.sign(algorithm, privateKey, encoder.encode(parts.join('.')))
  return [...parts, Buffer.from(signature).toString('base64url')].join('.')
}

async function isValid(token: string): Promise<boolean> {
  const known = verified.get(token)
  if (known !== undefined) return known > Date.now() / 1_000
  const [header = '', payload = '', signature = ''] = token.split('.')
  const signed = encoder.encode(`${header}.${payload}`)
  if (!(await crypto.subtle.verify(algorithm, publicKey, Buffer.from(signature, 'base64url'), signed))) return false
  const { exp } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { exp: number }
  verified.set(token, exp)
  return exp > Date.now() / 1_000
}

/** Passes each chunk on as it comes, and reads those that have usage. */
function passOn(body: ReadableStream<Uint8Array>): ReadableStream {
  return new ReadableStream({
    type: 'direct',
    pull: async (controller: ReadableStreamDirectController) => {
      for await (const chunk of body) {
        const text = decoder.decode(chunk)
        if (text.includes('"usage"')) for (const line of text.split('\n')) readUsage(line.slice('data: '.length))
        controller.write(chunk)
        await controller.flush()
      }
      controller.close()
    },
  } as unknown as UnderlyingDefaultSource)
}

function readUsage(text: string): void {
  if (!text.includes('"usage"')) return
  const { usage: used } = JSON.parse(text) as { usage?: { total_tokens: number } }
  usage.tokens += used?.total_tokens ?? 0
}

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  development: false,
  idleTimeout: 0,
  fetch: async (request) => {
    const { pathname, searchParams } = new URL(request.url)
    if (pathname === '/tokens')
      return Response.json(await Promise.all(Array.from({ length: Number(searchParams.get('count')) }, mint)))
    const token = request.headers.get('authorization')?.slice('Bearer '.length) ?? ''
    if (!(await isValid(token))) return new Response(null, { status: 401 })
    const headers = { authorization: 'Bearer upstream-secret', 'content-type': 'application/json' }
    const answer = await fetch(origin + pathname, { method: 'POST', headers, body: await request.text() })
    const type = answer.headers.get('content-type') ?? ''
    const reply = { status: answer.status, headers: { 'content-type': type } }
    if (type.startsWith('text/event-stream') && answer.body !== null) return new Response(passOn(answer.body), reply)
    const text = await answer.text()
    readUsage(text)
    return new Response(text, reply)
  },
})
console.log(server.port)

export {}
