// An upstream without a stored credential: two Latchkeys in a chain, where the first exchanges its own token at the second.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CredentialExchange } from '../../../db/schema/credential-exchange.ts'
import { type Fault, logTextOf } from '../../../src/fault.ts'
import { createExchangedTokens } from '../../../src/inference/upstream/exchanged-tokens.ts'
import { configuredUpstream } from '../../../src/inference/upstream/targets.ts'
import { exchangeToken } from '../../../src/inference/upstream/token-exchange.ts'
import type { FetchInit } from '../../../src/runtime/outbound.ts'
import {
  type Federation,
  type Row,
  startFederation,
  startTestServer,
  type TestServer,
  temporaryFolder,
} from '../../support/latchkey.ts'
import { until } from '../../support/until.ts'

const clock = { now: Date.now() }
const folder = temporaryFolder()
const tokenFile = join(folder.path, 'token')
const minutes = (count: number) => {
  clock.now += count * 60_000
}
let first: TestServer
let second: Federation
let key: string
beforeAll(async () => {
  const dependencies = { now: () => clock.now }
  second = await startFederation({ dependencies })
  first = await startTestServer({ dependencies })
  key = (await first.admin<Row & { key: string }>('keys.create', { name: 'app' })).key
  await project()
  await first.admin('upstreams.add', {
    ...{ name: 'east', base_url: second.server.baseUrl },
    credential_exchange: { token_file: tokenFile, policy: second.policy.id },
  })
})
afterAll(async () => {
  await first.stop()
  await second.stop()
  folder.remove()
})

/** Writes the file as a platform does: a token that is valid for an hour by the clock of the test. */
async function project(claims: object = {}): Promise<void> {
  writeFileSync(tokenFile, `${await second.mint({ exp: Math.floor(clock.now / 1_000) + 3_600, ...claims })}\n`)
}

