// The form of a service of which everybody can have tokens, with one issuer for all.
import type { JsonObject } from '../../tokens/jwt-text.ts'
import type { ClaimName } from './atom.ts'
import { type IssuerKind, type Level, nothing, type Pin } from './issuer-kind.ts'

type Service = {
  id: string
  title: string
  /** Issuers of which everyone can have tokens. */
  issuers: RegExp
  /** Issuers whose URL contains the tenant, with the same claims. */
  ownIssuers?: RegExp
  levels: readonly Level[]
  stranger: JsonObject
}

export function serviceOf({ issuers, ownIssuers = nothing, ...service }: Service): IssuerKind {
  return {
    ...service,
    matches: (issuerUrl) => issuers.test(issuerUrl) || ownIssuers.test(issuerUrl),
    isShared: (issuerUrl) => issuers.test(issuerUrl),
    wideRule: 'tenant-wide',
    checks: [],
    sometimes: [],
    alsoKnown: /./,
  }
}

export const ids = (...claims: ClaimName[]): Pin[] => claims.map((claim) => ({ claim, immutable: true }))
/** A subject whose beginning names the tenant; a prefix that only matches `open` ends within its name. */
export const subject = (begins: RegExp, open: RegExp, others: Partial<Pin> = {}): Pin => ({
  ...{ claim: 'sub', value: begins, prefix: begins, open },
  ...others,
})
