// All kinds of issuers, and the kind of an issuer.

import { bitbucket, buildkite, jenkins, terraform } from './build-services.ts'
import { circleci, circleciRoot } from './circleci.ts'
import { github } from './github.ts'
import { gitlab, gitlabCom } from './gitlab.ts'
import { google } from './google.ts'
import { azure, kubernetes, spiffe, unknownIssuer } from './identity-services.ts'
import type { IssuerKind } from './issuer-kind.ts'
import { codeberg, codefresh, depot, humanitec, modal, namespace, pulumi, pulumiIds, vercel } from './job-services.ts'
import { cognito, otherService, sigstore } from './people-services.ts'

/** The first that matches counts. URLs decide before subjects, which an issuer of any URL can have. */
export const issuerKinds: readonly IssuerKind[] = [
  github,
  google,
  azure,
  buildkite,
  circleci,
  circleciRoot,
  bitbucket,
  jenkins,
  ...[vercel, pulumi, pulumiIds, codefresh, depot, modal, codeberg, humanitec, namespace],
  ...[sigstore, cognito, otherService],
  gitlabCom,
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

/** Returns the kind of an issuer, as it is for the audience of a policy. */
export function kindFor(issuerUrl: string, subjects: readonly string[], audience: string): IssuerKind {
  const { ofAudience, ...kind } = kindOf(issuerUrl, subjects)
  return ofAudience?.audience.test(audience) === true ? { ...kind, ...ofAudience } : kind
}
