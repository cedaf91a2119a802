// Requests that arrive before a server serves wait for it.
import { expect, test } from 'bun:test'
import { holdRequests } from '../../src/runtime/held-requests.ts'
import type { Peer } from '../../src/runtime/listener.ts'

const peer: Peer = {
  address: null,
  liftIdleLimit: () => {},
  restoreIdleLimit: () => {},
  isCut: () => false,
  outlives: () => {},
}
const refused = () => new Response('refused', { status: 503 })
const request = new Request('http://127.0.0.1/v1/models')

test('requests wait for the handler, and later ones meet it directly', async () => {
  const { handler, serve } = holdRequests(refused)
  const early = handler(request, peer)
  serve(async () => new Response('served'))
  expect(await (await early).text()).toBe('served')
  expect(await (await handler(request, peer)).text()).toBe('served')
})

test('requests are refused when the start fails', async () => {
  const { handler, refuse } = holdRequests(refused)
  const early = handler(request, peer)
  refuse()
  expect(await (await early).text()).toBe('refused')
})

test('a request is refused when the start takes too long, and is not served after it', async () => {
  const { handler, serve } = holdRequests(refused, 1)
  expect((await handler(request, peer)).status).toBe(503)
  let served = 0
  serve(async () => new Response(String(++served)))
  expect(await (await handler(request, peer)).text()).toBe('1')
})
