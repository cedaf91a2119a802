// Collects the facts behind /readyz and `latchkey health`, and logs every change of the result. health.ts has the rules.
import type { Issuer } from '../federation/issuer/issuer.ts'
import type { IssuerKeys } from '../federation/issuer/issuer-keys.ts'
import type { Reachability } from '../inference/upstream/reachability.ts'
import type { UpstreamRegistry } from '../inference/upstream/targets.ts'
import { readinessMilliseconds } from '../limits.ts'
import type { Log } from '../observe/log.ts'
import { isSettledWithin } from '../runtime/settled-within.ts'
import type { SigningKeys } from '../tokens/signing-keys.ts'
import { type Health, judgeHealth } from './health.ts'

/** What readiness needs. */
export type ReadinessContext = {
  registry: UpstreamRegistry & {
    readonly organizations: ReadonlyMap<string, unknown>
    readonly issuers: ReadonlyMap<string, Issuer>
  }
  isWritable: () => Promise<boolean>
  /** How long that is waited for; by default `probeMillisecondsDefault`. */
  probeMillisecondsMax?: number
  follow: { isUpToDate: () => boolean }
  signingKeys: Pick<SigningKeys, 'current'>
  issuerKeys: Pick<IssuerKeys, 'stateOf'>
  reachability: Reachability
  /** Whether the last scheduled backup failed. */
  backupSchedule: { isFailing: () => boolean }
  retention: { isFailing: () => boolean }
  grace: { isUsed: () => boolean; rows: () => number } | undefined
  now: () => number
  monotonic: () => number
  log: Log
}

export type Readiness = {
  /** The health now. Never rejects. */
  check: () => Promise<Health>
  /** From now on the server is not ready. */
  beginStop: () => void
  isStopping: () => boolean
}

/** Who asks waits five seconds. A probe whose outcome is unknown ends when the database is back. */
const probeMillisecondsDefault = 2_000

export function createReadiness(context: ReadinessContext): Readiness {
  const { registry, follow, isWritable, retention, log, probeMillisecondsMax = probeMillisecondsDefault } = context
  const countFailing = createFailureCount(context)
  let isStopping = false
  let before = 'ready'
  const isWritableInTime = async () => {
    const probe = isWritable()
    return (await isSettledWithin(probe, probeMillisecondsMax)) && (await probe)
  }
  return {
    check: async () => {
      const isDatabaseReached = follow.isUpToDate()
      const health = judgeHealth({
        isStopping,
        isDatabaseReached,
        // A probe of a server that does not respond takes long.
        isWritable: !isDatabaseReached || (await isWritableInTime()),
        isInGrace: context.grace?.isUsed() === true,
        isUsageWaiting: (context.grace?.rows() ?? 0) > 0,
        hasSigningKey: hasSigningKey(context),
        isRegistryLoaded: registry.organizations.size > 0,
        ...countFailing(),
        isBackupFailing: context.backupSchedule.isFailing(),
        isRetentionFailing: retention.isFailing(),
      })
      const { status, failing, degraded } = health
      const found = [status, ...failing, ...degraded].join()
      if (found !== before) log(status === 'ready' ? 'info' : 'warn', 'health_changed', { status, failing, degraded })
      before = found
      return health
    },
    beginStop: () => {
      isStopping = true
    },
    isStopping: () => isStopping,
  }
}

/** Counts at most once in `readinessMilliseconds`. */
function createFailureCount({ registry, issuerKeys, reachability, monotonic }: ReadinessContext) {
  let counted = { unreachableUpstreams: 0, failingIssuers: 0 }
  let countedAt = Number.NEGATIVE_INFINITY
  return () => {
    if (monotonic() - countedAt < readinessMilliseconds) return counted
    countedAt = monotonic()
    const { upstreamsInOrder, issuers } = registry
    const isFailing = (issuer: Issuer) => issuer.deletedAt === null && issuerKeys.stateOf(issuer).failures > 0
    counted = {
      unreachableUpstreams: upstreamsInOrder.filter((each) => reachability.of(each) === false).length,
      failingIssuers: [...issuers.values()].filter(isFailing).length,
    }
    return counted
  }
}

function hasSigningKey({ signingKeys, now }: ReadinessContext): boolean {
  try {
    signingKeys.current(now())
    return true
  } catch {
    return false
  }
}
