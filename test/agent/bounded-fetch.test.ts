// A server that takes its time ends a request with a sentence, whether it is silent before its response or in its body.
import { expect, test } from 'bun:test'
import { fetchText } from '../../src/agent/bounded-fetch.ts'
import { listenLocally } from '../support/latchkey.ts'

const silent: [name: string, respond: () => Promise<Response>][] = [
  ['before the response', () => new Promise(() => {})],
  [
    'in the body',
    async () => new Response(new ReadableStream({ start: (body) => body.enqueue(new TextEncoder().encode('{"a')) })),
  ],
]
for (const [name, respond] of silent) {
  test(`a server that falls silent ${name} is given up`, async () => {
    const server = await listenLocally(respond)
    const failed = fetchText(fetch, `${server.url}/t?secret=1`, {}, 'The server', 200)
    await expect(failed).rejects.toMatchObject({
      code: 'timeout',
      message: 'The server did not respond within 0.2 seconds',
      hint: `: check the network path to ${server.url}/t`,
    })
    void server.listener.drain()
  })
}

test('a server that is not there is named without its query', async () => {
  const failed = fetchText(fetch, 'http://127.0.0.1:1/t?secret=1', {}, 'The server')
  await expect(failed).rejects.toMatchObject({
    code: 'unavailable',
    message: 'The server could not be reached',
    hint: expect.stringMatching(/^ at http:\/\/127\.0\.0\.1:1\/t: /),
  })
})

test('a certificate that is not trusted comes with the setting for a private CA', async () => {
  // The texts of Node and Bun, and of Deno.
  for (const reason of ['unable to verify the first certificate', 'invalid peer certificate: UnknownIssuer']) {
    const failed = fetchText(() => Promise.reject(new Error(reason)), 'https://llm.example.com/v1', {}, 'The server')
    const hint = ` at https://llm.example.com/v1: ${reason}; with your own CA, set NODE_EXTRA_CA_CERTS to its file`
    await expect(failed).rejects.toMatchObject({ code: 'unavailable', hint })
  }
})
