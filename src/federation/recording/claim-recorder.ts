// Records the claims of verified tokens for the audit (reference: Recorded claims): which claims, by the setting of the
// organization, the policies of the issuer and the linter. The names are found when policies change, not at an exchange.
import { createPace } from '../../../db/read/pace.ts'
import type { ClaimRecorder } from '../audit-record.ts'
import { activationExcess } from '../condition/activation.ts'
import { claimsReadBy } from '../condition/claims-read.ts'
import { parseSource } from '../condition/engine.ts'
import type { Issuer } from '../issuer/issuer.ts'
import type { Policy } from '../policy.ts'
import type { ClaimHash } from './claim-hash.ts'
import { openClaims, recordClaims } from './recorded-claims.ts'

type Dependencies = {
  registry: {
    policies: { valuesContaining: (text: string) => Iterable<Policy> }
    onPolicyLoaded: ((policy: Policy) => void)[]
  }
  hashFor: (organizationId: string) => ClaimHash
}

/** Recorded anyhow, or by nobody: a token has no use for `__proto__`, which an object takes for something else. */
const kept = new Set(['sub', '__proto__', ...openClaims])

/** More would take an exchange longer than the rest of it. */
const namesMax = 256

export function createClaimRecorder({ registry, hashFor }: Dependencies): ClaimRecorder {
  const readNames = createReadNames(registry)
  const hashes = new Map<string, ClaimHash>()
  const ofKind = new WeakMap<Issuer, readonly string[]>()
  const merged = new WeakMap<Issuer, { size: number; names: readonly string[] }>()
  let claimsOfKind: ((issuerUrl: string, subject: string) => readonly string[]) | undefined
  let preparing: Promise<void> | undefined

  function namesFor(issuer: Issuer, policy: Policy, subject: string): readonly string[] {
    const read = readNames.ofPolicy(policy)
    const known = merged.get(issuer)
    if (known?.size === read.size) return known.names
    const kind = ofKind.get(issuer) ?? claimsOfKind?.(issuer.issuerUrl, subject) ?? []
    ofKind.set(issuer, kind)
    const names = [...new Set([...read, ...kind])].filter((name) => !kept.has(name))
    merged.set(issuer, { size: read.size, names })
    return names
  }

  function hashOf(organizationId: string): ClaimHash {
    const hash = hashes.get(organizationId) ?? hashFor(organizationId)
    hashes.set(organizationId, hash)
    return hash
  }

  return {
    prepare: () => {
      if (claimsOfKind !== undefined) return undefined
      preparing ??= import('../lint/kind-claims.ts').then((module) => {
        claimsOfKind = module.claimsOfKind
        void readNames.readAll()
      })
      return preparing
    },
    record: ({ organization, issuer, policy }, payload) => {
      const { recordClaims: mode } = organization
      // A condition refuses such a token for claims that would not be in the record.
      if (mode === 'off' || activationExcess(payload) !== undefined) return null
      if (mode === 'all') return recordClaims(payload, {})
      const names = namesFor(issuer, policy, String(payload.sub))
      return recordClaims(payload, { names, hash: mode === 'hashed' ? hashOf(organization.id) : undefined })
    },
  }
}

type ReadNames = {
  /** The claims that the policies of the policy's issuer are known to read, its own among them. */
  ofPolicy: (policy: Policy) => ReadonlySet<string>
  /** Reads all policies. Other work comes in between. */
  readAll: () => Promise<void>
}

/** By issuer, the claims that its policies read. Names are added and stay until the process ends. */
function createReadNames({ policies, onPolicyLoaded }: Dependencies['registry']): ReadNames {
  const byIssuer = new Map<string, Set<string>>()
  const noted = new WeakSet<Policy>()
  const ofIssuer = (id: string): Set<string> => {
    const names = byIssuer.get(id) ?? new Set()
    byIssuer.set(id, names)
    return names
  }
  const note = ({ issuerId, condition, attributeTo }: Policy): void => {
    for (const expression of [condition, attributeTo]) {
      if (expression === null || !expression.includes('claims')) continue
      const names = ofIssuer(issuerId)
      for (const name of namesIn(expression)) if (names.size < namesMax) names.add(name)
    }
  }
  onPolicyLoaded.push(note)
  return {
    ofPolicy: (policy) => {
      if (!noted.has(policy)) {
        note(policy)
        noted.add(policy)
      }
      return ofIssuer(policy.issuerId)
    },
    readAll: async () => {
      const pace = createPace()
      for (const policy of policies.valuesContaining('claims')) {
        note(policy)
        await pace()
      }
    },
  }
}

/** An expression that cannot be parsed any longer reads nothing. */
function namesIn(expression: string): Iterable<string> {
  try {
    return claimsReadBy(parseSource(expression).ast).names
  } catch {
    return []
  }
}
