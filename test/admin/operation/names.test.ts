// What nobody and nothing may be called: names that are invisible, that mean something in a path, or that look like an id.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { OperationName } from '../../../src/admin/operations.ts'
import { startTestServer, type TestServer } from '../../support/latchkey.ts'

let served: TestServer
beforeAll(async () => {
  served = await startTestServer()
})
afterAll(() => served.stop())

const rows: [what: string, name: string][] = [
  ['nothing', ''],
  ['129 characters', 'x'.repeat(129)],
  ['129 characters outside the basic plane', '𐀀'.repeat(129)],
  ['a space before it', ' name'],
  ['a space after it', 'name '],
  ['a line end within it', 'two\nlines'],
  ['an escape sequence', 'a\u001b[31mb'],
  ['a control character of Latin-1', 'a\u0085b'],
  ['a mark that turns the direction of text', 'a\u202eb'],
  ['a character of no width', 'a\u200bb'],
  ['half of a character', 'a\ud800b'],
  ['a dot', '.'],
  ['two dots', '..'],
  ['check', 'check'],
  ['verify', 'verify'],
  ['a UUID', '0189d3a0-6b5e-7c2a-8f00-000000000000'],
  ['a UUID in capitals', '0189D3A0-6B5E-7C2A-8F00-000000000000'],
  ['the hash of a key', 'a'.repeat(64)],
]

describe('a name cannot be', () => {
  for (const [what, name] of rows)
    test(what, async () => {
      for (const [operation, input] of [
        ['keys.create', { name }],
        ['keys.create', { name: 'owned', owner: name }],
        ['organizations.create', { name }],
        ['workspaces.create', { name }],
        ['issuers.add', { name, issuer_url: 'https://idp.example.com' }],
        ['upstreams.add', { name, base_url: 'http://127.0.0.1:1/v1' }],
      ] as const)
        await expect(served.admin(operation, input)).rejects.toMatchObject({ code: 'invalid' })
    })
})

const secret = `sk-lk-v1-${'0a'.repeat(32)}`

test('a name, slug or description with an API key is refused, and the error does not repeat it', async () => {
  const inputs: [OperationName, Record<string, unknown>][] = [
    ['keys.create', { name: secret }],
    ['keys.create', { name: `my key ${secret.toUpperCase()}` }],
    ['keys.create', { name: ` ${secret}` }],
    ['keys.create', { name: secret.repeat(2) }],
    ['keys.create', { name: 'k', owner: secret }],
    ['organizations.create', { name: secret }],
    ['workspaces.create', { name: secret }],
    ['issuers.add', { name: secret, issuer_url: 'https://idp.example.com' }],
    ['policies.create', { name: secret, issuer: 'i', key: 'k', audience: 'a', subject: 's' }],
    ['upstreams.add', { name: secret, base_url: 'http://127.0.0.1:1/v1' }],
    ['config.apply', { document: { latchkey: 1, presets: [{ slug: secret, config: { model: 'm' } }] } }],
    ['presets.update', { preset: 'p', name: secret }],
    ['presets.update', { preset: 'p', description: `see ${secret}` }],
  ]
  for (const [operation, input] of inputs) {
    const message = await served.admin(operation, input).then(String, (error: Error) => error.message)
    expect([operation, message]).toEqual([operation, expect.stringMatching(/API key/)])
    expect(message.toLowerCase()).not.toContain(secret.slice(0, 20))
  }
})

test('a name may have 128 characters of any script', async () => {
  for (const name of ['x'.repeat(128), '𐀀'.repeat(128), 'für alle — 界', 'checks'])
    expect(await served.admin('keys.create', { name })).toMatchObject({ name })
})

test('no upstream is called as the one of the settings is in the ledger', async () => {
  const base_url = 'http://127.0.0.1:1/v1'
  await expect(served.admin('upstreams.add', { name: 'configured', base_url })).rejects.toMatchObject({
    code: 'conflict',
  })
  const { id } = await served.admin('upstreams.add', { name: 'mine', base_url })
  await expect(served.admin('upstreams.update', { upstream: id, name: 'configured' })).rejects.toMatchObject({
    code: 'conflict',
  })
  await expect(served.admin('upstreams.add', { name: 'mine', base_url })).rejects.toMatchObject({ code: 'conflict' })
  await served.admin('upstreams.remove', { upstream: id })
  expect(await served.admin('upstreams.add', { name: 'mine', base_url })).toMatchObject({ name: 'mine' })
})
