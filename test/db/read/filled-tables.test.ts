// Which tables have rows: those that a start reads.
import { expect, test } from 'bun:test'
import { findFilled } from '../../../db/read/filled-tables.ts'
import { apiKeys, issuers, organizations, presets } from '../../../db/schema/schema.ts'
import { createWriter } from '../../../db/write/write.ts'
import { createDatabase, insertOrganizationRows, organizationRows } from '../../support/rows.ts'

test('a table is filled once it has a row, and one that was not asked for does not matter', async () => {
  const own = await createDatabase()
  const { orm } = own.database
  expect(await findFilled(orm, [organizations, presets])).toEqual(new Set())
  const writer = createWriter(own.database, () => {})
  await writer.write(insertOrganizationRows(own.database, organizationRows('acme')))
  expect(await findFilled(orm, [presets, organizations, apiKeys])).toEqual(new Set([organizations, apiKeys]))
  expect(await findFilled(orm, [issuers, presets])).toEqual(new Set([issuers]))
  await writer.close()
  await own.close()
})
