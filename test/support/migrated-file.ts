// A database file with the schema and the id of an installation, which all copies share, but no other rows. A server that
// starts on a copy of it runs no migrations.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../../db/file/open.ts'

let made: Promise<Uint8Array> | undefined

/** Writes a new file, as `init` leaves it before its first row. This process runs the migrations once. */
export async function writeMigratedFile(path: string): Promise<void> {
  made ??= migrateNew()
  writeFileSync(path, await made, { mode: 0o600, flag: 'wx' })
}

async function migrateNew(): Promise<Uint8Array> {
  const folder = mkdtempSync(join(tmpdir(), 'lk-'))
  const path = join(folder, 'latchkey.db')
  const database = await openDatabase({ path, create: true, synchronous: 'normal' })
  if ('refused' in database) throw new Error(database.message)
  await database.close()
  const bytes = readFileSync(path)
  rmSync(folder, { recursive: true })
  return bytes
}
