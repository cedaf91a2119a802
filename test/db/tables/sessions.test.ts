// When sessions of the admin page were last used: several nodes write it, each what it has seen.
import { expect, test } from 'bun:test'
import { insertSession, listSessions, putSessionUses } from '../../../db/tables/sessions.ts'
import { createWriter } from '../../../db/write/write.ts'
import { createDatabase, insertOrganizationRows, organizationRows } from '../../support/rows.ts'

test('the last use of a session never goes back, and others stay as they were', async () => {
  const { database, close } = await createDatabase()
  const writer = createWriter(database, () => {})
  const acme = organizationRows('acme')
  await writer.write(insertOrganizationRows(database, acme))
  const { id: keyId, organizationId } = acme.key
  const row = (id: string) => ({
    ...{ id, organizationId, keyId, keyUpdatedAt: 1, tokenSha256: id.repeat(64), role: null },
    ...{ policyId: null, policyUpdatedAt: null, issuerId: null, issuerUpdatedAt: null, issuerUrl: null },
    ...{ subject: null, person: null, providerSession: null, validUntil: null },
    ...{ openedBy: null, clientAddress: null, createdAt: 1, usedAt: 5, endedAt: null },
  })
  await writer.write([insertSession(database.orm, row('a')), insertSession(database.orm, row('b'))])
  const usesAfter = async (at: number) => {
    await writer.write([putSessionUses(new Map([['a', at]]))])
    return (await listSessions(database.orm)).map(({ id, usedAt }) => [id, usedAt]).toSorted()
  }
  expect(await usesAfter(9)).toEqual([
    ['a', 9],
    ['b', 5],
  ])
  expect(await usesAfter(7)).toEqual([
    ['a', 9],
    ['b', 5],
  ])
  await writer.close()
  await close()
})
