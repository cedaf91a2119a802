// What a developer reads when a request fails (reference: Error shape), for every reason that the program knows: what was wrong, the rule, and
// what to do next. No text has what belongs to the administrator.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import type { Fault } from '../../src/fault.ts'
import { reasonNames, rowOf } from '../../src/federation/subject-token/refusal.ts'
import { errorTypeWords } from '../../src/http/reply.ts'
import { keepAt } from '../../src/inference/stored-responses.ts'
import { upstreamLate } from '../../src/inference/upstream/forward.ts'
import type { Upstream } from '../../src/inference/upstream/targets.ts'
import { outcomeUnknown } from '../../src/nodes/database-unreachable.ts'
import { outboundFetch } from '../../src/runtime/outbound.ts'
import type { Row } from '../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'
import { openRawRequest } from '../support/raw-request.ts'
import { type ScriptedUpstream, startScriptedUpstream } from '../support/scripted-upstream.ts'

/** Texts that the interface fixes, or that are the same for every reason so that nobody can probe. */
const fixed = new Set([
  'Missing Authentication header',
  'Resource not found',
  'Internal server error',
  'Invalid credentials',
])
const nextStep =
  /\b(?:send|use|name|retry|try again|ask|choose|shorten|exchange|set|change|create|write|look before|must|may only|did you mean|resets at|is not one of them|administrator)\b/i

type Sent = { path?: string; method?: string; key?: string; headers?: Record<string, string>; body?: BodyInit | object }
type Refused = { status: number; message: string; type: string; reason: string; text: string }
type Case = Sent | (() => Promise<Sent | Refused>)

let latchkey: PastedIssuer
let upstream: ScriptedUpstream
const keys: Record<string, string> = {}
const outcomes = new Map<string, Refused>()
const presetBody = { dialect: 'chat', body: '{"model":"m","messages":[{"role":"user","content":"x"}]}' }

const chat = (fields: object): Sent => ({ body: { model: 'm', ...fields } })
const form = (fields: Record<string, string | Blob>): Sent => {
  const body = new FormData()
  for (const [name, value] of Object.entries(fields)) body.set(name, value)
  return { path: '/audio/transcriptions', body }
}
const large = new Blob([Buffer.alloc(5 * 1024 * 1024)])
const large3 = new Blob([Buffer.alloc(3 * 1024 * 1024)])
const responding =
  (answer: () => Response, sent: Sent = chat({})) =>
  async () => {
    upstream.answer.current = answer
    return sent
  }
const prepared =
  (name: Parameters<PastedIssuer['admin']>[0], input: Record<string, unknown>, sent: Sent) => async () => {
    await latchkey.admin(name, input)
    return sent
  }

