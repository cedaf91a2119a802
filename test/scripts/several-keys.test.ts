// Several keys by one command: all of them or none, each with its record, and one alone printed as it always was.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { createCommandRunner } from '../support/command-runner.ts'
import type { Row } from '../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'

let latchkey: PastedIssuer
let commands: ReturnType<typeof createCommandRunner>
beforeEach(async () => {
  latchkey = await startWithPastedIssuer()
  commands = createCommandRunner(latchkey.folder)
  for (const name of ['one', 'two']) await latchkey.admin('keys.create', { name })
})
afterEach(() => latchkey.stop())

const statesOf = async () => {
  const { data } = await latchkey.admin<{ data: (Row & { name: string; disabled: boolean })[] }>('keys.list')
  return Object.fromEntries(data.map(({ name, disabled }) => [name, disabled ? 'disabled' : 'enabled']))
}

test('disable and enable take several, named in any way, each once', async () => {
  const { id } = await latchkey.admin('keys.show', { key: 'two' })
  const disabled = await commands.json('keys', 'disable', 'target', 'two', id)
  expect(disabled).toMatchObject({
    data: [
      { name: 'target', disabled: true, policies_affected: ['policy'] },
      { name: 'two', disabled: true },
    ],
  })
  expect(await statesOf()).toMatchObject({ target: 'disabled', one: 'enabled', two: 'disabled' })
  expect(await commands.json('keys', 'enable', 'target', 'two')).toMatchObject({ data: [{ disabled: false }, {}] })
  expect(await statesOf()).toMatchObject({ target: 'enabled', one: 'enabled', two: 'enabled' })
})

test('delete takes several, and the text names what was deleted and the policies that stop', async () => {
  const { code, stdout } = await commands.run('keys', 'delete', 'one', 'target')
  expect(code).toBe(0)
  expect(stdout).toMatch(/^Deleted one\nDeleted target\n1 policy has become inactive: policy\n$/)
  expect(Object.keys(await statesOf()).toSorted()).toEqual(['first management key', 'two'])
})

for (const verb of ['disable', 'enable', 'delete']) {
  test(`${verb} of several changes none when one of them is not there`, async () => {
    await latchkey.admin('keys.disable', { key: 'two' })
    const before = await statesOf()
    const { code, error } = await commands.failure('keys', verb, 'one', 'none', 'two')
    expect({ code, error }).toMatchObject({ code: 1, error: { code: 'not_found' } })
    expect(error.message).toContain('"none"')
    expect(await statesOf()).toEqual(before)
  })
}

test('each has its record, in one commit', async () => {
  await commands.json('keys', 'disable', 'one', 'two')
  const { data } = await latchkey.admin<{ data: Row[] }>('audit.changes', { limit: 2 })
  expect(data.map(({ operation, after }) => [operation, (after as { name: string }).name]).toSorted()).toEqual([
    ['keys.disable', 'one'],
    ['keys.disable', 'two'],
  ])
  expect(new Set(data.map(({ at }) => at)).size).toBe(1)
})

test('one key alone is printed as it always was', async () => {
  expect(await commands.json('keys', 'disable', 'one')).toMatchObject({ name: 'one', disabled: true })
  expect(await commands.json('keys', 'delete', 'one')).toMatchObject({ id: expect.any(String), deleted: true })
})

describe('the operation refuses', () => {
  for (const [name, input] of [
    ['neither key nor keys', {}],
    ['both key and keys', { key: 'one', keys: ['two'] }],
    ['no key at all', { keys: [] }],
    ['more than a hundred', { keys: Array.from({ length: 101 }, (_, index) => `key-${index}`) }],
  ] as const) {
    test(name, async () => {
      await expect(latchkey.admin('keys.disable', input)).rejects.toMatchObject({ code: 'invalid' })
    })
  }
})
