// Counts the statements that a process sends to its database.
import type { Client } from '@libsql/client'
import type { Database } from '../../db/file/open.ts'

export type CountedStatements = { count: () => number; reset: () => void; stop: () => void }

/** What a node on a server database sends on its own, every second. */
const ofReport = /(insert into|delete from) (nodes|batches)\b|\bas revision,/

/** Counts from now until `stop`. Statements of a commit count individually. */
export function countStatements(database: Database): CountedStatements {
  const { client, commit, shared } = database
  const { execute } = client
  const commitChange = shared?.commitChange
  let count = 0
  client.execute = ((...given: Parameters<Client['execute']>) => {
    const [statement] = given
    if (!ofReport.test(JSON.stringify(statement))) count += 1
    return execute.apply(client, given)
  }) as Client['execute']
  database.commit = (statements) => {
    count += statements.filter(({ sql }) => !ofReport.test(sql)).length
    return commit(statements)
  }
  if (shared !== undefined && commitChange !== undefined)
    shared.commitChange = (statements, basis) => {
      count += statements.length
      return commitChange(statements, basis)
    }
  return {
    count: () => count,
    reset: () => {
      count = 0
    },
    stop: () => {
      client.execute = execute
      database.commit = commit
      if (shared !== undefined && commitChange !== undefined) shared.commitChange = commitChange
    },
  }
}