/** One request for each reason. */
const cases: Record<string, Case> = {
  no_upstream: async () => {
    const refused = await send(chat({}))
    await latchkey.admin('upstreams.add', {
      name: 'hidden-name',
      base_url: upstream.url,
      models: ['m', 'other', 'far'],
    })
    await latchkey.admin('upstreams.add', { name: 'hidden-down', base_url: 'http://127.0.0.1:9/v1', models: ['down'] })
    return refused
  },
  header_missing: { key: '' },
  header_malformed: { headers: { authorization: 'Basic abc' } },
  key_unknown: { key: `sk-lk-v1-${'0'.repeat(64)}` },
  key_disabled: prepared('keys.update', { key: 'disabled', disabled: true }, { key: 'disabled' }),
  key_deleted: prepared('keys.delete', { key: 'deleted' }, { key: 'deleted' }),
  key_rotated: prepared('keys.rotate', { key: 'rotated', grace_seconds: 0 }, { key: 'rotated' }),
  key_kind: { key: 'boss' },
  token_invalid: { key: 'nonsense' },
  token_not_exchanged: async () => ({ key: await latchkey.sign() }),
  two_hosts: async () => {
    const url = latchkey.server.baseUrl
    const { host } = new URL(url)
    const { socket, answer } = openRawRequest(`${url}/models`, 'GET', { host: `${host}\r\nHost: ${host}` })
    const { status, body } = await answer
    socket.destroy()
    return outcomeOf(status, body)
  },
  path_unknown: { path: '/chat/completion' },
  method_not_allowed: { method: 'PUT' },
  content_type: { headers: { 'content-type': 'text/plain' }, body: '{}' },
  content_encoding: { headers: { 'content-encoding': 'gzip' } },
  body_too_large: { body: `{"a":"${'x'.repeat(1024 * 1024)}"}` },
  body_not_json: { body: '{"model": "m",}' },
  body_member_twice: { body: '{"model":"m","model":"other"}' },
  body_json_bounds: { body: `{"a":${'['.repeat(300)}${']'.repeat(300)}}` },
  body_refused: chat({ stream: 'yes' }),
  session_too_long: { headers: { 'x-session-id': 's'.repeat(300) } },
  preset_reference: chat({ model: '@preset/' }),
  preset_unknown: chat({ model: '@preset/none' }),
  preset_version_unknown: prepared('presets.save', { preset: 'one', ...presetBody }, chat({ model: '@preset/one@7' })),
  preset_disabled: prepared('presets.update', { preset: 'one', status: 'disabled' }, chat({ model: '@preset/one' })),
  preset_archived: async () => {
    await latchkey.admin('presets.save', { preset: 'two', ...presetBody })
    await latchkey.admin('presets.archive', { preset: 'two' })
    return chat({ model: '@preset/two' })
  },
  preset_not_allowed: { key: 'presets', ...chat({}) },
  background: { path: '/responses', ...chat({ background: true }) },
  shared_state: { path: '/responses', ...chat({ conversation: 'conv_1' }) },
  model_unserved: chat({ model: 'nobody' }),
  provider_unserved: chat({ model: 'down', provider: { only: ['hidden-name'] } }),
  model_not_allowed: { key: 'limited', ...chat({ model: 'other' }) },
  models_too_many: {
    key: 'limited',
    ...chat({ plugins: Array.from({ length: 1_100 }, (_, index) => ({ model: `m${index}` })) }),
  },
  models_hidden: { key: 'limited', ...form({ model: 'm', other: '{"model":"other"}', file: new Blob(['x']) }) },
  key_rate: async () => {
    await send({ key: 'slow' }, { isRefused: false })
    return { key: 'slow' }
  },
  key_limit_spent: { key: 'spent' },
  budget_spent: async () => {
    const windows = [{ per: 'day', requests: 1 }]
    await latchkey.admin('budgets.create', { name: 'daily', applies_to: { keys: ['budgeted'] }, windows })
    upstream.answer.current = () => Response.json({ usage: {} })
    await send({ key: 'budgeted' }, { isRefused: false })
    return { key: 'budgeted' }
  },
  model_unpriced: async () => {
    const windows = [{ per: 'day', usd: 1 }]
    await latchkey.admin('budgets.create', {
      ...{ name: 'priced', applies_to: { keys: ['priced'] }, windows, unpriced: 'refuse' },
    })
    return { key: 'priced' }
  },
  queue_full: async () => {
    await latchkey.admin('upstreams.add', {
      name: 'hidden-busy',
      base_url: upstream.url,
      models: ['busy'],
      max_running: 1,
    })
    const asked = Promise.withResolvers<void>()
    const held = Promise.withResolvers<Response>()
    upstream.answer.current = () => {
      asked.resolve()
      return held.promise
    }
    const first = send(chat({ model: 'busy' }))
    await asked.promise
    const refused = await send({ key: 'hasty', ...chat({ model: 'busy' }) })
    held.resolve(Response.json({ error: 'x' }, { status: 400 }))
    await first.catch(() => {})
    return refused
  },
  attribution_header: { key: 'fronted', headers: { 'x-user': 'ü'.repeat(600) } },
  form_refused: {
    path: '/audio/transcriptions',
    headers: { 'content-type': 'multipart/form-data; boundary=b' },
    body: '--b\nContent-Disposition: form-data; name="model"\n\nm\n--b--\n',
  },
  form_without_model: form({ file: large3, model: 'm' }),
  form_field_late: form({ model: 'm', file: large, prompt: '{"a":1}' }),
  response_unknown: { method: 'GET', path: '/responses/resp_none' },
  generation_unknown: { method: 'GET', path: `/generation?id=${crypto.randomUUID()}` },
  forwarding_loop: async () => {
    upstream.answer.current = () => Response.json({})
    await send(chat({}), { isRefused: false })
    return { headers: { via: upstream.requests.at(-1)?.headers.get('via') ?? '' } }
  },
  upstream_unreachable: chat({ model: 'down' }),
  upstream_refused: responding(() => new Response('', { status: 401 })),
  upstream_status: responding(() => new Response('', { status: 302, headers: { location: 'http://secret.test' } })),
  upstream_content_encoding: responding(() => new Response('x', { headers: { 'content-encoding': 'br' } })),
  upstream_list: responding(() => new Response('nothing'), { method: 'GET', path: '/models/far' }),
  token_expired: async () => {
    const { access_token } = (await (await latchkey.exchange(await latchkey.sign())).json()) as { access_token: string }
    latchkey.clock.now += 3_600_000
    return { key: access_token }
  },
  key_expired: { key: 'expiring' },
}

