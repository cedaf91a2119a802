// Claims that identity providers put in their tokens, recorded in fixtures from their documentation, with a policy for
// each and claims that almost match it.
import type { Reason } from '../../src/federation/subject-token/refusal.ts'
import buildkite from '../fixtures/claims/buildkite.json' with { type: 'json' }
import circleci from '../fixtures/claims/circleci.json' with { type: 'json' }
import githubBranch from '../fixtures/claims/github-actions-branch.json' with { type: 'json' }
import githubEnvironment from '../fixtures/claims/github-actions-environment.json' with { type: 'json' }
import gitlab from '../fixtures/claims/gitlab.json' with { type: 'json' }
import google from '../fixtures/claims/google-service-account.json' with { type: 'json' }
import keycloak from '../fixtures/claims/keycloak.json' with { type: 'json' }
import kubernetes from '../fixtures/claims/kubernetes.json' with { type: 'json' }

type Claims = Record<string, unknown> & { iss: string; iat: number; exp: number }

/** One fact about the workload that violates the policy, in every claim that contains it. */
export type NearMiss = { name: string; change: Record<string, unknown>; reason: Reason }

export type Recorded = {
  name: string
  header: Record<string, unknown>
  claims: Claims
  /** The policy's requirements. */
  audience: string
  subject: string
  nearMisses: NearMiss[]
}

const audience = 'https://latchkey.example'
const wrongSubject = (name: string, sub: string, also: Record<string, unknown> = {}): NearMiss => ({
  name,
  change: { sub, ...also },
  reason: 'subject_mismatch',
})
const wrongAudience = (name: string, aud: unknown): NearMiss => ({ name, change: { aud }, reason: 'audience_mismatch' })
const wrongIssuer = (name: string, iss: string): NearMiss => ({ name, change: { iss }, reason: 'issuer_mismatch' })

const pullRequest = { event_name: 'pull_request', ref: 'refs/pull/7/merge', head_ref: 'fix', base_ref: 'main' }
const circleOrganization = circleci.claims['oidc.circleci.com/org-id']
const circleProject = `org/${circleOrganization}/project/${circleci.claims['oidc.circleci.com/project-id']}`
const circleUser = 'user/58bd21dd-34fd-4dfa-be1b-f8909fae9137'
const circleMain = 'vcs-origin/github.com/octo-org/octo-repo/vcs-ref/refs/heads/main'
const buildkiteCommit = `commit:${buildkite.claims.build_commit}`

