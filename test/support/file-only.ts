// Tests of what only a database file has. Where tests use a server database, they are skipped, each for one of these reasons.
import { describe, test } from 'bun:test'
import { isServerKind } from './server-kind.ts'

/** What a server database lacks, as src/manual/cluster.md says. */
type Reason =
  /** Commands talk to a server database directly. */
  | 'local socket'
  /** Any number of processes use a server database. */
  | 'owner of the file'
  /** Snapshots of the volume of the server are its backups. */
  | 'backup by copy'
  /** The disk, the file's mode and its log are the database server's affair. */
  | 'the file on disk'
  /** A setting of the connection: triggers also run for rows that `insert or replace` deletes. */
  | 'recursive triggers'

/** `test` and `describe` on a database file, and skipped on a server database. */
export function onFile(_reason: Reason) {
  return { test: test.skipIf(isServerKind), describe: describe.skipIf(isServerKind) }
}
