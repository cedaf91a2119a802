// All kinds of issuers, and the kind of an issuer.

import { bitbucket, buildkite, circleci, jenkins, terraform } from './build-services.ts'
import { github } from './github.ts'
import { gitlab } from './gitlab.ts'
import { azure, google, kubernetes, spiffe, unknownIssuer } from './identity-services.ts'
import type { IssuerKind } from './issuer-kind.ts'

/** The first that matches counts. URLs decide before subjects, which an issuer of any URL can have. */
export const issuerKinds: readonly IssuerKind[] = [
  github,
  google,
  azure,
  buildkite,
  circleci,
  bitbucket,
  jenkins,
  gitlab,
  terraform,
  kubernetes,
  spiffe,
  unknownIssuer,
]

/** Returns the kind of an issuer, by its URL or else by the subjects that a policy names. */
export function kindOf(issuerUrl: string, subjects: readonly string[]): IssuerKind {
  return (
    issuerKinds.find((kind) => kind !== unknownIssuer && kind.matches(issuerUrl, [])) ??
    issuerKinds.find((kind) => kind.matches(issuerUrl, subjects)) ??
    unknownIssuer
  )
}
