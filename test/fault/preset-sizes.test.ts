// Large, deep and invalid preset bodies. Each gets its result or the rule that it violates, other requests are served
// meanwhile, and memory stays bounded.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { presetBodyBytesMax, presetProblemsMax } from '../../src/limits.ts'
import { type Installation, install, type Served } from '../support/installation.ts'
import type { Row } from '../support/latchkey.ts'
import { keepBusy } from '../support/load.ts'
import { chunkOf, openRawRequest } from '../support/raw-request.ts'

/**
 * Growth over the memory before. Fifty bodies of 75 MB in total are in progress at once, and a second round adds
 * nothing.
 */
const megabytesMax = 1_400

let installation: Installation
let served: Served
let management: string
let inference: string
let peakAtStart: number
beforeAll(async () => {
  installation = await install()
  served = await installation.serve()
  const create = async (name: string, kind: string) =>
    (await served.ask<Row & { key: string }>('keys.create', { name, kind })).key
  management = await create('admin', 'management')
  inference = await create('app', 'inference')
  peakAtStart = peakMegabytes()
})
afterAll(async () => {
  await served.serving.stop()
  await installation.remove()
})

/** The server's peak memory, if the system reports it. */
function peakMegabytes(): number {
  if (process.platform !== 'linux') return 0
  const status = readFileSync(`/proc/${served.serving.process.pid}/status`, 'utf8')
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024
}

async function countPresets(): Promise<number> {
  const headers = { authorization: `Bearer ${management}` }
  const response = await fetch(`${served.baseUrl}/presets?limit=1`, { headers })
  expect(response.status).toBe(200)
  return ((await response.json()) as { total_count: number }).total_count
}

async function infer(): Promise<void> {
  const response = await fetch(`${served.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${inference}`, 'content-type': 'application/json' },
    body: '{"model":"echo","messages":[{"role":"user","content":"hello"}]}',
  })
  expect(response.status).toBe(200)
  await response.json()
}

type Answer = { status: number; message: string; data: { designated_version: { config: object } } | undefined }

async function post(body: string, path = 'chat/completions'): Promise<Answer> {
  const response = await fetch(`${served.baseUrl}/presets/${crypto.randomUUID()}/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${management}`, 'content-type': 'application/json' },
    body,
  })
  const { data, error } = (await response.json()) as { data?: Answer['data']; error?: { message: string } }
  return { status: response.status, message: error?.message ?? '', data }
}

const megabyte = 'x'.repeat(1024 * 1024)
const conversation = '"messages":[{"role":"user","content":"hello"}]'
const times = (count: number, item: string) => new Array(count).fill(item).join(',')
const list = (count: number, item: string) => `[${times(count, item)}]`
const nested = (levels: number, open = '{"a":', close = '}') => `${open.repeat(levels)}{}${close.repeat(levels)}`
const withField = (name: string, json: string) => `{${conversation},"${name}":${json}}`
const withMessage = (message: string) => `{"messages":[${message}]}`
const tool = (more: string) => `{"type":"function","function":{"name":"f",${more}}}`
const numbered = (count: number, value: string) =>
  `{${Array.from({ length: count }, (_, index) => `"${index}":${value}`).join(',')}}`

const tooDeep = /^body: must be nested at most 128 levels deep$/
/** Bodies that every endpoint rejects before parsing them. */
const farTooDeep = /^The body must be nested at most 256 levels deep$/
const tooManyOutermost = /^The body must have at most 256 members in its outermost object$/
const tooManyMembers = /^The body must have at most 200000 members in all its objects$/
const tooMuch = /^Settings and system prompt have \d+ characters: a preset has at most 262144; shorten them$/
const notAnObject = /^The body must be a JSON object[:,] [^\n]{1,90}$/

/**
 * The requests, with the expected status and the rule in the error. Each body is created when it is sent and not kept.
 */