/** Reasons that no single request brings about: what makes the fault. */
const made: Record<string, () => Fault> = {
  upstream_late: () => upstreamLate(undefined),
  commit_outcome_unknown: () => outcomeUnknown(undefined),
  response_elsewhere: () => thrownBy(() => keepAt({} as Upstream, [])),
}
/** The rest, and the test that provokes it. */
const elsewhere: Record<string, string> = {
  body_broken: 'test/http/body.test.ts',
  body_late: 'test/http/body.test.ts',
  budget_held: 'test/spending/holds.test.ts',
  budget_values_exceeded: 'test/spending/budgets.test.ts',
  client_left: 'test/spending/holds.test.ts',
  key_ended: 'test/inference/ended-stream.test.ts',
  starting: 'test/server/app.test.ts',
  database_away_budget: 'test/nodes/grace.test.ts',
  database_not_writable: 'test/fault/full-disk.test.ts',
  database_unreachable: 'test/nodes/server-connection.test.ts',
  stopping: 'test/fault/drain.test.ts',
  upstream_exchange_failed: 'test/inference/upstream/exchange.test.ts',
  upstream_removed: 'test/inference/queue/lost-servers.test.ts',
}

function thrownBy(act: () => unknown): Fault {
  try {
    act()
  } catch (error) {
    return error as Fault
  }
  throw new Error('Nothing was thrown')
}

function outcomeOf(status: number, text: string): Refused {
  const { error } = JSON.parse(text) as { error?: { message: string; metadata: { error_type: string } } }
  if (error === undefined) throw new Error(`Not refused: ${status} ${text.slice(0, 200)}`)
  const line = latchkey.logLines.map((each) => JSON.parse(each) as Record<string, string>).findLast(isRefusal)
  return { status, message: error.message, type: error.metadata.error_type, reason: line?.reason ?? '', text }
}
const isRefusal = ({ event }: Record<string, string>) => event === 'request_refused' || event === 'request_failed'

