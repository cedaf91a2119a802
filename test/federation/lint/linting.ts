// Lints policies as rows describe them.
import { conditionEnvironment } from '../../../src/federation/condition/compile.ts'
import { type Finding, lintPolicy } from '../../../src/federation/lint/lint.ts'

export const issuerUrls = {
  github: 'https://token.actions.githubusercontent.com',
  enterpriseServer: 'https://github.acme.example/_services/token',
  gitlab: 'https://gitlab.com',
  ownGitlab: 'https://gitlab.acme.example',
  google: 'https://accounts.google.com',
  entra: 'https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0',
  entraCommon: 'https://login.microsoftonline.com/common/v2.0',
  entraPersonal: 'https://login.microsoftonline.com/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0',
  entraPassThrough: 'https://login.microsoftonline.com/f8cdef31-a31e-4b4a-93e4-5f571e91255a/v2.0',
  entraPassThroughV1: 'https://sts.windows.net/f8cdef31-a31e-4b4a-93e4-5f571e91255a/',
  kubernetes: 'https://kubernetes.default.svc.cluster.local',
  eks: 'https://oidc.eks.eu-west-1.amazonaws.com/id/EXAMPLED539D4633E53DE1B71EXAMPLE',
  buildkite: 'https://agent.buildkite.com',
  circleci: 'https://oidc.circleci.com/org/c9035eb6-6eb2-4c85-8a81-d9ee6a1fa8c2',
  terraform: 'https://app.terraform.io',
  bitbucket: 'https://api.bitbucket.org/2.0/workspaces/acme/pipelines-config/identity/oidc',
  jenkins: 'https://jenkins.acme.example/oidc',
  spire: 'https://spire.acme.example',
  own: 'https://sso.acme.example/realms/acme',
  gnome: 'https://gitlab.gnome.org',
  salsa: 'https://salsa.debian.org',
  vercel: 'https://oidc.vercel.com',
  vercelTeam: 'https://oidc.vercel.com/acme',
  pulumi: 'https://api.pulumi.com/oidc',
  pulumiIds: 'https://api.pulumi.com/oidc/v2',
  sigstore: 'https://oauth2.sigstore.dev/auth',
  cognito: 'https://cognito-identity.amazonaws.com',
  circleciRoot: 'https://oidc.circleci.com',
  codefresh: 'https://oidc.codefresh.io',
  depot: 'https://identity.depot.dev',
  modal: 'https://oidc.modal.com',
  codeberg: 'https://codeberg.org/api/actions',
  humanitec: 'https://idtoken.humanitec.io',
  namespace: 'https://federation.namespaceapis.com',
  publicService: 'https://issuer.enforce.dev',
} as const
export type IssuerName = keyof typeof issuerUrls

export type PolicyRow = {
  issuer: IssuerName
  subject?: string
  condition?: string
  audience?: string
  scope?: string
  type?: string
  /** What usage is attributed to. */
  attributeTo?: string
  /** Seconds. Default: 600, which no rule minds. */
  maxTokenAge?: number | null
  /** What was answered. Default: no, which counts for issuers that are not known to be shared. */
  shared?: boolean | null
  /** Where the policy was published. */
  source?: string
}

/** What the linter reads, from a row. */
export function policyOf({ subject, condition, audience, scope, type, attributeTo }: PolicyRow) {
  return {
    audience: audience ?? 'https://llm.acme.example',
    subject: subject ?? null,
    condition: condition ?? null,
    conditionEnvironment: condition === undefined ? null : conditionEnvironment,
    requiredScope: scope ?? null,
    requiredTokenType: type ?? null,
    attributeTo: attributeTo ?? null,
    attributeEnvironment: attributeTo === undefined ? null : conditionEnvironment,
  }
}

export function findingsOf(row: PolicyRow): Finding[] {
  const { issuer, maxTokenAge = 600, shared = false } = row
  return lintPolicy(policyOf(row), { issuerUrl: issuerUrls[issuer], maxTokenAgeSeconds: maxTokenAge, shared })
}