const chats: [what: string, body: () => string, status: number, message: RegExp][] = [
  [
    '1 MB of 5,000 tools',
    () => withField('tools', list(5_000, tool(`"description":"${'x'.repeat(150)}"`))),
    400,
    tooMuch,
  ],
  ['1,000 tools', () => withField('tools', list(1_000, tool(`"description":"${'x'.repeat(150)}"`))), 200, /^$/],
  ['100 levels in a tool', () => withField('tools', `[${tool(`"parameters":${nested(100)}`)}]`), 200, /^$/],
  [
    '100 levels in a response format',
    () => withField('response_format', `{"type":"json_schema","json_schema":{"name":"s","schema":${nested(100)}}}`),
    200,
    /^$/,
  ],
  [
    '100 levels in the content of a message',
    () => withMessage(`{"role":"user","content":[{"type":"text","text":"x","more":${nested(100, '[', ']')}}]}`),
    200,
    /^$/,
  ],
  [
    '100,000 levels of objects in a tool',
    () => withField('tools', `[${tool(`"parameters":${nested(100_000)}`)}]`),
    400,
    farTooDeep,
  ],
  [
    '100,000 levels of lists in a content',
    () => withMessage(`{"role":"user","content":${nested(100_000, '[', ']')}}`),
    400,
    farTooDeep,
  ],
  ['100,000 levels in a field that nobody knows', () => withField('unknown', nested(100_000)), 400, farTooDeep],
  ['200 levels in a field that nobody knows', () => withField('unknown', nested(200)), 400, tooDeep],
  ['2,000,000 levels of lists', () => withField('stop', nested(2_000_000, '[', ']')), 400, farTooDeep],
  ['2,000,000 levels of lists that never end', () => `{"stop":${'['.repeat(2_000_000)}`, 400, farTooDeep],
  ['lists that never end', () => `{"stop":${'['.repeat(200)}`, 400, notAnObject],
  ['10,000 messages', () => `{"messages":${list(10_000, '{"role":"user","content":"hello"}')}}`, 200, /^$/],
  ['10,000 system messages', () => `{"messages":${list(10_000, '{"role":"system","content":"hello"}')}}`, 200, /^$/],
  ['90,000 system messages', () => `{"messages":${list(90_000, '{"role":"system","content":"x"}')}}`, 400, tooMuch],
  ['a megabyte of text', () => withMessage(`{"role":"user","content":"${megabyte}"}`), 200, /^$/],
  ['a megabyte of system prompt', () => withMessage(`{"role":"system","content":"${megabyte}"}`), 400, tooMuch],
  ['a megabyte of model', () => withField('model', `"${megabyte}"`), 400, /^model: must be at most 256 characters$/],
  [
    'a megabyte of role',
    () => withMessage(`{"role":"${megabyte}","content":"x"}`),
    400,
    /^messages\[0\]\.role: must be one of /,
  ],
  ['a megabyte of user', () => withField('user', `"${megabyte}"`), 200, /^$/],
  [
    'a megabyte of session',
    () => withField('session_id', `"${megabyte}"`),
    400,
    /^session_id: must be at most 256 characters$/,
  ],
  ['a megabyte of a field that nobody knows', () => withField(megabyte, '1'), 200, /^$/],
  [
    'a megabyte of a key',
    () => withField('metadata', `{"${megabyte}":"x"}`),
    400,
    /^metadata\.x{64}….*: must have a key of at most 64 characters$/,
  ],
  [
    'a megabyte of a value',
    () => withField('metadata', `{"a":"${megabyte}"}`),
    400,
    /^metadata\.a: must be at most 512 characters$/,
  ],
  [
    'a megabyte of a name',
    () => withField('tools', `[${tool(`"strict":"${megabyte}"`)}]`),
    400,
    /^tools\[0\]\.function\.strict: must be true or false$/,
  ],
  ['a megabyte of a number', () => withField('seed', '1'.repeat(1024 * 1024)), 400, /^seed: must be an integer$/],
  ['a megabyte of a fraction', () => withField('temperature', `1.${'1'.repeat(1024 * 1024)}`), 200, /^$/],
  [
    'a megabyte of a reason',
    () => withField('reasoning', `{"effort":"${megabyte}"}`),
    400,
    /^reasoning\.effort: must be one of /,
  ],
  [
    'a megabyte of a plugin',
    () => withField('plugins', `[{"id":"${megabyte}"}]`),
    400,
    /^plugins\[0\]\.id: must be one of /,
  ],
  [
    '20,000 keys of metadata',
    () => withField('metadata', numbered(20_000, '"x"')),
    400,
    /^metadata: must have at most 16 pairs$/,
  ],
  ['20,000 biases', () => withField('logit_bias', numbered(20_000, '1')), 200, /^$/],
  ['190,000 biases', () => withField('logit_bias', numbered(190_000, '1')), 400, tooMuch],
  ['200 unknown fields', () => `{${conversation},${numbered(200, '1').slice(1)}`, 200, /^$/],
  ['100,000 unknown fields', () => `{${conversation},${numbered(100_000, '1').slice(1)}`, 400, tooManyOutermost],
  ['a field 300,000 times', () => `{${conversation},${times(300_000, '"seed":1')}}`, 400, tooManyOutermost],
  ['an unknown field of 100,000 members', () => withField('unknown', numbered(100_000, '1')), 200, /^$/],
  ['an unknown field of 300,000 members', () => withField('unknown', numbered(300_000, '1')), 400, tooManyMembers],
  ...['messages', 'tools', 'models', 'modalities', 'plugins', 'stop_server_tools_when', 'stop'].map(
    (name): (typeof chats)[number] => [
      `300,000 wrong items in ${name}`,
      () => (name === 'messages' ? `{"messages":${list(300_000, '[]')}}` : withField(name, list(300_000, '{}'))),
      400,
      new RegExp(`^${name}(\\[0\\]|: must have at most)`),
    ],
  ),
  [
    '300,000 wrong parts',
    () => withMessage(`{"role":"user","content":${list(300_000, '1')}}`),
    400,
    /^messages\[0\]\.content\[0\]: must be an object;/,
  ],
  [
    '190,000 wrong biases',
    () => withField('logit_bias', numbered(190_000, '""')),
    400,
    /^logit_bias\.0: must be a number;/,
  ],
  [
    '4 MB and more',
    () => withMessage(`{"role":"user","content":"${'x'.repeat(5_000_000)}"}`),
    413,
    /^The body must be smaller than 4194304 bytes: shorten it$/,
  ],
]

