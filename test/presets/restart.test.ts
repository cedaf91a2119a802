// Presets are on disk when a change returns: a restarted server knows them, their versions and who may use them.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createEchoUpstream } from '../../scripts/dev/echo-upstream.ts'
import { type Installation, install } from '../support/installation.ts'
import { type Row, upstreamApiKey } from '../support/latchkey.ts'

const sent: Row[] = []
let installation: Installation
beforeAll(async () => {
  const echo = createEchoUpstream(upstreamApiKey)
  installation = await install(async (request, peer) => {
    sent.push((await request.clone().json()) as Row)
    return echo(request, peer)
  })
})
afterAll(() => installation.remove())

test.each(['SIGTERM', 'SIGKILL'] as const)('after %s, presets and bounds are as they were', async (signal) => {
  const before = await installation.serve()
  let { baseUrl } = before
  const make = async (fields: object) =>
    (await before.ask<Row & { key: string }>('keys.create', { name: `${crypto.randomUUID()} key`, ...fields })).key
  const management = await make({ kind: 'management' })
  const [used, other, gone] = ['used', 'other', 'gone'].map((name) => `${name}-${signal}`)
  const narrow = await make({ allowed_presets: [used] })
  const call = async (method: string, path: string, body?: object, key = management) => {
    const response = await fetch(baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    })
    // biome-ignore lint/suspicious/noExplicitAny: whatever it is, the assertions say what it must be
    return { status: response.status, ...((await response.json()) as any) }
  }
  const messages = [{ role: 'user', content: 'hello' }]
  const system = { role: 'system', content: 'Be brief' }
  const save = (slug: string | undefined, model: string) =>
    call('POST', `/presets/${slug}/chat/completions`, { model, messages: [system] })
  for (const [slug, model] of [
    [used, 'one'],
    [used, 'two'],
    [other, 'one'],
    [gone, 'one'],
  ] as const)
    await save(slug, model)
  await call('PATCH', `/presets/${used}`, { designated_version: 1, description: 'Rolled back' })
  await call('DELETE', `/presets/${gone}`)
  const state = async () => [
    await call('GET', '/presets'),
    await call('GET', `/presets/${used}`),
    await call('GET', `/presets/${used}/versions`),
    await call('GET', `/presets/${gone}`),
  ]
  const asBefore = await state()
  await before.serving.stop(signal)

  const after = await installation.serve()
  baseUrl = after.baseUrl
  expect(await state()).toEqual(asBefore)
  const ask = (preset: string | undefined, key?: string) => call('POST', '/chat/completions', { preset, messages }, key)
  expect(await ask(used, narrow)).toMatchObject({ status: 200, model: 'one' })
  expect(sent.at(-1)).toMatchObject({ model: 'one', messages: [system, ...messages] })
  expect(await ask(`${used}@2`, narrow)).toMatchObject({ status: 200, model: 'two' })
  expect((await ask(other, narrow)).status).toBe(403)
  expect(await save(used, 'three')).toMatchObject({ status: 200, data: { designated_version: { version: 3 } } })
  expect(await save(gone, 'two')).toMatchObject({ status: 409 })
  expect(await ask(used, narrow)).toMatchObject({ status: 200, model: 'three' })
  await after.serving.stop()
})
