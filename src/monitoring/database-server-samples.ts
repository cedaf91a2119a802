// Samples of the servers of a database cluster, as they were looked at last.
import type { ServerState } from '../../db/remote/server-client.ts'
import type { FamilyName } from '../observe/metric-families.ts'
import type { Sample } from '../observe/series.ts'

export type DatabaseServerStates = {
  states: () => readonly ServerState[]
  leaderChanges: () => number | undefined
  behind: (server: ServerState) => number | undefined
}

/** Nothing where there is no cluster. */
export function databaseServerSamples(servers: DatabaseServerStates): Partial<Record<FamilyName, Sample[]>> {
  const states = servers.states()
  const each = (read: (state: ServerState) => number | undefined): Sample[] =>
    states.flatMap((state) => {
      const value = read(state)
      return value === undefined ? [] : [{ labels: [state.server], value }]
    })
  const changes = servers.leaderChanges()
  return {
    databaseServerUp: each(({ isUp }) => Number(isUp)),
    databaseServerLeads: each((state) => Number(state.isUp && state.isLeader)),
    databaseServerBehind: each(servers.behind),
    databaseServerBytes: each((state) => (state.isUp ? state.bytes : undefined)),
    leaderChanges: changes === undefined ? [] : [{ labels: [], value: changes }],
  }
}
