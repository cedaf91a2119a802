// Reads a database file without changing it, to check a configuration. Use it only in a process that holds no database:
// closing any descriptor of the file releases the lock of the whole process.
import { existsSync } from 'node:fs'
import { latestSchema, newerSchema } from '../schema/migrate.ts'
import { connect, letGo } from './connection.ts'
import { type OpenRefusal, refusalOf } from './file-errors.ts'
import { isForeign } from './open.ts'

/**
 * `schema` is the version of the last migration. The signing keys are encrypted; the list is empty until `latchkey
 * init` has finished.
 */
export type DatabaseFileFacts = { schema: number; signingKeys: { id: string; privateKeyEncrypted: string }[] }

export async function inspectDatabase(path: string): Promise<DatabaseFileFacts | OpenRefusal> {
  if (!existsSync(path)) return { refused: 'missing', message: `There is no database at ${JSON.stringify(path)}` }
  let client: ReturnType<typeof connect> | undefined
  try {
    client = connect(path)
    await client.execute('pragma locking_mode = exclusive')
    await client.execute('pragma query_only = on')
    if (await isForeign(client))
      return { refused: 'unreadable', message: `The file ${JSON.stringify(path)} is another program's database` }
    const { rows: versions } = await client.execute('select max(version) from schema_migrations')
    const schema = Number(versions[0]?.[0] ?? 0)
    if (schema > latestSchema) return { refused: 'newer_schema', message: newerSchema(schema) }
    const { rows } = await client.execute('select id, private_key_encrypted from signing_keys')
    return { schema, signingKeys: rows.map((row) => ({ id: String(row[0]), privateKeyEncrypted: String(row[1]) })) }
  } catch (error) {
    return refusalOf(error, path)
  } finally {
    client?.close()
    letGo()
  }
}
