// A process that adds exchanges to a database and covers them, until it is killed: `bun audit-node.ts URL NAME`. It prints a line with each
// checkpoint. With the name `verify`, it covers what is left, and prints what the verification of the database says.
import { createWriter } from '../../db/write/write.ts'
import { createAuditLog } from '../../src/audit-log/audit-log.ts'
import { readEpoch } from '../../src/audit-log/epochs.ts'
import { verifyDatabase } from '../../src/audit-log/verify-database.ts'
import { openConfigured } from '../../src/nodes/load.ts'
import { loadConfig } from '../../src/settings/config.ts'
import { auditRow } from './rows.ts'

const [url = '', name = ''] = process.argv.slice(2)
const database = await openConfigured(
  loadConfig({ flags: { LATCHKEY_DATABASE_URL: url, LATCHKEY_MASTER_KEY: 'a'.repeat(64) }, environment: {} }),
  true,
)
if ('refused' in database) throw new Error(database.message)
const writer = createWriter(database, () => {})
const log = createAuditLog({
  ...{
    database,
    writer,
    auditLog: { mode: 'full', folder: undefined },
    masterKey: { kind: 'value', hex: 'a'.repeat(64) },
  },
  ...{ now: Date.now, log: () => {} },
})

if (name === 'verify') {
  await log.checkpoint()
  const epoch = await readEpoch(database.orm)
  console.log(JSON.stringify(await verifyDatabase(database.orm, { epoch: epoch?.name ?? '', mode: 'full' })))
  await writer.close()
  await database.close()
  process.exit(0)
}

/** A checkpoint takes rows that others add too, so that nodes meet at the same leaves. */
for (let round = 0; ; round += 1) {
  const rows = Array.from({ length: 20 }, (_, index) => writer.appendAudit(auditRow(`${name} ${round} ${index}`)))
  const [signed] = await Promise.all([log.checkpoint(), ...rows])
  console.log(signed.size)
}
