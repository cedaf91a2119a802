// A trusted issuer as the registry holds it. A change of the row makes a new value.
import type { IssuerWithKeySet } from '../../../db/issuers.ts'

/** An issuer with the last good key set that the database has for it. */
export type Issuer = Readonly<IssuerWithKeySet>

/** Where the keys come from. A stored set from another source is not used, however the edit and a running fetch were ordered. */
export function sourceOf(issuer: Issuer): string {
  return issuer.jwksUrl ?? `discovery of ${issuer.issuerUrl}`
}
