// `latchkey presets`: making, finding, comparing and rolling back by command.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createCommandRunner } from '../support/command-runner.ts'
import { type ServingProcess, startServing, temporaryFolder } from '../support/latchkey.ts'

const folder = temporaryFolder()
const { run, json, failure } = createCommandRunner(folder.path)
let serving: ServingProcess
const body = { model: 'big', temperature: 0.2, messages: [{ role: 'system', content: 'Be brief\nand kind' }] }
const write = (name: string, value: unknown) => writeFileSync(join(folder.path, name), JSON.stringify(value))
beforeAll(async () => {
  await json('init')
  const env = { LATCHKEY_DATABASE_URL: `file:${folder.path}/latchkey.db`, LATCHKEY_LISTEN: '127.0.0.1:0' }
  serving = await startServing(['serve'], { cwd: folder.path, env })
  write('body.json', body)
  write('other.json', { ...body, temperature: 0.7, top_p: 0.5 })
  await json('presets', 'save', 'support', 'body.json')
  await json('presets', 'save', 'support', 'other.json')
})
afterAll(async () => {
  await serving.stop()
  folder.remove()
})

test('the body of a request becomes the next version', async () => {
  write('messages.json', { model: 'm', max_tokens: 5, system: 'Hi', messages: [{ role: 'user', content: 'x' }] })
  const made = await json('presets', 'save', 'from-messages', 'messages.json', '--dialect', 'messages')
  expect(made).toMatchObject({
    slug: 'from-messages',
    designated_version: { version: 1, config: { model: 'm', max_tokens: 5 }, system_prompt: 'Hi' },
  })
  write('wrong.json', { ...body, temperature: 9, top_p: 9 })
  expect(await failure('presets', 'save', 'support', 'wrong.json')).toEqual({
    code: 2,
    error: {
      code: 'invalid',
      message: 'temperature: must be a number from 0 to 2; top_p: must be a number from 0 to 1',
    },
  })
  expect(await failure('presets', 'save', 'no slug', 'body.json')).toMatchObject({ code: 2 })
})

describe('show', () => {
  test('prints a preset for people', async () => {
    const { stdout } = await run('presets', 'show', 'support@1')
    expect(stdout).toMatch(/^version +1\n[\s\S]*\nSystem prompt:\nBe brief\nand kind\n\nSettings:\n\{\n/)
    expect(stdout).toContain('"temperature": 0.2')
  })

  test('prints what a preset makes of a request, in the terms of its endpoint', async () => {
    write('asked.json', { model: '@preset/support', messages: [{ role: 'user', content: 'x' }], top_p: 0.9 })
    expect((await json('presets', 'show', 'support', '--apply', 'asked.json')).body).toEqual({
      model: 'big',
      temperature: 0.7,
      top_p: 0.9,
      messages: [
        { role: 'system', content: 'Be brief\nand kind' },
        { role: 'user', content: 'x' },
      ],
    })
    const args = ['presets', 'show', 'support@1', '--apply', 'asked.json', '--target', 'messages']
    expect(await json(...args)).toMatchObject({
      preset_version: 'support@1',
      target: 'messages',
      body: { system: 'Be brief\nand kind', temperature: 0.2, messages: [{ role: 'user', content: 'x' }] },
    })
    const { stdout } = await run(...args)
    expect(JSON.parse(stdout)).toHaveProperty('system')
  })

  test.each([
    ['absent', 1, 'There is no preset "absent"; see: latchkey presets list'],
    ['support@9', 1, 'There is no version 9 of the preset "support"; the latest is 2'],
  ])('of %s says that it is not there', async (name, code, message) => {
    expect(await failure('presets', 'show', name)).toMatchObject({ code, error: { message } })
  })
})

test('diff shows what two versions differ in', async () => {
  expect(await json('presets', 'diff', 'support@1', 'support@2')).toMatchObject({
    changes: [
      { field: 'temperature', from: 0.2, to: 0.7 },
      { field: 'top_p', to: 0.5 },
    ],
  })
  const { stdout } = await run('presets', 'diff', 'support@1', 'support@2')
  expect(stdout.split('\n')).toEqual(
    expect.arrayContaining(['--- support@1', '+++ support@2', '-  "temperature": 0.2', '+  "temperature": 0.7,']),
  )
  expect((await run('presets', 'diff', 'support@1', 'support@1')).stdout).toMatch(/are identical/)
})

test('an older version is designated, and the list of versions says which is in use', async () => {
  expect((await run('presets', 'designate', 'support@1')).stdout).toBe('support is active, with version 1 in use\n')
  expect((await run('presets', 'versions', 'support')).stdout).toMatch(/\n1 +in use [^\n]*\n2 +2/)
  expect(await failure('presets', 'designate', 'support')).toMatchObject({ code: 2 })
  expect(await failure('presets', 'designate', 'support@9')).toMatchObject({ code: 2 })
  expect((await json('presets', 'designate', 'support@2')).designated_version).toMatchObject({ version: 2 })
})

test('an archived preset is listed when asked for, and restored', async () => {
  await json('presets', 'save', 'old', 'body.json')
  expect(await json('presets', 'archive', 'old')).toMatchObject({ status: 'archived' })
  expect((await run('presets', 'list')).stdout).not.toContain('old')
  expect((await run('presets', 'list', '--archived')).stdout).toMatch(/^old .*archived/m)
  expect(await failure('presets', 'save', 'old', 'body.json')).toMatchObject({ code: 1 })
  expect(await json('presets', 'restore', 'old')).toMatchObject({ status: 'active' })
  expect(await json('presets', 'disable', 'old')).toMatchObject({ status: 'disabled' })
  expect(await failure('presets', 'archive', 'old')).toMatchObject({ code: 1 })
  expect(await json('presets', 'enable', 'old')).toMatchObject({ status: 'active' })
  expect(await json('presets', 'update', 'old', '--name', 'Old', '--description', 'd')).toMatchObject({ name: 'Old' })
  expect(await json('presets', 'update', 'old', '--no-description')).toMatchObject({ description: null })
})
