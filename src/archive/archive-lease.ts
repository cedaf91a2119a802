// Runs the archiving of a server database under its lease, so that of all nodes and commands one archives at a time. A
// database file has one process and needs none.
import { dropArchiveLease, holdArchiveLease, isLeaseLost, takeArchiveLease } from '../../db/tables/archive-lease.ts'
import type { Writer } from '../../db/write/write.ts'
import { Fault } from '../fault.ts'
import { every } from '../scheduling/every.ts'

type OwnWriter = Pick<Writer, 'write'>

/** A third of what a commit holds the lease for. */
const holdMilliseconds = 20_000

/**
 * Calls `run` with a writer whose commits fail once another run has the lease. `host` names this machine.
 * @throws Fault `conflict` while another node or command archives
 */
export async function withArchiveLease<Result>(
  writer: OwnWriter,
  host: string,
  run: (leased: OwnWriter) => Promise<Result>,
): Promise<Result> {
  const holder = `${host}/${crypto.randomUUID()}`
  const commit: OwnWriter['write'] = (statements) =>
    writer.write(statements).catch((error: unknown) => {
      throw isLeaseLost(error) ? anotherRuns(error) : error
    })
  const leased: OwnWriter = { write: (statements) => commit([...holdArchiveLease(holder), ...statements]) }
  await commit([takeArchiveLease(holder), ...holdArchiveLease(holder)])
  // Reading and comparing a file take long. If this fails, the next commit of the run does too.
  const stopHolding = every(holdMilliseconds, () => leased.write([]))
  try {
    return await run(leased)
  } finally {
    stopHolding()
    await writer.write([dropArchiveLease(holder)]).catch(() => {})
  }
}

function anotherRuns(cause: unknown): Fault {
  return new Fault('conflict', 'Another node archives rows; wait for that run to finish', {
    reason: 'archive_lease_held',
    cause,
  })
}