async function infer(): Promise<{ status: number; text: string }> {
  const response = await fetch(`${first.server.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'through both' }] }),
  })
  return { status: response.status, text: await response.text() }
}

async function exchanges(): Promise<string[]> {
  const { data } = await second.admin<{ data: { outcome: string }[] }>('audit.list', { limit: 1_000 })
  return data.map(({ outcome }) => outcome).toReversed()
}

const linesOf = (event: string) => first.logLines.filter((line) => line.includes(`"${event}"`))

describe('two Latchkeys in a chain', () => {
  test('pass requests on after one exchange, however many arrive at once', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, infer))
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
    expect(answers[0]?.text).toContain('through both')
    expect(await exchanges()).toEqual(['issued'])
    const { data } = await second.admin<{ data: { subject: string }[] }>('usage.requests', {})
    expect(data).toHaveLength(20)
    expect(new Set(data.map(({ subject }) => subject))).toEqual(new Set(['workload-1']))
    expect(await first.admin('upstreams.show', { upstream: 'east' })).toMatchObject({
      has_credential: true,
      credential_exchange: { token_file: tokenFile, url: null, policy: second.policy.id },
    })
  })

  test('renew the token ahead of its end, while requests use the old one', async () => {
    minutes(9)
    expect((await infer()).status).toBe(200)
    expect(await exchanges()).toEqual(['issued'])
    minutes(2)
    await project()
    expect((await infer()).status).toBe(200)
    await until('the renewal', async () => (await exchanges()).length === 2)
    minutes(9)
    expect((await infer()).status).toBe(200)
    expect(await exchanges()).toEqual(['issued', 'issued'])
  })

  test('exchange again when the token of the second has expired, with the file as it is then', async () => {
    minutes(60)
    await project()
    expect((await infer()).status).toBe(200)
    expect((await exchanges()).length).toBe(3)
  })

  test('repeat a request once when the second has revoked its tokens', async () => {
    await second.admin('signing_keys.rotate', { revoke: true })
    // A token that is refused when it is new would be refused again.
    expect((await infer()).status).toBe(502)
    expect((await exchanges()).length).toBe(3)
    minutes(1)
    const answers = await Promise.all(Array.from({ length: 5 }, infer))
    expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(200))
    expect((await exchanges()).length).toBe(4)
  })

  test('keep a request going while a renewal fails, and fail as an upstream does once the token is over', async () => {
    await project({ sub: 'somebody-else' })
    minutes(11)
    expect((await infer()).status).toBe(200)
    await until('the failed renewal', async () => linesOf('upstream_exchange_failed').length === 1)
    minutes(5)
    const { status, text } = await infer()
    expect({ status, text: JSON.parse(text) }).toEqual({
      status: 502,
      text: {
        error: {
          code: 502,
          message: 'The inference server cannot be reached: try again later',
          metadata: { error_type: expect.any(String) },
        },
      },
    })
    const lines = linesOf('upstream_exchange_failed')
    expect(lines).toHaveLength(2)
    expect(lines[1]).toMatch(
      /upstream_exchange_failed, http.*responded with 400, invalid_grant, request id [0-9a-f-]{36}/,
    )
    for (const line of lines) expect(line).not.toContain('eyJ')
    expect(await first.server.context.reportMetrics()).toMatch(
      /latchkey_failures_total\{reason="upstream_exchange_failed"\} 1/,
    )
    const before = (await exchanges()).length
    expect((await infer()).status).toBe(502)
    expect((await exchanges()).length).toBe(before)
    await project()
    clock.now += 4_000
    expect((await infer()).status).toBe(200)
    const { data } = await first.admin<{ data: object[] }>('upstreams.check', {})
    expect(data).toMatchObject([{ name: 'east', ok: true, problem: null }])
  })

  test('are part of a configuration document, which has no secret', async () => {
    const document = await first.admin<{ upstreams: Row[] }>('config.export')
    expect(document.upstreams).toEqual([
      {
        name: 'east',
        base_url: second.server.baseUrl,
        credential_exchange: { token_file: tokenFile, policy: second.policy.id },
      },
    ] as unknown as Row[])
    const { upstreams } = document
    const applied = await first.admin<{ counts: object }>('config.apply', { document: { latchkey: 1, upstreams } })
    expect(applied.counts).toMatchObject({ create: 0, update: 0 })
  })
})

describe('an exchange is refused when it is set', () => {
  const exchange = (fields: object) => ({ token_file: '/run/token', ...fields })
  const refused: [name: string, input: object, message: string][] = [
    ['beside a credential', { credential: 'x', credential_exchange: exchange({}) }, 'has one credential'],
    ['for a relative file', { credential_exchange: exchange({ token_file: 'token' }) }, 'absolute path'],
    ['at another host without TLS', { credential_exchange: exchange({ url: 'http://sts.example/token' }) }, 'https://'],
    ['with a password in the URL', { credential_exchange: exchange({ url: 'https://a:b@c/token' }) }, 'https://'],
  ]
  for (const [name, input, message] of refused)
    test(name, async () => {
      const added = first.admin('upstreams.add', { name: 'new', base_url: 'http://127.0.0.1:1/v1', ...input })
      await expect(added).rejects.toThrow(message)
    })

  test('and a stored credential replaces it, as it replaces one', async () => {
    const named = { name: 'both', base_url: 'http://127.0.0.1:1/v1', credential: 'secret' }
    await first.admin('upstreams.add', { ...named, priority: 100, models: ['none'] })
    const change = (fields: object) => first.admin('upstreams.update', { upstream: 'both', ...fields })
    const credential_exchange = exchange({ url: 'http://127.0.0.1:1/token', audience: 'a', scope: 's' })
    expect(await change({ credential_exchange })).toMatchObject({
      credential_exchange: { audience: 'a', policy: null },
    })
    await expect(change({ base_url: 'http://127.0.0.1:2/v1' })).rejects.toThrow('token endpoint')
    expect(await change({ credential: 'other' })).toMatchObject({ has_credential: true, credential_exchange: null })
    expect(await change({ credential: null })).toMatchObject({ has_credential: false })
    await first.admin('upstreams.remove', { upstream: 'both' })
  })
})

describe('one exchange', () => {
  const upstream = configuredUpstream('https://llm.example/v1')
  const exchange: CredentialExchange = {
    tokenFile,
    url: 'https://sts.example/token',
    policy: null,
    audience: 'llm',
    scope: null,
  }
  const answer = (body: unknown, init?: ResponseInit) => async () =>
    new Response(typeof body === 'string' ? body : JSON.stringify(body), init)
  const reasonOf = (
    fetch: (url: string, init: FetchInit) => Promise<Response>,
    more: Partial<CredentialExchange> = {},
  ) =>
    exchangeToken(upstream, { ...exchange, ...more }, fetch).then(
      () => 'exchanged',
      (error: Fault) => {
        expect(error.message).toBe('The inference server cannot be reached: try again later')
        return logTextOf(error)
      },
    )
  const good = { access_token: 'token', token_type: 'bearer' }

  test('sends the fields of RFC 8693 to the token endpoint alone', async () => {
    let sent: { url: string; form: Record<string, string> } | undefined
    const fetch = async (url: string, { body, redirect }: FetchInit) => {
      expect(redirect).toBe('manual')
      sent = { url, form: Object.fromEntries(body as URLSearchParams) }
      return Response.json(good)
    }
    expect(await exchangeToken(upstream, exchange, fetch)).toEqual({ text: 'token', lifetimeSeconds: 300 })
    expect(sent).toEqual({
      url: 'https://sts.example/token',
      form: {
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
        requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        subject_token: expect.stringMatching(/^eyJ/),
        audience: 'llm',
      },
    })
  })

  const failures: [name: string, fetch: () => Promise<Response>, reason: RegExp][] = [
    [
      'a redirect, which is not followed',
      answer('', { status: 302, headers: { location: 'https://x' } }),
      /with a redirect, which is not followed$/,
    ],
    ['an endless body', async () => new Response(endless()), /more than 64 KB/],
    ['no JSON', answer('<html>'), /Bearer token/],
    ['another type of token', answer({ ...good, token_type: 'N_A' }), /Bearer token/],
    ['a token that breaks a header', answer({ ...good, access_token: 'a\r\nb' }), /Bearer token/],
    ['a lifetime of nothing', answer({ ...good, expires_in: 0 }), /Bearer token/],
    [
      'no connection',
      () => Promise.reject(new Error('ECONNREFUSED')),
      /sts\.example\/token could not be reached: ECONNREFUSED/,
    ],
  ]
  for (const [name, fetch, reason] of failures)
    test(`fails for ${name}`, async () => {
      expect(await reasonOf(fetch)).toMatch(reason)
    })

  test('sends no file that is not a JWT, and none that is not a file', async () => {
    const sent: string[] = []
    const fetch = async (url: string) => {
      sent.push(url)
      return Response.json(good)
    }
    writeFileSync(join(folder.path, 'secret'), 'root:x:0:0')
    writeFileSync(join(folder.path, 'large'), `eyJ.${'a'.repeat(20_000)}.b`)
    mkdirSync(join(folder.path, 'folder'))
    expect(spawnSync('mkfifo', [join(folder.path, 'pipe')]).status).toBe(0)
    for (const name of ['secret', 'large'])
      expect(await reasonOf(fetch, { tokenFile: join(folder.path, name) })).toEndWith('has no JWT')
    for (const name of ['folder', 'pipe'])
      expect(await reasonOf(fetch, { tokenFile: join(folder.path, name) })).toContain('is not a file')
    expect(await reasonOf(fetch, { tokenFile: join(folder.path, 'none') })).toContain('cannot be read')
    expect(sent).toEqual([])
    // Kubernetes projects a token as a link that it replaces.
    symlinkSync(tokenFile, join(folder.path, 'link'))
    expect(await reasonOf(fetch, { tokenFile: join(folder.path, 'link') })).toBe('exchanged')
  })

  test('is not made for a request that finds a token in memory', async () => {
    let made = 0
    const tokenOf = createExchangedTokens({
      fetch: async () => {
        made += 1
        return Response.json({ ...good, expires_in: 900 })
      },
      monotonic: () => 0,
      log: () => {},
    })
    for (let request = 0; request < 1_000; request++)
      expect((await tokenOf(upstream, exchange).get()).text).toBe('token')
    expect(made).toBe(1)
  })
})

function endless(): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(16_384)) })
}
