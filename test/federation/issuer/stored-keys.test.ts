// Which of two key sets a node uses: the one that it fetched, or the one that another node has stored.
import { expect, test } from 'bun:test'
import { sourceOf } from '../../../src/federation/issuer/issuer.ts'
import { adoptNewer, restoreKeys } from '../../../src/federation/issuer/stored-keys.ts'
import { issuerRow } from '../../support/issuer-server.ts'
import { createKeyPair } from '../../support/subject-token.ts'

const issuer = issuerRow()
const noon = 1_800_000_000_000
const clock = { wall: noon, monotonic: 1_000 }
const clocks = { now: () => clock.wall, monotonic: () => clock.monotonic }

async function storedSet(kid: string, fetchedAt: number) {
  const { publicJwk } = await createKeyPair('ES256', kid)
  const jwks = JSON.stringify({ keys: [publicJwk] })
  return { issuerId: issuer.id, source: sourceOf(issuer), jwks, fetchedAt, freshUntil: fetchedAt + 600_000 }
}

test('a set that was fetched before the known one is not taken over, though the clock has been set back since', async () => {
  const known = restoreKeys({ ...issuer, lastKeySet: await storedSet('known', noon) }, clocks)
  const kids = () => known?.keys.map(({ kid }) => kid)
  const adopt = async (kid: string, fetchedAt: number) => {
    const lastKeySet = await storedSet(kid, fetchedAt)
    if (known !== undefined) await adoptNewer(issuer, known, { ...clocks, read: async () => lastKeySet })
  }
  clock.wall = noon - 60_000
  clock.monotonic += 5_000
  await adopt('older', noon - 1)
  expect(kids()).toEqual(['known'])
  await adopt('newer', noon + 1)
  expect(kids()).toEqual(['newer'])
})
