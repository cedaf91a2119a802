// Lets one run at a time archive the rows of a server database. Each commit of a run holds the lease for a minute more
// and fails once another run has it, so a node that slept through the end of its lease changes nothing.
import { databaseTime } from '../schema/node-schema.ts'
import type { Statement } from '../write/rows.ts'

/** Longer than a node is without the database and goes on. */
const leaseMilliseconds = 60_000

/** Takes the lease if it is free or has ended. Commit it with `holdArchiveLease`. */
export function takeArchiveLease(holder: string): Statement {
  const take = `insert into archive_lease (id, holder, until) values (1, ?, ${databaseTime} + ${leaseMilliseconds})
    on conflict (id) do update set holder = excluded.holder, until = excluded.until where until <= ${databaseTime}`
  return statement(take, [holder])
}

/** Fails the commit with an error that is `isLeaseLost` unless this holder has the lease, which it then has for a minute. */
export function holdArchiveLease(holder: string): Statement[] {
  return [
    statement(`update archive_lease set until = ${databaseTime} + ${leaseMilliseconds} where holder = ?`, [holder]),
    // Text that is not JSON is an error.
    statement(`select case when exists (select 1 from archive_lease where holder = ?) then 1 else json('lost') end`, [
      holder,
    ]),
  ]
}

/** Lets others take the lease at once. */
export function dropArchiveLease(holder: string): Statement {
  return statement('delete from archive_lease where holder = ?', [holder])
}

/** Reports whether a commit failed because another run has the lease. */
export function isLeaseLost(error: unknown): boolean {
  return error instanceof Error && error.message.includes('malformed JSON')
}

function statement(sql: string, params: unknown[]): Statement {
  return { toSQL: () => ({ sql, params }) }
}