async function send(
  { path = '/chat/completions', method = 'POST', key = 'usual', headers = {}, body = { model: 'm' } }: Sent,
  { isRefused = true } = {},
): Promise<Refused> {
  const isText = typeof body === 'string' || body instanceof FormData
  const sentBody = isText ? body : JSON.stringify(body)
  const response = await fetch(latchkey.server.baseUrl + path, {
    method,
    headers: {
      ...(key === '' ? {} : { authorization: `Bearer ${keys[key] ?? key}` }),
      ...(body instanceof FormData ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(method === 'GET' ? {} : { body: sentBody }),
  })
  const text = await response.text()
  return isRefused ? outcomeOf(response.status, text) : { status: 0, message: '', type: '', reason: '', text }
}

beforeAll(async () => {
  upstream = await startScriptedUpstream()
  latchkey = await startWithPastedIssuer({
    settings: { LATCHKEY_REFUSE_SHARED_STATE: 'true', LATCHKEY_MAX_BODY_MB: '1' },
    dependencies: { fetch: outboundFetch },
  })
  const newKey = async (name: string, more: object = {}) => {
    keys[name] = (await latchkey.admin<Row & { key: string }>('keys.create', { name, ...more })).key
  }
  keys.usual = latchkey.key.key
  for (const name of ['disabled', 'deleted', 'rotated', 'spent', 'budgeted', 'priced']) await newKey(name)
  await newKey('boss', { kind: 'management' })
  await newKey('presets', { allowed_presets: ['only'] })
  await newKey('limited', { allowed_models: ['m'] })
  await newKey('slow', { requests_per_minute: 1 })
  await newKey('hasty', { queue_seconds: 0 })
  await newKey('fronted', { attribute_from_header: 'x-user' })
  await newKey('expiring', { expires_at: new Date(Date.now() + 60_000).toISOString() })
  await latchkey.admin('keys.update', { key: 'spent', limit: 0 })
  for (const [reason, given] of Object.entries(cases)) {
    const sent = typeof given === 'function' ? await given() : given
    outcomes.set(reason, 'status' in sent ? sent : await send(sent))
  }
})
afterAll(async () => {
  await latchkey.stop()
  await upstream.stop()
})

function expectHelpful(message: string): void {
  expect(message).toMatch(/^\S.{0,700}[^.]$/s)
  expect([message, fixed.has(message) || nextStep.test(message)]).toEqual([message, true])
}

describe('a refusal says what to do next, and its reason only to the administrator', () => {
  for (const reason of Object.keys(cases))
    test(reason, () => {
      const refused = outcomes.get(reason)
      if (refused === undefined) throw new Error('It was not refused')
      expect(refused.reason).toMatch(new RegExp(`(?:^|\\()${reason}\\b`))
      expect(refused.status).toBeGreaterThanOrEqual(400)
      expectHelpful(refused.message)
      expect(errorTypeWords).toContain(refused.type)
      const ids = [latchkey.key.id, latchkey.policy.id, latchkey.issuer.id, latchkey.folder]
      for (const secret of [
        ...Object.values(keys),
        ...ids,
        'hidden-',
        new URL(upstream.url).host,
        'secret.test',
        '127.0.0.1:9',
      ])
        expect(refused.text).not.toContain(secret)
    })
})

for (const [reason, make] of Object.entries(made))
  test(`so does what no single request brings about: ${reason}`, () => {
    const fault = make()
    expect(fault.reason).toBe(reason)
    expectHelpful(fault.message)
  })

const root = join(import.meta.dir, '../..')
/** What serves workloads. */
const sources = [
  ...['src/inference/**/*.ts', 'src/keys/{admission,api-key,bearer,attribution}.ts', 'src/spending/*.ts'],
  ...['src/presets/{use,reference,apply}.ts', 'src/http/{body,json-text,session-header}.ts', 'src/server/app.ts'],
  ...['src/observe/write-check.ts', 'src/nodes/database-unreachable.ts'],
]

test('every reason in the code has its row here', () => {
  const found = new Set<string>()
  const withoutReason: string[] = []
  for (const pattern of sources)
    for (const file of new Glob(pattern).scanSync({ cwd: root })) {
      const text = readFileSync(join(root, file), 'utf8')
      for (const [, reason = ''] of text.matchAll(/(?:reason: |invalidCredential\()'(\w+)'/g)) found.add(reason)
      for (const [made] of text.matchAll(/new Fault\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)/g))
        if (!/reason|, why\)|'internal'|'Resource not found'|'Only management keys/.test(made))
          withoutReason.push(`${file}: ${made}`)
    }
  const known = new Set([cases, made, elsewhere].flatMap(Object.keys))
  expect([...found].filter((reason) => !known.has(reason))).toEqual([])
  expect(Object.values(elsewhere).filter((file) => !existsSync(join(root, file)))).toEqual([])
  expect(withoutReason).toEqual([])
})

test('the token endpoint too says what to do, or the one text for everything about token and policy', () => {
  const generic = rowOf('expired').description
  const isHelpful = /\b(?:send|must|try again|leave out|is not|sent|is missing|could not|did not|log)\b/i
  const poor = reasonNames
    .map(rowOf)
    .filter(({ description, error }) =>
      error === 'invalid_grant' ? description !== generic : !isHelpful.test(description),
    )
  expect(poor).toEqual([])
})
