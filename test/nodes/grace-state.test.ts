// What grace reports while the database is there again and usage still waits.
import { afterAll, expect, test } from 'bun:test'
import { asNotReached } from '../../db/remote/server-errors.ts'
import { openGrace } from '../../src/nodes/grace.ts'
import type { Config } from '../../src/settings/config.ts'
import { temporaryFolder } from '../support/latchkey.ts'
import { organizationRows, usageRow } from '../support/rows.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

test('what was used is uncertain until all that waits is applied, also when the database is back', async () => {
  let isThere = false
  let age = 0
  const grace = await openGrace({
    config: {
      listen: { hostname: '127.0.0.1', port: 1 },
      databaseServer: { grace: { folder: folder.path, milliseconds: 1_000 } },
    } as unknown as Pick<Config, 'databaseServer' | 'listen'>,
    send: async () => {
      if (!isThere) throw asNotReached(new Error('refused'))
    },
    follow: { age: () => age, isUpToDate: () => isThere, known: () => ({ installation: 'one', usageId: 0 }) },
    writeCheck: { isFailing: () => false, failingFor: () => 0 },
    log: () => {},
  } as Parameters<typeof openGrace>[0])
  if (grace === undefined) throw new Error('There is no grace')
  expect([grace.isUncertain(), grace.isUsed()]).toEqual([true, true])
  await grace.commitUsage({ usage: [usageRow('one', organizationRows('acme'))], storedResponses: [] })
  age = 1_000
  expect(grace.mayServe()).toBe(false)
  age = 0
  isThere = true
  expect([grace.rows(), grace.isUncertain(), grace.isUsed()]).toEqual([1, true, false])
  await grace.apply()
  expect([grace.rows(), grace.isUncertain()]).toEqual([0, false])
  await grace.close()
})
