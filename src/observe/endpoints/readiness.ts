// Collects the facts behind /readyz and `latchkey health`, and logs every change of the result. health.ts has the rules.
import type { Issuer } from '../../federation/issuer/issuer.ts'
import type { IssuerKeys } from '../../federation/issuer/issuer-keys.ts'
import type { Reachability } from '../../inference/upstream/reachability.ts'
import type { UpstreamRegistry } from '../../inference/upstream/targets.ts'
import type { SigningKeys } from '../../tokens/signing-keys.ts'
import { type Health, judgeHealth } from '../health.ts'
import type { Log } from '../log.ts'

/** What readiness needs. */
export type ReadinessContext = {
  registry: UpstreamRegistry & {
    readonly organizations: ReadonlyMap<string, unknown>
    readonly issuers: ReadonlyMap<string, Issuer>
  }
  isWritable: () => Promise<boolean>
  signingKeys: Pick<SigningKeys, 'current'>
  issuerKeys: Pick<IssuerKeys, 'stateOf'>
  reachability: Reachability
  /** Whether the last scheduled backup failed. */
  backupSchedule: { isFailing: () => boolean }
  now: () => number
  log: Log
}

export type Readiness = {
  /** The health now. Never rejects. */
  check: () => Promise<Health>
  /** From now on the server is not ready. */
  beginStop: () => void
  isStopping: () => boolean
}

export function createReadiness(context: ReadinessContext): Readiness {
  const { registry, isWritable, issuerKeys, reachability, log } = context
  let isStopping = false
  let before = 'ready'
  return {
    check: async () => {
      const health = judgeHealth({
        isStopping,
        isWritable: await isWritable(),
        hasSigningKey: hasSigningKey(context),
        isRegistryLoaded: registry.organizations.size > 0,
        unreachableUpstreams: registry.upstreamsInOrder.filter((each) => reachability.of(each) === false).length,
        failingIssuers: [...registry.issuers.values()].filter(
          (issuer) => issuer.deletedAt === null && issuerKeys.stateOf(issuer).failures > 0,
        ).length,
        isBackupFailing: context.backupSchedule.isFailing(),
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

function hasSigningKey({ signingKeys, now }: ReadinessContext): boolean {
  try {
    signingKeys.current(now())
    return true
  } catch {
    return false
  }
}
