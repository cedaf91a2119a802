import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Federation, startFederation } from '../support/latchkey.ts'

let federation: Federation
beforeAll(async () => {
  federation = await startFederation()
})
afterAll(() => federation.stop())

test('a good token is exchanged', async () => {
  const r = await federation.exchange(await federation.mint())
  expect(await r.json()).toMatchObject({ token_type: 'Bearer' })
})