export const recorded: Recorded[] = [
  {
    name: 'GitHub Actions on a branch',
    ...githubBranch,
    audience,
    subject: 'repo:octo-org/octo-repo:ref:refs/heads/main',
    nearMisses: [
      wrongSubject('for another repository', 'repo:octo-org/other:ref:refs/heads/main', {
        repository: 'octo-org/other',
      }),
      wrongSubject('for a repository whose name only begins alike', 'repo:octo-org/octo-repo-2:ref:refs/heads/main'),
      wrongSubject('for a fork', 'repo:octocat/octo-repo:ref:refs/heads/main', { repository_owner: 'octocat' }),
      wrongSubject('for a pull request', 'repo:octo-org/octo-repo:pull_request', pullRequest),
      wrongSubject('for another branch', 'repo:octo-org/octo-repo:ref:refs/heads/fix', { ref: 'refs/heads/fix' }),
      wrongSubject('for a tag of the same name', 'repo:octo-org/octo-repo:ref:refs/tags/main', { ref_type: 'tag' }),
      wrongSubject('for an environment', 'repo:octo-org/octo-repo:environment:main', { environment: 'main' }),
      wrongSubject(
        'with immutable ids in the subject',
        'repo:octo-org@162148032/octo-repo@797215326:ref:refs/heads/main',
      ),
      wrongAudience('for the audience that GitHub puts in by default', 'https://github.com/octo-org'),
      wrongIssuer('from an enterprise server', 'https://github.example/_services/token'),
    ],
  },
  {
    name: 'GitHub Actions in an environment, with immutable ids',
    ...githubEnvironment,
    audience,
    subject: 'repo:octo-org@123456/octo-repo@456789:environment:production',
    nearMisses: [
      wrongSubject(
        'for a later repository of the same name',
        'repo:octo-org@123456/octo-repo@456790:environment:production',
      ),
      wrongSubject(
        'for a later owner of the same name',
        'repo:octo-org@123457/octo-repo@456789:environment:production',
      ),
      wrongSubject('without the ids', 'repo:octo-org/octo-repo:environment:production'),
      wrongSubject('for another environment', 'repo:octo-org@123456/octo-repo@456789:environment:staging'),
      wrongSubject('for a pull request', 'repo:octo-org@123456/octo-repo@456789:pull_request', pullRequest),
      wrongAudience('for another service', 'sts.amazonaws.com'),
    ],
  },
  {
    name: 'GitLab',
    ...gitlab,
    audience,
    subject: 'project_path:my-group/my-project:ref_type:branch:ref:main',
    nearMisses: [
      wrongSubject('for another project', 'project_path:my-group/other:ref_type:branch:ref:main'),
      wrongSubject('for a project of another group', 'project_path:fork-group/my-project:ref_type:branch:ref:main'),
      wrongSubject('for a project in a subgroup', 'project_path:my-group/sub/my-project:ref_type:branch:ref:main'),
      wrongSubject('for another branch', 'project_path:my-group/my-project:ref_type:branch:ref:main-2'),
      wrongSubject('for a tag of the same name', 'project_path:my-group/my-project:ref_type:tag:ref:main'),
      wrongSubject('for a merge request', 'project_path:my-group/my-project:ref_type:branch:ref:fix', {
        pipeline_source: 'merge_request_event',
      }),
      wrongAudience('for the audience that GitLab puts in by default', 'https://gitlab.com'),
      wrongIssuer('from a self-managed instance', 'https://gitlab.example.com'),
    ],
  },
  {
    name: 'a Kubernetes service account',
    ...kubernetes,
    audience,
    subject: 'system:serviceaccount:inference:summarizer',
    nearMisses: [
      wrongSubject('for another namespace', 'system:serviceaccount:default:summarizer'),
      wrongSubject('for another service account', 'system:serviceaccount:inference:default'),
      wrongAudience('for the API server', ['https://kubernetes.default.svc.cluster.local', 'k3s']),
      wrongAudience('for no audience at all', []),
      wrongIssuer(
        'from another cluster',
        'https://oidc.eks.us-east-2.amazonaws.com/id/2F331C82755EF3E43731C8D6E299FAEF',
      ),
    ],
  },
  {
    name: 'a Keycloak service account',
    ...keycloak,
    audience,
    subject: '5f4a0f5c-5f0d-4a8f-a9c4-9a4d6f3f8d2e',
    nearMisses: [
      wrongSubject('for another service account', '0c6bb0f4-9f4e-4b7a-8d53-6a1a5d1b7c20', { azp: 'other' }),
      wrongSubject('with the name of the client as subject', 'batch'),
      wrongSubject('with the name of the service account as subject', 'service-account-batch'),
      wrongAudience('without an audience mapper', 'account'),
      wrongAudience('for another service', ['https://other.example', 'account']),
      wrongIssuer('from another realm', 'https://sso.example.com/realms/other'),
    ],
  },
  {
    name: 'Buildkite',
    ...buildkite,
    audience,
    subject: `organization:acme-inc:pipeline:super-duper-app:ref:refs/heads/main:${buildkiteCommit}:step:deploy`,
    nearMisses: [
      wrongSubject(
        'for another pipeline',
        `organization:acme-inc:pipeline:app:ref:refs/heads/main:${buildkiteCommit}:step:deploy`,
      ),
      wrongSubject(
        'for another organization',
        `organization:acme:pipeline:super-duper-app:ref:refs/heads/main:${buildkiteCommit}:step:deploy`,
      ),
      wrongSubject(
        'for another branch',
        `organization:acme-inc:pipeline:super-duper-app:ref:refs/heads/fix:${buildkiteCommit}:step:deploy`,
      ),
      wrongSubject(
        'for another commit',
        `organization:acme-inc:pipeline:super-duper-app:ref:refs/heads/main:commit:${'0'.repeat(40)}:step:deploy`,
      ),
      wrongSubject(
        'for a step without a key',
        `organization:acme-inc:pipeline:super-duper-app:ref:refs/heads/main:${buildkiteCommit}:step:`,
        { step_key: null },
      ),
      wrongAudience('for the audience that Buildkite puts in by default', 'https://buildkite.com/acme-inc'),
    ],
  },
  {
    name: 'CircleCI',
    ...circleci,
    audience: circleOrganization,
    subject: `${circleProject}/${circleUser}/${circleMain}`,
    nearMisses: [
      wrongSubject(
        'for another project',
        `org/${circleOrganization}/project/${crypto.randomUUID()}/${circleUser}/${circleMain}`,
      ),
      wrongSubject(
        'for a job that another user has started',
        `${circleProject}/user/${crypto.randomUUID()}/${circleMain}`,
      ),
      wrongSubject(
        'for a pull request from a fork',
        `${circleProject}/${circleUser}/vcs-origin/github.com/octocat/octo-repo/vcs-ref/refs/heads/pull/7`,
      ),
      wrongSubject('without origin and ref, as the first version of the token', `${circleProject}/${circleUser}`),
      wrongAudience('for a custom audience', audience),
      wrongIssuer('from another organization', `https://oidc.circleci.com/org/${crypto.randomUUID()}`),
    ],
  },
  {
    name: 'a Google service account',
    ...google,
    audience,
    subject: '104479897743394244856',
    nearMisses: [
      wrongSubject('for another service account', '100483287612623142116', { azp: '100483287612623142116' }),
      wrongSubject('with its email as subject', google.claims.email),
      { name: 'with a number as subject', change: { sub: 1_044_798_977 }, reason: 'token_claim_type' },
      wrongAudience('for another service', 'https://service.example'),
      wrongIssuer('with the issuer written without a scheme', 'accounts.google.com'),
    ],
  },
]

/** Changes to the claims that every policy checks, which must be refused for every provider. */
export function nearMissesOfAll({ subject, otherIssuerUrl }: { subject: string; otherIssuerUrl: string }): NearMiss[] {
  return [
    wrongSubject('with more after the subject', `${subject}x`),
    wrongSubject('with less than the subject', subject.slice(0, -1)),
    wrongSubject('with white space around the subject', `${subject} `),
    { name: 'with an empty subject', change: { sub: '' }, reason: 'token_claim_type' },
    wrongAudience('with a pattern for an audience', '*'),
    wrongAudience('for several audiences, none of them ours', [`${audience}/`, 'https://elsewhere.example']),
    wrongIssuer('when it names an issuer that did not sign it', otherIssuerUrl),
    { name: 'without a subject', change: { sub: undefined }, reason: 'token_claim_type' },
    { name: 'without an audience', change: { aud: undefined }, reason: 'token_claim_type' },
    { name: 'without an expiry', change: { exp: undefined }, reason: 'exp_invalid' },
  ]
}