const others: typeof chats = [
  ['messages', () => `{"messages":${list(300_000, '1')}}`, 400, /^messages\[0\]: must be an object;/],
  ['messages', () => withField('tools', `[{"name":"f","input_schema":${nested(100_000)}}]`), 400, farTooDeep],
  ['messages', () => withField('system', list(300_000, '{}')), 400, /^system\[0\]\.type: is required;/],
  ['messages', () => withField('system', `"${megabyte}"`), 400, tooMuch],
  ['responses', () => `{"input":${list(300_000, '1')}}`, 400, /^input\[0\]: must be an object;/],
  [
    'responses',
    () => `{"input":"x","tools":[{"type":"function","name":"f","parameters":${nested(100_000)}}]}`,
    400,
    farTooDeep,
  ],
  ['responses', () => `{"input":"x","tools":${list(300_000, '{}')}}`, 400, /^tools\[0\]\.type: is required;/],
  ['responses', () => `{"input":"x","instructions":"${megabyte}"}`, 400, tooMuch],
]

function expectAnswer({ status, message, data }: Answer, expected: number, rule: RegExp): void {
  // The error names the rule, not the value that violates it.
  expect({ status, message: message.slice(0, 200) }).toEqual({ status: expected, message: expect.stringMatching(rule) })
  expect(message.length).toBeLessThan(2_000)
  expect(message.split('; ').length).toBeLessThanOrEqual(presetProblemsMax)
  expect(data === undefined).toBe(expected !== 200)
}

describe('a body of chat completions with', () => {
  test.each(chats)('%s is answered', async (_, body, status, rule) => {
    expectAnswer(await post(body()), status, rule)
  })

  test('5 MB of unknown length is refused before it ends', async () => {
    const { socket, answer } = openRawRequest(`${served.baseUrl}/presets/endless/chat/completions`, 'POST', {
      authorization: `Bearer ${management}`,
      'content-type': 'application/json',
      'transfer-encoding': 'chunked',
    })
    for (let sent = 0; sent < 5; sent++) socket.write(chunkOf(megabyte))
    const { status, body } = await answer
    socket.destroy()
    const message = `The body must be smaller than ${presetBodyBytesMax} bytes: shorten it`
    expect({ status, body: JSON.parse(body) }).toEqual({
      status: 413,
      body: { error: { code: 413, message, metadata: { error_type: expect.any(String) } } },
    })
  })
})

describe('a body of', () => {
  test.each(others)('%s is answered', async (dialect, body, status, rule) => {
    expectAnswer(await post(body(), dialect), status, rule)
  })
})

test('all of them at once keep nobody from being answered, make what they should, and take a bounded memory', async () => {
  const before = await countPresets()
  let answered = 0
  const busy = keepBusy(2, async (client) => {
    await (client === 0 ? countPresets() : infer())
    answered += 1
  })
  await busy.turn()
  let answeredAtFirst: number | undefined
  const bodies = [...chats.map((chat) => ['chat/completions', ...chat.slice(1)]), ...others] as typeof others
  const answers = await Promise.all(
    bodies.map(async ([path, body, ...expected]) => {
      const answer = await post(body(), path)
      answeredAtFirst ??= answered
      return { answer, expected }
    }),
  )
  expect(answered).toBeGreaterThan(answeredAtFirst ?? answered)
  await busy.turn()
  await busy.stop()
  for (const { answer, expected } of answers) expectAnswer(answer, ...expected)
  expect((await countPresets()) - before).toBe(bodies.filter(([, , status]) => status === 200).length)
  expect(peakMegabytes() - peakAtStart).toBeLessThan(megabytesMax)
})
