// Counts the statements that a process sends to its database.
import type { Client } from '@libsql/client'
import type { Database } from '../../db/open.ts'

export type CountedStatements = { count: () => number; reset: () => void; stop: () => void }

/** Counts from now until `stop`. Statements of a batch count individually. */
export function countStatements({ client }: Database): CountedStatements {
  const { execute, batch } = client
  let count = 0
  client.execute = ((...given: Parameters<Client['execute']>) => {
    count += 1
    return execute.apply(client, given)
  }) as Client['execute']
  client.batch = (statements, mode) => {
    count += statements.length
    return batch.call(client, statements, mode)
  }
  return {
    count: () => count,
    reset: () => {
      count = 0
    },
    stop: () => Object.assign(client, { execute, batch }),
  }
}
