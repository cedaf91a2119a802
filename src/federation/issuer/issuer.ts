// A trusted issuer as the registry holds it. Changing the row creates a new value.
import type { IssuerWithKeySet } from '../../../db/tables/issuers.ts'

/** An issuer with its last good key set from the database. */
export type Issuer = Readonly<IssuerWithKeySet>

/**
 * Returns where the keys come from. A stored set from another source is ignored, in whatever order an edit and a
 * running fetch finish.
 */
export function sourceOf(issuer: Issuer): string {
  return issuer.jwksUrl ?? `discovery of ${issuer.issuerUrl}`
}
