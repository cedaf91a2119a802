// Operations that only read: they answer while changes wait for each other, and a long answer lets the event loop turn.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { sliceMilliseconds } from '../../../db/read/pace.ts'
import { createOperationRunner, operation } from '../../../src/admin/operation/operation.ts'
import type { OperationName } from '../../../src/admin/operations.ts'
import { askServer } from '../../../src/admin/transport/client.ts'
import { jsonInSlices } from '../../../src/http/reply.ts'
import { socketPathFor } from '../../../src/settings/config.ts'
import { type } from '../../../src/values/shape.ts'
import { turnsDuring } from '../../support/event-loop.ts'
import { onFile } from '../../support/file-only.ts'
import { type Federation, startFederation } from '../../support/latchkey.ts'

let latchkey: Federation
let requestId: string
beforeAll(async () => {
  latchkey = await startFederation()
  const { admin } = latchkey
  requestId = (await latchkey.exchange(await latchkey.mint())).headers.get('x-request-id') ?? ''
  await admin('upstreams.add', { name: 'gpu', base_url: 'http://127.0.0.1:9/v1' })
  await admin('presets.save', { preset: 'one', dialect: 'chat', body: bodyOf('x') })
})
afterAll(() => latchkey.stop())

const bodyOf = (text: string) => JSON.stringify({ messages: [{ role: 'system', content: text }] })

const reads: [name: OperationName, input: () => Record<string, unknown>][] = [
  ['organizations.list', () => ({})],
  ['workspaces.list', () => ({})],
  ['keys.list', () => ({})],
  ['keys.show', () => ({ key: 'target' })],
  ['issuers.list', () => ({})],
  ['issuers.show', () => ({ issuer: 'idp' })],
  ['policies.list', () => ({})],
  ['policies.show', () => ({ policy: 'policy' })],
  ['upstreams.list', () => ({})],
  ['upstreams.show', () => ({ upstream: 'gpu' })],
  ['prices.list', () => ({})],
  ['signing_keys.list', () => ({})],
  ['presets.list', () => ({})],
  ['presets.show', () => ({ preset: 'one' })],
  ['presets.versions', () => ({ preset: 'one' })],
  ['presets.version', () => ({ preset: 'one@1' })],
  ['presets.diff', () => ({ from: 'one@1', to: 'one@1' })],
  ['config.export', () => ({ only: ['presets'] })],
  ['audit.list', () => ({})],
  ['audit.changes', () => ({})],
  ['audit.show', () => ({ request_id: requestId })],
  ['usage.sum', () => ({})],
  ['usage.requests', () => ({})],
  ['usage.verify', () => ({})],
]
const answerMillisecondsMax = 10_000
test.each(reads)('%s answers while a change has its turn', async (name, input) => {
  const change = Promise.withResolvers<void>()
  const changing = latchkey.server.context.runExclusive(() => change.promise)
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, answerMillisecondsMax)
  const answer = await Promise.race([latchkey.admin<unknown>(name, input()), late.promise])
  clearTimeout(timer)
  change.resolve()
  await changing
  expect(answer).toBeDefined()
})

const rows = Array.from({ length: 20_000 }, (_, index) => ({ id: index, text: 'x'.repeat(500), absent: undefined }))
const plain = rows.map(({ id, text }) => ({ id, text }))

/** Rows that each take as long as a slice, however fast the machine is. */
const slowRows = Array.from({ length: 10 }, (_, id) => ({
  toJSON: () => {
    const end = performance.now() + sliceMilliseconds
    while (performance.now() < end);
    return { id, text: 'x'.repeat(100_000) }
  },
}))

test('the answer of an operation is made plain', async () => {
  const long = operation(type({}), async () => ({ ok: true, data: rows, more: undefined }))
  const answer = await createOperationRunner({ long }, latchkey.server.context)('long', {})
  expect(answer).toEqual({ ok: true, data: plain })
  expect(Object.keys(answer as object)).toEqual(['ok', 'data'])
})

test.each(['data', 'changes'])('the answer of an operation is made plain in slices, whose list is %s', async (list) => {
  const slow = operation(type({}), async () => ({ [list]: slowRows }))
  const run = createOperationRunner({ slow }, latchkey.server.context)
  expect(await turnsDuring(() => run('slow', {}))).toBeGreaterThan(slowRows.length / 2)
})

test.each<[name: string, body: unknown]>([
  ['a long list', { data: rows, more_before_id: null }],
  ['a long list alone', { data: rows }],
  ['an empty list', { data: [] }],
  ['a list of one', { data: [{ a: 1 }], total_count: 1, absent: undefined }],
  ['no list', { id: 1 }],
  ['a value', 'text'],
])('%s is written as JSON', async (_, body) => {
  const response = jsonInSlices(201, body, { 'cache-control': 'no-store' })
  expect(await response.json()).toEqual(JSON.parse(JSON.stringify(body)))
  expect(response.status).toBe(201)
  expect(response.headers.get('content-type')).toBe('application/json')
  expect(response.headers.get('cache-control')).toBe('no-store')
})

test('whatever is written is what JSON.stringify would write', async () => {
  const value = fc.oneof(fc.jsonValue(), fc.constantFrom(undefined, new Date(0), Number.NaN))
  const body = fc.oneof(
    fc.jsonValue(),
    fc.dictionary(fc.string(), fc.oneof(value, fc.array(value), fc.dictionary(fc.string(), value))),
  )
  await fc.assert(
    fc.asyncProperty(body, async (each) => {
      expect(await jsonInSlices(200, each).text()).toBe(JSON.stringify(each))
    }),
  )
})

test.each<[name: string, body: object]>([
  ['a long list', { data: slowRows }],
  ['a list beside others', { ok: true, changes: slowRows }],
  ['a list within data', { data: { ok: true, changes: slowRows } }],
])('%s is written in slices', async (_, body) => {
  const turned = await turnsDuring(() => jsonInSlices(200, body).text())
  expect(turned).toBeGreaterThan(slowRows.length / 2)
})

test('a page of long versions lets the event loop turn several times', async () => {
  for (let version = 0; version < 100; version++)
    await latchkey.admin('presets.save', { preset: 'long', dialect: 'chat', body: bodyOf('x'.repeat(250_000)) })
  const { admin } = latchkey
  const turned = await turnsDuring(() => admin('presets.versions', { preset: 'long', limit: 100 }))
  expect(turned).toBeGreaterThan(2)
})

onFile('local socket').test('a page of long versions arrives over the socket', async () => {
  const socket = socketPathFor(latchkey.config)
  const answered = await askServer(socket, 'presets.versions', { preset: 'long', limit: 100 })
  expect(answered?.result).toMatchObject({ total_count: 100, data: { length: 100 } })
})
