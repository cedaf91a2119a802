// What must hold on every runtime, written with Web standards and node:assert alone: exchange, key set and inference over real HTTP.
import assert from 'node:assert/strict'
import { createHash, X509Certificate } from 'node:crypto'
import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createRemoteJWKSet, type JWK, jwtVerify } from 'jose'
import { type Column, table } from '../../scripts/shared/table.ts'
import { readCertificateDigest } from '../../src/runtime/peer-certificate.ts'
import { readSettingTexts } from '../../src/settings/config.ts'
import { createPacker } from '../support/bundles.ts'
import {
  audience,
  type Federation,
  listenLocally,
  type Row,
  startTestServer,
  subject,
  temporaryFolder,
} from '../support/latchkey.ts'
import { hasPageFiles } from '../support/page-files.ts'
import { openRawRequest } from '../support/raw-request.ts'
import { hasOpenssl, makeCertificate, presentedName } from '../support/tls.ts'

export type Scenario = { name: string; run: (federation: Federation) => Promise<void> }

type Answer = Record<string, unknown>

const fixture = (name: string) => join(import.meta.dirname, '../fixtures/tls', name)
const conditional = { issuer: 'idp', key: 'target', audience, subject }

export const scenarios: Scenario[] = [
  {
    name: 'an RS256 token is exchanged for an access token that the published keys verify',
    run: (federation) => exchangesAndVerifies(federation, 'RS256'),
  },
  {
    name: 'an ES256 token is exchanged for an access token that the published keys verify',
    run: (federation) => exchangesAndVerifies(federation, 'ES256'),
  },
  {
    name: 'a token for another audience is refused with the generic answer, and the audit has the reason',
    run: async ({ exchange, mint, admin }) => {
      const response = await exchange(await mint({ aud: 'another' }))
      assert.equal(response.status, 400)
      assert.equal(response.headers.get('cache-control'), 'no-store')
      const answer = (await response.json()) as Answer
      assert.equal(answer.error, 'invalid_grant')
      assert.equal('access_token' in answer, false)
      const requestId = response.headers.get('x-request-id')
      const { data } = await admin<{ data: Answer[] }>('audit.list', { limit: 1 })
      assert.deepEqual([data[0]?.request_id, data[0]?.reason], [requestId, 'audience_mismatch'])
    },
  },
  {
    name: 'the server is ready, and a management key reads its metrics',
    run: async ({ server, admin }) => {
      const ready = await fetch(new URL('/readyz', server.baseUrl))
      assert.deepEqual([ready.status, await ready.json()], [200, { status: 'ready', failing: [], degraded: [] }])
      const { key } = await admin<Row & { key: string }>('keys.create', {
        name: 'scraper',
        kind: 'management_read_only',
      })
      const response = await fetch(`${server.baseUrl}/metrics`, { headers: { authorization: `Bearer ${key}` } })
      assert.match(await response.text(), /^latchkey_ready 1$/m)
    },
  },
  {
    name: 'a form that is too large is answered with 413',
    run: async ({ server }) => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const response = await fetch(`${server.baseUrl}/oauth/token`, {
        method: 'POST',
        headers,
        body: `subject_token=${'a'.repeat(32_768)}`,
      })
      assert.equal(response.status, 413)
      assert.equal(((await response.json()) as Answer).error, 'invalid_request')
    },
  },
  {
    name: 'a path is found as it was sent or not at all',
    run: async ({ server }) => {
      const rows: [target: string, host: string, status: number][] = [
        ['/v1/oauth/jwks', 'x', 200],
        ['/v1/x\\..\\oauth\\jwks', 'x', 404],
        ['/v1/x/../oauth/jwks', 'x', 404],
        ['/v1/x/%2e%2E/oauth/jwks', 'x', 404],
        ['/v1//oauth/jwks', 'x', 404],
        ['/other', 'x/v1/oauth/jwks?', 404],
      ]
      for (const [target, host, status] of rows) {
        const { socket, answer } = openRawRequest(server.baseUrl, 'GET', { host, connection: 'close' }, target)
        assert.equal((await answer).status, status, target)
        socket.destroy()
      }
    },
  },
  { name: 'a small form reaches the upstream whole, and a large one as it arrives', run: passesForms },
  {
    name: 'an access token calls inference, and the usage is committed when the answer has ended',
    run: async (federation) => {
      const response = await chat(federation, false)
      const answer = (await response.json()) as { usage: Answer }
      const row = await usageOf(federation, response)
      assert.deepEqual(
        [row?.total_tokens, row?.subject, row?.policy_id],
        [answer.usage.total_tokens, subject, federation.policy.id],
      )
    },
  },
  {
    name: 'a stream passes through to its end, without the usage event that the client did not ask for',
    run: async (federation) => {
      const response = await chat(federation, true)
      const text = await response.text()
      assert.match(text, /data: \[DONE\]\n\n$/)
      assert.doesNotMatch(text, /"usage"/)
      const row = await usageOf(federation, response)
      assert.deepEqual([row?.streamed, row?.completed, row?.prompt_tokens], [true, true, 2])
    },
  },
  {
    name: 'a client that leaves in the middle of a stream is recorded once, as broken off',
    run: async (federation) => {
      const response = await chat(federation, true, 'word '.repeat(20_000))
      const reader = response.body?.getReader()
      await reader?.read()
      await reader?.cancel()
      const row = await usageOf(federation, response)
      assert.deepEqual([row?.status, row?.completed, row?.usage_source], [200, false, 'none'])
    },
  },
  {
    name: 'a condition that is true is let through, one that is false or cannot be told is refused, each with its reason',
    run: async (federation) => {
      const condition = 'claims.environment == "production" && audience.exists(one, one.startsWith("latchkey"))'
      const { id } = await federation.admin<Answer>('policies.create', {
        ...conditional,
        name: 'conditional',
        condition,
      })
      const fields = { federation_policy_id: String(id) }
      const outcomes = []
      for (const claims of [{ environment: 'production' }, { environment: 'test' }, {}]) {
        const { status } = await federation.exchange(await federation.mint(claims), fields)
        const { data } = await federation.admin<{ data: Answer[] }>('audit.list', { limit: 1 })
        outcomes.push([status, data[0]?.reason])
      }
      assert.deepEqual(outcomes, [
        [200, null],
        [400, 'condition_false'],
        [400, 'condition_error'],
      ])
    },
  },
  {
    name: 'a server with TLS presents its certificate, and the new one after the files were replaced (that part needs openssl)',
    run: async () => {
      const folder = temporaryFolder()
      const settings = { LATCHKEY_TLS_CERT_FILE: fixture('server.pem'), LATCHKEY_TLS_KEY_FILE: fixture('server.key') }
      const files = {
        LATCHKEY_TLS_CERT_FILE: join(folder.path, 'cert'),
        LATCHKEY_TLS_KEY_FILE: join(folder.path, 'key'),
      }
      const texts = readSettingTexts({ flags: settings, environment: {} })
      const next = readSettingTexts({ flags: hasOpenssl ? files : settings, environment: {} })
      const { server, stop } = await startTestServer({ settings, start: { settings: { texts, reread: () => next } } })
      assert.equal(await presentedName(server.address.port), 'localhost')
      const ca = readFileSync(fixture('ca.pem'), 'utf8')
      const digest = await readCertificateDigest(server.baseUrl, ca)
      assert.equal(
        digest,
        new X509Certificate(readFileSync(fixture('server.pem'))).fingerprint256.replaceAll(':', '').toLowerCase(),
      )
      assert.equal(await readCertificateDigest(server.baseUrl, null), undefined)
      if (hasOpenssl) {
        const { certFile, keyFile } = makeCertificate(folder.path, 'renewed')
        copyFileSync(certFile, files.LATCHKEY_TLS_CERT_FILE)
        copyFileSync(keyFile, files.LATCHKEY_TLS_KEY_FILE)
        server.reload?.()
      }
      assert.equal(await presentedName(server.address.port), hasOpenssl ? 'renewed' : 'localhost')
      assert.equal((await fetch(server.baseUrl.replace('https:', 'http:'))).status, 400)
      await stop()
      folder.remove()
    },
  },
  {
    name: 'keys from a bundle verify tokens, whether it is signed with Ed25519 or P-256, and a changed bundle is refused',
    run: async ({ admin, mint, exchange, issuerUrl }) => {
      const { keys } = (await (await fetch(`${issuerUrl}/jwks`)).json()) as { keys: JWK[] }
      for (const algorithm of ['EdDSA', 'ES256'] as const) {
        const packer = await createPacker(issuerUrl, Date.now, algorithm)
        await admin('bundle_signers.add', { name: algorithm, key: packer.key.publicJwk })
        const bundle = await packer.pack([], { keys })
        const outcomeOf = async (file: string) =>
          (await admin<{ data: Answer[] }>('issuers.import', { file })).data.map(
            ({ outcome, reason }) => reason ?? outcome,
          )
        assert.deepEqual(await outcomeOf(`${bundle.slice(0, -8)}AAAAAAAA`), ['bundle_signature_invalid'])
        assert.deepEqual(await outcomeOf(bundle), ['imported'])
        assert.equal((await exchange(await mint())).status, 200)
      }
      await admin('issuers.update', { issuer: 'idp', discovery: true })
    },
  },
  {
    name: 'a token is exchanged once where replay is guarded against',
    run: async ({ admin, exchange, mint }) => {
      const { id } = await admin<Answer>('policies.create', { ...conditional, name: 'once', replay_protection: true })
      const token = await mint({ jti: 'portable-1' })
      const answers = await Promise.all([1, 2, 3].map(() => exchange(token, { federation_policy_id: String(id) })))
      assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 400, 400])
    },
  },
  {
    name: 'a management key makes and deletes a policy over HTTP, and the document tells of it',
    run: async ({ server, admin }) => {
      const { key } = await admin<{ key: string }>('keys.create', { name: 'portable', kind: 'management' })
      const call = (method: string, path: string, body?: object) =>
        fetch(`${server.baseUrl}${path}`, {
          method,
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body: body === undefined ? null : JSON.stringify(body),
        })
      const made = await call('POST', '/workload-identity/policies', { ...conditional, name: 'http' })
      assert.equal(made.status, 201)
      const { data } = (await made.json()) as { data: Answer }
      const deleted = await call('DELETE', `/workload-identity/policies/${data.id}`)
      assert.deepEqual(await deleted.json(), { data: { id: data.id, deleted: true } })
      const document = (await (await call('GET', '/openapi.json')).json()) as { paths: Answer }
      assert.ok('/workload-identity/policies/{policy}' in document.paths)
    },
  },
  {
    name: 'the admin page has the bytes of its files',
    run: ({ server }) => hasPageFiles(server.pageUrl ?? ''),
  },
  {
    name: 'the signing key is rotated, and tokens of both keys verify',
    run: async (federation) => {
      await federation.admin('signing_keys.rotate', { at_once: true })
      await exchangesAndVerifies(federation, 'ES256')
      const { keys } = (await (await fetch(`${federation.server.baseUrl}/oauth/jwks`)).json()) as { keys: Answer[] }
      assert.equal(keys.length, 2)
    },
  },
  {
    name: 'the upstream models are listed for an access token and refused without a credential',
    run: async (federation) => {
      const { server } = federation
      const headers = { authorization: `Bearer ${await accessToken(federation)}` }
      const listed = (await (await fetch(`${server.baseUrl}/models`, { headers })).json()) as { data: Answer[] }
      assert.equal(listed.data[0]?.id, 'echo')
      const refused = await fetch(`${server.baseUrl}/models`)
      assert.equal(refused.status, 401)
      assert.match(refused.headers.get('www-authenticate') ?? '', /^Bearer resource_metadata="http/)
    },
  },
  {
    name: 'a preset is made, found again and completes a request',
    run: async (federation) => {
      const { key } = await federation.admin<{ id: string; key: string }>('keys.create', {
        name: 'admin',
        kind: 'management',
      })
      const preset = { model: 'echo', messages: [{ role: 'system', content: 'Be brief' }] }
      const call = async (path: string, credential: string, body?: object) => {
        const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
        const method = body === undefined ? 'GET' : 'POST'
        const sent = body === undefined ? null : JSON.stringify(body)
        const response = await fetch(federation.server.baseUrl + path, { method, headers, body: sent })
        assert.equal(response.status, 200)
        return response
      }
      for (const _ of [1, 2]) await call('/presets/brief/chat/completions', key, preset)
      const found = (await (await call('/presets/brief', key)).json()) as { data: { designated_version: Answer } }
      assert.equal(found.data.designated_version.version, 2)
      const asked = { model: '@preset/brief@1', messages: [{ role: 'user', content: 'hello preset' }] }
      const response = await call('/chat/completions', await accessToken(federation), asked)
      assert.match(await response.text(), /hello preset/)
      assert.equal((await usageOf(federation, response))?.preset_version, 'brief@1')
    },
  },
  {
    name: 'a table counts wide characters as a terminal does',
    run: async () => {
      const columns: Column<[string, string]>[] = [
        ['ONE', ([one]) => one],
        ['TWO', ([, two]) => two],
      ]
      const drawn = table([['日本語', 'here']], columns, '', { columns: undefined, hasColor: false })
      assert.equal(drawn, 'ONE     TWO\n日本語  here')
    },
  },
]

