// What makes a server ready, degraded or not ready (manual: monitoring). Rules only: it asks nobody.

/** What a check found. Counts are of upstreams and issuers in use. */
export type HealthFacts = {
  isStopping: boolean
  /** Whether a refresh from a database server succeeded a moment ago. */
  isDatabaseReached: boolean
  /** Whether inference is served although the database is away or takes no commits (LATCHKEY_DATABASE_GRACE). */
  isInGrace: boolean
  /** Whether rows of usage wait on the disk for the database. */
  isUsageWaiting: boolean
  /** Whether a commit succeeded a moment ago. */
  isWritable: boolean
  hasSigningKey: boolean
  isRegistryLoaded: boolean
  unreachableUpstreams: number
  failingIssuers: number
  /** Whether the last scheduled backup failed. */
  isBackupFailing: boolean
  /** Whether the last scheduled archive run failed. */
  isRetentionFailing: boolean
}

export const failingChecks = ['stopping', 'database', 'writer', 'signing_key', 'registry'] as const
export const degradedChecks = ['database', 'writer', 'usage', 'upstreams', 'issuers', 'backup', 'retention'] as const

/** Only the names of checks, since anyone may ask. */
export type Health = {
  status: 'ready' | 'degraded' | 'not_ready'
  failing: (typeof failingChecks)[number][]
  degraded: (typeof degradedChecks)[number][]
}

/** A degraded server still serves: a restart or a load balancer cannot repair upstreams, issuers or backups. */
export function judgeHealth(facts: HealthFacts): Health {
  const fails: Record<Health['failing'][number], boolean> = {
    stopping: facts.isStopping,
    database: !facts.isDatabaseReached && !facts.isInGrace,
    writer: !facts.isWritable && !facts.isInGrace,
    signing_key: !facts.hasSigningKey,
    registry: !facts.isRegistryLoaded,
  }
  const degrades: Record<Health['degraded'][number], boolean> = {
    database: !facts.isDatabaseReached && facts.isInGrace,
    writer: !facts.isWritable && facts.isInGrace,
    usage: facts.isUsageWaiting,
    upstreams: facts.unreachableUpstreams > 0,
    issuers: facts.failingIssuers > 0,
    backup: facts.isBackupFailing,
    retention: facts.isRetentionFailing,
  }
  const failing = failingChecks.filter((name) => fails[name])
  const degraded = degradedChecks.filter((name) => degrades[name])
  const status = failing.length > 0 ? 'not_ready' : degraded.length > 0 ? 'degraded' : 'ready'
  return { status, failing, degraded }
}
