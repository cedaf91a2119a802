// Portkey's gateway as the inference server: it takes its route from headers, so that a caller who could send them would choose who gets
// the credential of the upstream, and which model answers.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { type Row, startTestServer, type TestServer } from '../support/latchkey.ts'
import { hasGateway, hasNginx, type RealPart, startGateway, startNginx } from '../support/real-parts.ts'
import { type ScriptedUpstream, startScriptedUpstream } from '../support/scripted-upstream.ts'

const lacks = !hasGateway
const needs = "(needs Portkey's gateway: bun test/support/real-parts.ts)"
const credential = 'gateway-secret'

let latchkey: TestServer
let key: string
let gateway: RealPart
/** In front of the gateway, with its route in headers: how a gateway is given one from outside. */
let routed: RealPart | undefined
let inference: ScriptedUpstream
/** What a caller controls, somewhere on the network. */
let stranger: ScriptedUpstream
beforeAll(async () => {
  if (lacks) return
  ;[gateway, inference, stranger] = await Promise.all([
    startGateway(),
    startScriptedUpstream(),
    startScriptedUpstream(),
  ])
  latchkey = await startTestServer()
  const allowed_models = ['bare', 'named', 'routed']
  ;({ key } = await latchkey.admin<Row & { key: string }>('keys.create', { name: 'app', allowed_models }))
  const add = (name: string, url: string, more: object = {}) =>
    latchkey.admin('upstreams.add', { name, base_url: `${url}/v1`, models: [name], credential, ...more })
  await add('bare', gateway.url)
  const forward_headers = ['x-portkey-provider', 'x-portkey-custom-host']
  await add('named', gateway.url, { forward_headers, return_headers: ['x-portkey-provider'] })
  if (!hasNginx) return
  const route = `proxy_set_header x-portkey-provider openai; proxy_set_header x-portkey-custom-host ${inference.url};`
  routed = await startNginx(`server { listen 127.0.0.1:{port}; location / { proxy_pass ${gateway.url}; ${route} } }`)
  await add('routed', routed.url)
})
beforeEach(() => {
  for (const server of lacks ? [] : [inference, stranger]) {
    server.requests.length = 0
    server.answer.current = () => Response.json(completion)
  }
})
afterAll(async () => {
  await latchkey?.stop()
  await Promise.all([routed, gateway, inference, stranger].map((part) => part?.stop()))
})

const completion = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'asked',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
}
const ask = (model: string, headers: Record<string, string> = {}) =>
  fetch(`${latchkey.server.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }] }),
  })
const routeTo = ({ url }: ScriptedUpstream) => ({ 'x-portkey-provider': 'openai', 'x-portkey-custom-host': url })
const gatewayHeaders = ({ headers }: Response) => [...headers].filter(([name]) => name.startsWith('x-portkey'))

describe('a caller', () => {
  test.skipIf(lacks)(`cannot have the credential sent to a server of theirs ${needs}`, async () => {
    const response = await ask('bare', routeTo(stranger))
    expect(stranger.requests).toEqual([])
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining('provider header is required'),
    ])
  })

  test.skipIf(lacks || !hasNginx)(`cannot have another model than asked for ${needs} (and nginx)`, async () => {
    const config = { provider: 'openai', api_key: 'x', custom_host: inference.url, override_params: { model: 'large' } }
    const response = await ask('routed', { 'x-portkey-config': JSON.stringify(config) })
    expect([response.status, await response.json()]).toEqual([200, completion])
    const [request] = inference.requests
    expect(JSON.parse(request?.body ?? '')).toMatchObject({ model: 'routed' })
    expect(request?.headers.get('authorization')).toBe(`Bearer ${credential}`)
    expect(gatewayHeaders(response)).toEqual([])
  })
})

test.skipIf(lacks)(`headers pass to the gateway and back where an admin names them ${needs}`, async () => {
  const response = await ask('named', routeTo(inference))
  expect([response.status, await response.json()]).toEqual([200, completion])
  expect(inference.requests).toHaveLength(1)
  expect(gatewayHeaders(response)).toEqual([['x-portkey-provider', 'openai']])
})
