// Tests of what only a database file has. Where tests use a server database, they are skipped, each for one of these reasons.
import { afterAll, afterEach, beforeAll, beforeEach, describe, test } from 'bun:test'
import { isServerKind } from './server-kind.ts'

/** What a server database lacks, as src/manual/cluster.md says. */
type Reason =
  /** Commands talk to a server database directly: what they do happens in no server. */
  | 'local socket'
  /** Any number of processes use a server database. */
  | 'holder of the file'
  /** Snapshots of the volume of the server are its backups. */
  | 'backup by copy'
  /** The disk, the file's mode and its log are the database server's affair. */
  | 'the file on disk'
  /** A node of a server database counts what a refresh brings from the ledger, and nothing else. */
  | 'counts of this process'
  /** A setting of the connection: triggers also run for rows that `insert or replace` deletes. */
  | 'recursive triggers'
  /** A database server runs the same statements as it likes. */
  | 'steps of a statement'
  /** The database server of a test is on the loopback device of this machine, which another network does not reach. */
  | 'a network without the database server'

/** A hook of tests that do not run prepares nothing. */
const noHook = () => {}

/** `test`, `describe` and hooks on a database file. On a server database, they are skipped and do nothing. */
export function onFile(_reason: Reason) {
  return {
    test: test.skipIf(isServerKind),
    describe: describe.skipIf(isServerKind),
    beforeAll: isServerKind ? noHook : beforeAll,
    beforeEach: isServerKind ? noHook : beforeEach,
    afterEach: isServerKind ? noHook : afterEach,
    afterAll: isServerKind ? noHook : afterAll,
  }
}
