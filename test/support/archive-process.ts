// A process that adds old rows to a database and archives them, and that a test can kill. Arguments: database, folder, whether to create
// the database, rows to add. It prints `added` once the rows are committed, then a line for every step, then `done`.
import { appendFileSync } from 'node:fs'
import { openDatabase } from '../../db/file/open.ts'
import { createWriter } from '../../db/write/write.ts'
import { createArchiver } from '../../src/archive/archiving.ts'
import { addRows } from './archives.ts'
import { insertOrganizationRows, organizationRows } from './rows.ts'

const [path = '', folder = '', create, rows] = process.argv.slice(2)
const database = await openDatabase({ path, create: create === 'create', synchronous: 'normal' })
if ('refused' in database) throw new Error(database.message)
const writer = createWriter(database, (error) => {
  throw error
})
const say = (text: string) => appendFileSync(1, `${text}\n`)
const acme = organizationRows('acme')
if (create === 'create') await writer.write(insertOrganizationRows(database, acme))
await addRows(writer, acme, Number(rows), Date.UTC(2026, 0, 1))
say('added')
const steps: typeof writer = {
  ...writer,
  write: async (statements) => {
    say('write')
    await writer.write(statements)
    say('written')
  },
}
const { orm, reader } = database
const archiving = createArchiver({
  database,
  orm,
  reader,
  writer: steps,
  now: Date.now,
  log: () => {},
  rowsPerFileMax: 400,
})
const before = Date.UTC(2026, 5, 1)
await archiving.run(
  { before: { exchanges: before, usage: before }, folder, by: { kind: 'local' } },
  { isAlone: true, onProgress: () => say('progress') },
)
say('done')
process.exit(0)
