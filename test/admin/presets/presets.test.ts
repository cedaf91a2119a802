// Presets as files, and presets by reference: what the commands' operations refuse, and that nothing is then saved.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startTestServer, type TestServer } from '../../support/latchkey.ts'

let latchkey: TestServer
beforeAll(async () => {
  latchkey = await startTestServer()
})
afterAll(() => latchkey.stop())

const good = { slug: 'new', config: { model: 'm' } }
const bodyOf = (seed: number) => JSON.stringify({ model: 'm', seed, messages: [{ role: 'user', content: 'x' }] })
const apply = (presets: object[]) => latchkey.admin('config.apply', { document: { latchkey: 1, presets } })

describe('presets of a document are refused whole', () => {
  test.each([
    [
      'for a wrong setting',
      { config: { top_p: 2 } },
      'presets "b": The preset "b": top_p: must be a number from 0 to 1',
    ],
    [
      'for two',
      { config: { top_p: 2, n: 1, seed: '1' } },
      /The preset "b": .*top_p: .*; seed: |The preset "b": .*seed: .*; top_p: /,
    ],
    ['for a setting that is not kept', { config: { stream: true } }, /"b": config\.stream is not a setting of presets/],
    ['for a setting that nobody knows', { config: { temprature: 1 } }, /"b": config\.temprature is not a setting/],
    ['for a conversation', { config: { messages: [] } }, /"b": config\.messages is not a setting/],
    ['without settings', { config: undefined }, /presets\[1\]\.config must be an object/],
    ['for settings in a list', { config: [] }, /"b": config must be an object/],
    ['with another member', { config: {}, versions: [] }, /presets\[1\]\.versions must be removed/],
    [
      'for an empty system prompt',
      { config: {}, system_prompt: '' },
      /"b": system_prompt must be non-empty text or null/,
    ],
    [
      'for a system prompt in a list',
      { config: {}, system_prompt: ['a'] },
      /presets\[1\]\.system_prompt must be a string or null/,
    ],
  ])('%s', async (_, preset, message) => {
    await expect(apply([good, { slug: 'b', ...preset }])).rejects.toMatchObject({
      code: 'invalid',
      message: typeof message === 'string' ? message : expect.stringMatching(message),
    })
    await expect(latchkey.admin('presets.show', { preset: 'new' })).rejects.toMatchObject({ code: 'not_found' })
  })

  test('for settings that are too many', async () => {
    const config = { stop: ['x'.repeat(262_145)] }
    await expect(apply([good, { slug: 'b', config }])).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(/^presets "b": The preset "b": Settings and system prompt have \d+ characters/),
    })
    await expect(latchkey.admin('presets.show', { preset: 'new' })).rejects.toMatchObject({ code: 'not_found' })
  })

  test('when the database refuses one of them', async () => {
    const { writer } = latchkey.server.context
    const { change } = writer
    const refused = { toSQL: () => ({ sql: 'insert into write_probe (id, at) values (1, null)', params: [] }) }
    writer.change = (plan) =>
      change((transaction) => {
        const planned = plan(transaction)
        planned.statements.push(refused)
        return planned
      })
    await expect(apply([good, { ...good, slug: 'b' }])).rejects.toThrow('write_probe')
    writer.change = change
    for (const preset of ['new', 'b'])
      await expect(latchkey.admin('presets.show', { preset })).rejects.toMatchObject({ code: 'not_found' })
  })

  test.each(['b c', '', '.', '..', 'a'.repeat(129), 'a/b', 'ä'])('for the slug %j', async (slug) => {
    await expect(apply([good, { ...good, slug }])).rejects.toMatchObject({ code: 'invalid' })
    await expect(latchkey.admin('presets.show', { preset: 'new' })).rejects.toMatchObject({ code: 'not_found' })
  })

  test('for one that is there twice', async () => {
    await expect(apply([good, { ...good }])).rejects.toMatchObject({
      code: 'invalid',
      message: expect.stringMatching(/twice/),
    })
    await expect(latchkey.admin('presets.show', { preset: 'new' })).rejects.toMatchObject({ code: 'not_found' })
  })

  test('for one that is archived', async () => {
    await apply([{ ...good, slug: 'gone' }])
    await latchkey.admin('presets.archive', { preset: 'gone' })
    await expect(apply([good, { ...good, slug: 'gone' }])).rejects.toMatchObject({ code: 'conflict' })
    await expect(latchkey.admin('presets.show', { preset: 'new' })).rejects.toMatchObject({ code: 'not_found' })
  })
})

test('an export has everything but archived presets, in the order of slugs, and keeps a disabled one disabled', async () => {
  const slugs = ['p-0', 'p-1', 'p-2', 'p-3']
  await apply(slugs.toReversed().map((slug) => ({ ...good, slug })))
  await latchkey.admin('presets.archive', { preset: 'p-1' })
  await latchkey.admin('presets.update', { preset: 'p-2', status: 'disabled' })
  await latchkey.admin('presets.save', { preset: 'p-3', dialect: 'chat', body: bodyOf(2) })
  type Exported = { presets: { slug: string }[] }
  const { presets } = await latchkey.admin<Exported>('config.export', { only: ['presets'] })
  expect(presets.filter(({ slug }) => slug.startsWith('p-'))).toMatchObject([
    { slug: 'p-0', config: { model: 'm' } },
    { slug: 'p-2', status: 'disabled' },
    { slug: 'p-3', config: { seed: 2 } },
  ])
  await latchkey.admin('workspaces.create', { name: 'copy' })
  await apply(presets.map((each) => ({ ...each, workspace: 'copy' })))
  expect(await latchkey.admin('presets.show', { preset: 'p-2', workspace: 'copy' })).toMatchObject({
    status: 'disabled',
    status_updated_at: expect.any(String),
  })
})

test.each(['presets.versions', 'presets.update', 'presets.archive', 'presets.restore', 'presets.show'] as const)(
  '%s is for a preset with all its versions',
  async (name) => {
    await apply([{ ...good, slug: 'whole' }])
    const input = { preset: 'whole@1', ...(name === 'presets.update' ? { status: 'disabled' } : {}) }
    await expect(latchkey.admin(name, input)).rejects.toMatchObject({ code: 'invalid' })
    expect(await latchkey.admin('presets.show', { preset: 'whole' })).toMatchObject({ status: 'active' })
  },
)

test('a body of which nothing would be kept makes no version by command', async () => {
  const body = '{"temprature":1,"messages":[{"role":"user","content":"x"}]}'
  await expect(latchkey.admin('presets.save', { preset: 'empty', dialect: 'chat', body })).rejects.toMatchObject({
    code: 'invalid',
    message: 'The body has no model, settings or system prompt: add what the preset should store',
  })
})

test('a request that names another preset or version is not applied to this one', async () => {
  await latchkey.admin('presets.save', { preset: 'asked', dialect: 'chat', body: bodyOf(1) })
  const apply = (model: string) =>
    latchkey.admin('presets.apply', {
      preset: 'asked@1',
      target: 'chat',
      body: JSON.stringify({ model, messages: [] }),
    })
  for (const model of ['@preset/asked', 'm@preset/asked@1', 'm']) expect(await apply(model)).toHaveProperty('body')
  for (const model of ['@preset/other', '@preset/asked@2'])
    await expect(apply(model)).rejects.toMatchObject({ code: 'invalid' })
})

test.each(['a@', 'a@0', 'a@x', 'a@1@2', '@1', 'a b'])('%j names no preset', async (preset) => {
  await expect(latchkey.admin('presets.version', { preset })).rejects.toMatchObject({ code: 'invalid' })
})
