// Counts the statements that a process sends to its database.
import type { Client } from '@libsql/client'
import type { Database } from '../../db/open.ts'

export type CountedStatements = { count: () => number; reset: () => void; stop: () => void }

/** Counts from now until `stop`. Statements of a commit count individually. */
export function countStatements(database: Database): CountedStatements {
  const { client, commit } = database
  const { execute } = client
  let count = 0
  client.execute = ((...given: Parameters<Client['execute']>) => {
    count += 1
    return execute.apply(client, given)
  }) as Client['execute']
  database.commit = (statements) => {
    count += statements.length
    return commit(statements)
  }
  return {
    count: () => count,
    reset: () => {
      count = 0
    },
    stop: () => {
      client.execute = execute
      database.commit = commit
    },
  }
}
