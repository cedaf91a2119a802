// Values that no operation takes: what they would mean is not what was written, or must not be told back.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { OperationName } from '../../src/admin/operations.ts'
import { type Row, startTestServer, type TestServer } from '../support/latchkey.ts'

let served: TestServer
beforeAll(async () => {
  served = await startTestServer()
})
afterAll(() => served.stop())

const url = 'http://127.0.0.1:1/v1'
let made = 0
const upstream = (fields: object) => ({ name: `u${made++}`, base_url: url, ...fields })
const refused = async (name: OperationName, input: object) => {
  const error = await served.admin(name, input as Record<string, unknown>).then(
    () => new Error('It was taken'),
    (error: Error) => error,
  )
  expect(error).toMatchObject({ code: 'invalid' })
  return error.message
}

describe('a credential of an upstream', () => {
  for (const credential of [
    'SECRET with a space',
    'SECRET\nORG=acme',
    'SECRETé',
    '',
    'SECRET'.repeat(1_000),
    ['SECRET'],
  ])
    test(`such as ${JSON.stringify(credential).slice(0, 30)} is refused and not told back`, async () => {
      for (const [name, input] of [
        ['upstreams.add', upstream({ credential })],
        ['upstreams.update', { upstream: 'x', credential }],
      ] as const) {
        const message = await refused(name, input)
        expect(message).toContain('credential must be')
        expect(message).not.toContain('SECRET')
        expect(message).not.toContain('ORG')
      }
    })

  test('may be a text of 4,096 printable characters, or none', async () => {
    for (const credential of ['x'.repeat(4_096), null])
      expect(await served.admin<Row>('upstreams.add', upstream({ credential }))).toMatchObject({
        has_credential: credential !== null,
      })
  })
})
