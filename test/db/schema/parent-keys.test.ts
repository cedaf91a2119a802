// Rows that recorded exchanges refer to: a change of one must not read all of them, which are too many.
import { expect, test } from 'bun:test'
import { updateIssuer } from '../../../db/tables/issuers.ts'
import { updatePolicy } from '../../../db/tables/policies.ts'
import { createDatabase, organizationRows } from '../../support/rows.ts'

test('a change of a whole policy or issuer does not set what exchanges refer to', async () => {
  const own = await createDatabase()
  const { orm } = own.database
  const { policy, issuer } = organizationRows('acme')
  const changes = [updatePolicy(orm, policy.id, policy), updateIssuer(orm, issuer.id, issuer)]
  for (const change of changes) {
    const { sql } = change.toSQL()
    expect(sql).toContain('"name" = ?')
    expect(sql.slice(0, sql.indexOf(' where '))).not.toMatch(/"(id|organization_id)" = /)
  }
  await own.close()
})