async function exchangesAndVerifies(
  { server, exchange, mint, policy, issuer, key }: Federation,
  algorithm: 'RS256' | 'ES256',
): Promise<void> {
  const response = await exchange(await mint({}, algorithm))
  assert.equal(response.status, 200)
  const answer = (await response.json()) as {
    access_token: string
    expires_in: number
    token_type: string
    scope: string
  }
  assert.deepEqual([answer.token_type, answer.scope, answer.expires_in], ['Bearer', 'inference', 900])
  const keySet = createRemoteJWKSet(new URL(`${server.baseUrl}/oauth/jwks`))
  const { payload, protectedHeader } = await jwtVerify(answer.access_token, keySet, {
    issuer: server.baseUrl,
    audience: server.baseUrl,
    typ: 'at+jwt',
  })
  assert.equal(protectedHeader.alg, 'ES256')
  assert.deepEqual(
    [payload.sub, payload.client_id, payload.federation_policy_id, payload.federation_issuer_id],
    [subject, key.id, policy.id, issuer.id],
  )
  assert.notEqual(payload.aud, audience)
}

async function accessToken({ exchange, mint }: Federation): Promise<string> {
  const answer = (await (await exchange(await mint())).json()) as { access_token: string }
  return answer.access_token
}

async function chat(federation: Federation, stream: boolean, content = 'hello portable'): Promise<Response> {
  const headers = { authorization: `Bearer ${await accessToken(federation)}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ model: 'echo', stream, messages: [{ role: 'user', content }] })
  const response = await fetch(`${federation.server.baseUrl}/chat/completions`, { method: 'POST', headers, body })
  assert.equal(response.status, 200)
  return response
}

/** The ledger row of an answer; waits for it where the client left before the end. */
async function usageOf({ admin }: Federation, response: Response): Promise<Answer | undefined> {
  const requestId = response.headers.get('x-request-id')
  const deadline = Date.now() + 10_000
  while (Date.now() < deadline) {
    const { data } = await admin<{ data: Answer[] }>('usage.requests', { limit: 100 })
    const rows = data.filter((row) => row.request_id === requestId)
    assert.ok(rows.length <= 1, 'the request is in the ledger more than once')
    if (rows.length === 1) return rows[0]
    await new Promise((resolve) => setImmediate(resolve))
  }
  return undefined
}

async function passesForms(): Promise<void> {
  const { url, listener } = await listenLocally(async (request) => {
    const hash = createHash('sha256')
    for await (const chunk of request.body ?? []) hash.update(chunk)
    return Response.json({ digest: hash.digest('hex') })
  })
  const { admin, server, stop } = await startTestServer({ upstreamUrl: `${url}/v1` })
  try {
    const { key } = await admin<Row & { key: string }>('keys.create', { name: 'uploads' })
    for (const megabytes of [1, 9]) {
      const form = new FormData()
      form.set('model', 'whisper')
      form.set('file', new Blob([new Uint8Array(megabytes * 1024 * 1024).fill(megabytes)]), 'a.wav')
      const whole = new Response(form)
      const headers = { authorization: `Bearer ${key}`, 'content-type': whole.headers.get('content-type') ?? '' }
      const body = new Uint8Array(await whole.arrayBuffer())
      const response = await fetch(`${server.baseUrl}/audio/transcriptions`, { method: 'POST', headers, body })
      const digest = createHash('sha256').update(body).digest('hex')
      assert.deepEqual([response.status, await response.json()], [200, { digest }])
    }
  } finally {
    await stop()
    await listener.drain()
  }
}
