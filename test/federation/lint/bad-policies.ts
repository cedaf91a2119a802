// Policies with a planted defect, each with the rule that must find it.
import type { RuleName } from '../../../src/federation/lint/rules.ts'
import type { PolicyRow } from './linting.ts'

const tinder =
  'https://medium.com/tinder/identifying-vulnerabilities-in-github-actions-aws-oidc-configurations-8067c400d5b8'
const trackr = 'https://www.trackr.live/2026/06/17/github-aws-oidc-sub-condition-config-audit/'
const githubReusable =
  'https://docs.github.com/en/actions/how-tos/secure-your-work/security-harden-deployments/oidc-with-reusable-workflows'
const githubDocs = 'https://docs.github.com/en/actions/reference/security/oidc'
const gitlabDocs = 'https://docs.gitlab.com/ci/secrets/id_token_authentication/'
const kubernetesDocs = 'https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/'
const githubChange = 'https://github.blog/changelog/2026-04-23-immutable-subject-claims-for-github-actions-oidc-tokens/'

const gitlabForks = 'https://gitlab.com/gitlab-org/gitlab/-/issues/563038'
const serviceAccounts = 'https://cloud.google.com/iam/docs/service-account-types'
const vercelDocs = 'https://vercel.com/docs/oidc/reference'
const pulumiDocs = 'https://www.pulumi.com/docs/administration/access-identity/oidc-provider/'
const pulumiAudiences = 'https://www.pulumi.com/docs/esc/guides/configuring-oidc/custom-audience/'
const fulcioDocs = 'https://github.com/sigstore/fulcio/blob/main/docs/oidc.md'
const cognitoDocs = 'https://docs.aws.amazon.com/cognitoidentity/latest/APIReference/API_GetOpenIdToken.html'
const entraDocs = 'https://learn.microsoft.com/en-us/entra/identity-platform/id-token-claims-reference'

export const badPolicies: Record<RuleName, PolicyRow[]> = {
  vacuous: [
    { issuer: 'vercel', condition: 'claims.environment == "production"', source: vercelDocs },
    { issuer: 'cognito', condition: '"authenticated" in claims.amr', source: cognitoDocs },
    // Guests of a pool of one's own.
    { issuer: 'cognito', condition: 'true', audience: 'us-east-1:0c5f6e2a-0000-4000-8000-000000000009' },
    { issuer: 'sigstore', condition: 'claims.email_verified == true', source: fulcioDocs },
    { issuer: 'salsa', condition: 'claims.project_visibility == "public"' },
    // No condition on sub: only the audience is compared.
    { issuer: 'github', condition: 'true', source: tinder },
    { issuer: 'github', condition: '"https://llm.acme.example" in audience', source: trackr },
    { issuer: 'own', condition: 'subject != ""' },
    { issuer: 'own', condition: 'has(claims.sub) && !has(claims.admin)' },
    { issuer: 'gitlab', condition: '1 < 2 || claims.project_id == "20"' },
    { issuer: 'kubernetes', condition: 'subject.startsWith("system:serviceaccount:") || subject == "x"' },
    { issuer: 'github', condition: 'claims.runner_environment == "github-hosted"' },
    { issuer: 'google', condition: 'size(subject) > 3' },
  ],
  'shared-no-tenant': [
    // Of two pieces, one can be the subject of a stranger.
    { issuer: 'sigstore', condition: 'claims.email + ":" + subject == "a:b:c"' },
    { issuer: 'entraCommon', condition: 'subject + "-" + claims.oid in ["a-b-c"]' },
    { issuer: 'publicService', condition: 'claims.email + ":" + subject == "a:b:c"' },
    { issuer: 'vercel', condition: 'claims.plan + "-" + claims.owner_id == "pro-a-b"' },
    { issuer: 'github', condition: 'claims.event_name == "push"' },
    { issuer: 'github', condition: 'claims.repository == "acme/app" || claims.runner_environment == "self-hosted"' },
    { issuer: 'gitlab', condition: 'claims.ref_protected == "true"', source: gitlabDocs },
    { issuer: 'gitlab', condition: 'claims.user_login == "alice" && !(claims.ref_protected != "true")' },
    { issuer: 'terraform', condition: 'claims.terraform_run_phase == "apply"' },
    { issuer: 'buildkite', condition: 'claims.build_branch == "main"' },
    { issuer: 'google', condition: 'claims.email_verified == true' },
    { issuer: 'entraCommon', condition: '"Latchkey.Use" in claims.roles' },
    { issuer: 'entraPassThrough', condition: 'claims.preferred_username.endsWith("@acme.com")' },
    { issuer: 'entraPassThroughV1', condition: 'claims.tid == "f8cdef31-a31e-4b4a-93e4-5f571e91255a"' },
    { issuer: 'entraCommon', condition: 'claims.tid == "f8cdef31-a31e-4b4a-93e4-5f571e91255a"' },
    { issuer: 'entraPersonal', condition: 'claims.tid == "9188040d-6c67-4c5b-b112-36a304b66dad"', source: entraDocs },
    { issuer: 'github', condition: 'subject.startsWith("repo:") && claims.event_name != "pull_request"' },
    // A fork has the same commits.
    { issuer: 'github', condition: 'claims.sha == "9f3182061f1e2cca4702c368cbc039b7dc9d4485"' },
    { issuer: 'gitlab', condition: 'claims.sha == "9f31" && claims.ci_config_sha == "9f31"', source: gitlabDocs },
    { issuer: 'gitlab', condition: 'claims.job_project_id == "20"', source: gitlabForks },
    { issuer: 'gitlab', condition: 'claims.job_namespace_path == "acme"', source: gitlabForks },
    // GitLab's own runners have ids too.
    { issuer: 'gitlab', condition: 'claims.runner_id == 12270845', source: gitlabDocs },
    {
      issuer: 'gnome',
      condition: 'claims.ref_protected == "true"',
      source: 'https://wiki.gnome.org/Git/NewRepository',
    },
    // On other servers, the runners for everybody are self-hosted too.
    { issuer: 'gnome', condition: 'claims.runner_id == 7 && claims.runner_environment == "self-hosted"' },
    { issuer: 'salsa', condition: 'claims.environment == "production"' },
    { issuer: 'vercel', condition: 'claims.environment == "preview"', source: vercelDocs },
    { issuer: 'vercel', condition: 'claims.project == "app"', source: vercelDocs },
    { issuer: 'pulumi', condition: 'claims.trigger_user == "alice"', source: pulumiDocs },
    { issuer: 'pulumiIds', condition: 'claims["https://pulumi.com/actor"] == "alice"', source: pulumiAudiences },
    {
      issuer: 'sigstore',
      condition: 'claims.federated_claims.connector_id == "https://accounts.google.com"',
      source: fulcioDocs,
    },
    { issuer: 'cognito', condition: '"graph.facebook.com" in claims.amr', source: cognitoDocs },
    // Logins of a pool of one's own to which people sign up, and those of which nothing is known.
    {
      issuer: 'cognito',
      condition: '"authenticated" in claims.amr',
      audience: 'us-east-1:0c5f6e2a-0000-4000-8000-000000000009',
      source: cognitoDocs,
    },
    {
      issuer: 'cognito',
      condition: '"authenticated" in claims.amr && !("unauthenticated" in claims.amr)',
      audience: 'us-east-1:0c5f6e2a-0000-4000-8000-000000000009',
      source: cognitoDocs,
    },
    {
      issuer: 'cognito',
      condition: '"graph.facebook.com" in claims.amr',
      audience: 'us-east-1:0c5f6e2a-0000-4000-8000-000000000009',
      source: cognitoDocs,
    },
    {
      issuer: 'cognito',
      condition: '"accounts.google.com" in claims.amr',
      audience: 'us-east-1:0c5f6e2a-0000-4000-8000-000000000009',
      source: cognitoDocs,
    },
    {
      issuer: 'cognito',
      condition: '"www.amazon.com" in claims.amr',
      audience: 'us-east-1:0c5f6e2a-0000-4000-8000-000000000009',
      source: cognitoDocs,
    },
    {
      issuer: 'cognito',
      condition: '"cognito-idp.us-east-1.amazonaws.com/us-east-1_AbCdEf" in claims.amr',
      audience: 'us-east-1:0c5f6e2a-0000-4000-8000-000000000009',
      source: cognitoDocs,
    },
    {
      issuer: 'cognito',
      condition: '"login.acme.app" in claims.amr',
      audience: 'us-east-1:0c5f6e2a-0000-4000-8000-000000000009',
      source: cognitoDocs,
    },
    {
      issuer: 'cognito',
      condition: 'claims.amr.exists(a, a in ["authenticated", "unauthenticated"]) && claims.login == "x"',
      audience: 'us-east-1:0c5f6e2a-0000-4000-8000-000000000009',
    },
    { issuer: 'circleciRoot', condition: 'claims["oidc.circleci.com/vcs-ref"] == "refs/heads/main"' },
    { issuer: 'codefresh', condition: 'claims.scm_ref == "main"' },
    { issuer: 'depot', condition: 'claims.repository == "acme/app"' },
    { issuer: 'modal', condition: 'claims.app_name == "batch"' },
    { issuer: 'codeberg', condition: 'claims.ref == "refs/heads/main"' },
    { issuer: 'publicService', condition: 'claims.email == "alice@acme.example"' },
    { issuer: 'namespace', condition: 'claims.workload_region == "eu"' },
  ],
  'shared-unknown': [
    { issuer: 'own', condition: 'true', shared: null },
    { issuer: 'own', condition: 'claims.team == "ml"', shared: null },
    { issuer: 'enterpriseServer', condition: 'claims.environment == "production"', shared: null },
    { issuer: 'ownGitlab', condition: 'claims.ref_protected == "true"', shared: null },
    { issuer: 'jenkins', condition: 'subject.startsWith("https://jenkins.acme.example/job/")', shared: null },
  ],
  'prefix-open': [
    // The prefix of an organization without its slash.
    { issuer: 'github', condition: 'subject.startsWith("repo:acme")', source: trackr },
    { issuer: 'github', condition: 'claims.sub.startsWith("repo:" + "acme") && claims.ref == "refs/heads/main"' },
    { issuer: 'github', condition: 'claims["repository"].startsWith("acme") && claims.ref == "refs/heads/main"' },
    { issuer: 'github', condition: '["acme", "octo"].exists(o, claims.repository_owner.startsWith(o))' },
    { issuer: 'gitlab', condition: 'claims.project_path.startsWith("acme") && claims.ref_protected == "true"' },
    { issuer: 'buildkite', condition: '!(!subject.startsWith("organization:acme"))' },
    { issuer: 'kubernetes', condition: 'subject.startsWith("system:serviceaccount:prod")' },
    { issuer: 'spire', condition: 'subject.startsWith("spiffe://acme.example")' },
    { issuer: 'vercel', condition: 'subject.startsWith("owner:acme")', source: vercelDocs },
    { issuer: 'humanitec', condition: 'subject.startsWith("acme")' },
    { issuer: 'pulumi', condition: 'subject.startsWith("pulumi:deploy:org:acme")', source: pulumiDocs },
    { issuer: 'gnome', condition: 'claims.project_path.startsWith("acme")' },
    { issuer: 'terraform', condition: 'claims.terraform_full_workspace.startsWith("organization:acme")' },
    {
      issuer: 'terraform',
      condition: 'subject.startsWith("organization:acme") && claims.terraform_run_phase == "apply"',
    },
  ],
  'contains-only': [
    { issuer: 'google', condition: 'claims.email.endsWith(".iam.gserviceaccount.com")' },
    { issuer: 'google', condition: 'claims.email.endsWith("acme.example") && claims.email_verified == true' },
    // Only what stands between two colons, or after the last one, is whole.
    { issuer: 'github', condition: 'subject.contains("repository_owner_id:123:")', source: githubDocs },
    { issuer: 'github', condition: 'subject.contains(":repository_owner_id:123")', source: githubDocs },
    { issuer: 'github', condition: 'subject.endsWith("repository_owner_id:123")', source: githubDocs },
    { issuer: 'github', condition: 'subject.endsWith(":environment:production")', source: githubDocs },
    { issuer: 'github', condition: 'subject.contains("@123/app@456:")', source: githubDocs },
    { issuer: 'github', condition: 'claims.repository.endsWith("/app")' },
    { issuer: 'github', condition: 'subject.contains("acme/app")' },
    { issuer: 'github', condition: 'subject.contains("repo:acme/") && claims.ref == "refs/heads/main"' },
    { issuer: 'gitlab', condition: 'claims.project_path.contains("acme/")' },
    { issuer: 'gitlab', condition: 'subject.endsWith(":ref:main")' },
    { issuer: 'spire', condition: 'subject.startsWith("spiffe:") && subject.endsWith("/ns/prod/sa/app")' },
  ],
  'not-decided': [
    { issuer: 'github', condition: 'claims.repository_owner + claims.repository_id == "acme1"' },
    { issuer: 'gitlab', condition: 'claims.project_id + claims.namespace_id == "2072"' },
    // double() is exact below 2^53 only.
    { issuer: 'google', condition: 'double(claims.sub) == 104444444444444444444.0' },
    { issuer: 'google', condition: 'double(claims.sub) in [104444444444444444444.0]' },
    // Of two pieces, one can be the subject of a stranger.
    { issuer: 'cognito', condition: 'claims.login + ":" + subject == "x:us-east-1:0c5f"' },
  ],
  'not-proven-narrow': [
    { issuer: 'own', condition: 'claims.azp == claims.wanted' },
    { issuer: 'enterpriseServer', condition: 'claims.repository_owner == claims.owner_wanted' },
  ],
  'exclusion-only': [
    { issuer: 'own', condition: 'claims.email_verified == true' },
    { issuer: 'own', condition: 'claims.azp != "legacy"' },
    { issuer: 'own', condition: 'claims.azp == "batch" || !(claims.team in ["a", "b"])' },
    { issuer: 'own', condition: 'has(claims.groups)' },
    { issuer: 'own', condition: 'claims.groups.exists(g, g != "guest")' },
    { issuer: 'own', condition: 'claims.groups.exists(g, true)' },
    { issuer: 'own', condition: 'claims.email_verified == "true" && claims.typ == "Bearer"' },
  ],
  dead: [
    { issuer: 'github', subject: 'repo:acme/*', source: trackr },
    { issuer: 'github', subject: 'my-workload' },
    { issuer: 'github', condition: 'claims.repository_id == 797215326' },
    { issuer: 'github', condition: 'claims.repository == "acme/app" && claims.repository == "acme/lib"' },
    { issuer: 'gitlab', condition: 'claims.project_id == "20" && claims.ref_protected == true', source: gitlabDocs },
    {
      issuer: 'buildkite',
      subject:
        'organization:acme-inc:pipeline:app:ref:refs/heads/main:commit:9f3182061f1e2cca4702c368cbc039b7dc9d4485:step:deploy',
    },
    { issuer: 'own', condition: 'claims.a == "x" && claims.a.startsWith("y")' },
    { issuer: 'own', condition: 'claims.a == "x" && !has(claims.a)' },
    { issuer: 'kubernetes', subject: 'system:serviceaccount:inference:*' },
    { issuer: 'google', condition: 'claims.sub == "104479897743394244856" && claims.email_verified == "true"' },
  ],
  'look-alike': [
    { issuer: 'google', condition: 'claims.hd == "\u0430cme.com" && claims.email_verified == true' },
    { issuer: 'github', subject: 'repo:\u0430cme/app:ref:refs/heads/main' },
  ],
  'unknown-claim': [
    { issuer: 'github', condition: 'claims.repository_id == "797215326" && claims.branch == "main"' },
    { issuer: 'gitlab', condition: 'claims.project_id == "20" && claims.protected == "true"' },
    { issuer: 'terraform', condition: 'claims.terraform_workspace_id == "ws-1" && claims.run_phase == "apply"' },
  ],
  'always-error': [
    { issuer: 'github', condition: 'claims.repository_id == "797215326" && claims.environment != "test"' },
    { issuer: 'github', condition: 'claims.repository_id == "797215326" && !(claims.environment in ["test", "dev"])' },
    { issuer: 'gitlab', condition: 'claims.project_id == "20" && !claims.environment.startsWith("review/")' },
  ],
  'default-audience': [
    { issuer: 'github', subject: 'repo:acme/app:ref:refs/heads/main', audience: 'sts.amazonaws.com' },
    { issuer: 'github', subject: 'repo:acme/app:ref:refs/heads/main', audience: 'https://github.com/acme' },
    { issuer: 'kubernetes', subject: 'system:serviceaccount:ml:batch', audience: 'https://kubernetes.default.svc' },
    { issuer: 'gitlab', condition: 'claims.project_id == "20"', audience: 'https://gitlab.com' },
    { issuer: 'kubernetes', subject: 'system:serviceaccount:ml:batch', audience: 'https://api.anthropic.com' },
    { issuer: 'gitlab', condition: 'claims.project_id == "20"', audience: 'https://api.openai.com/v1' },
  ],
  'attribution-chosen': [
    { issuer: 'github', condition: 'claims.repository_id == "797215326"', attributeTo: 'claims.environment' },
    { issuer: 'gitlab', condition: 'claims.project_id == "20"', attributeTo: 'claims.project_id + "/" + claims.ref' },
    { issuer: 'own', subject: 'batch', attributeTo: 'string(claims.aud)' },
  ],
  'tenant-wide': [
    { issuer: 'github', condition: 'claims.repository_owner_id == "162148032"' },
    { issuer: 'github', condition: 'subject.startsWith("repo:acme/")' },
    { issuer: 'gitlab', condition: '"72" == claims.namespace_id' },
    { issuer: 'bitbucket', condition: 'claims.branchName == "main"' },
    { issuer: 'entra', condition: '"Latchkey.Use" in claims.roles' },
    { issuer: 'jenkins', condition: 'claims.build_number > 1' },
    { issuer: 'google', condition: 'claims.hd == "acme.example"' },
  ],
  'prefix-within': [
    { issuer: 'github', condition: 'subject.startsWith("repository:acme/app")', source: githubDocs },
    { issuer: 'github', condition: 'subject.startsWith("repo:acme/app")', source: githubDocs },
    { issuer: 'gitlab', condition: 'claims.project_path.startsWith("acme/app") && claims.namespace_path == "acme"' },
    { issuer: 'spire', condition: 'subject.startsWith("spiffe://acme.example/ns/prod")' },
    { issuer: 'kubernetes', condition: 'subject.startsWith("system:serviceaccount:ml:batch")' },
  ],
  'prefix-names': [
    { issuer: 'github', condition: 'claims.repository.startsWith("acme/infra-") && claims.ref == "refs/heads/main"' },
    { issuer: 'own', condition: 'subject.startsWith("prod")' },
    { issuer: 'own', condition: 'subject.contains("prod")' },
    { issuer: 'own', condition: 'subject.startsWith("prod") && subject.endsWith("app")' },
    { issuer: 'gitlab', condition: 'claims.project_path.startsWith("acme/infra-") && claims.ref_protected == "true"' },
  ],
  'github-environment-alone': [
    { issuer: 'github', condition: 'claims.environment == "production"', source: githubDocs },
    {
      issuer: 'github',
      condition: 'claims.workflow == "Deploy" && claims.ref == "refs/heads/main"',
      source: githubDocs,
    },
    { issuer: 'github', condition: 'claims.repository_id == "1" || claims.actor == "octocat"' },
    { issuer: 'enterpriseServer', condition: '"refs/heads/main" == claims.ref' },
    { issuer: 'github', subject: 'environment:production' },
    // Any repository can call a public reusable workflow.
    {
      issuer: 'github',
      condition: 'claims.job_workflow_ref.startsWith("acme/infra/.github/workflows/deploy.yml")',
      source: githubDocs,
    },
    {
      issuer: 'github',
      condition: 'claims.job_workflow_ref == "acme/infra/.github/workflows/deploy.yml@refs/heads/main"',
    },
    {
      issuer: 'github',
      subject: 'job_workflow_ref:octo-org/octo-automation/.github/workflows/oidc.yml@refs/heads/main',
      source: githubReusable,
    },
    { issuer: 'github', condition: 'subject.startsWith("job_workflow_ref:octo-org/octo-automation/")' },
    { issuer: 'github', condition: 'claims.base_ref in ["develop", "release"]' },
  ],
  'github-pull-request': [
    { issuer: 'github', subject: 'repo:acme/app:pull_request', source: githubDocs },
    { issuer: 'github', condition: 'subject in ["repo:acme/app:ref:refs/heads/main", "repo:acme/app:pull_request"]' },
    { issuer: 'github', condition: 'claims.repository_id == "1" && claims.event_name in ["push", "pull_request"]' },
    { issuer: 'enterpriseServer', subject: 'repo:acme/app:pull_request' },
    { issuer: 'github', condition: 'claims.repository_id == "1" && subject.endsWith(":pull_request")' },
    { issuer: 'github', condition: 'claims.repository_id == "1" && claims.event_name.startsWith("pull_request")' },
    { issuer: 'github', condition: 'subject.startsWith("repo:acme/app:pull")' },
  ],
  'github-any-ref': [
    { issuer: 'github', condition: 'claims.repository_id == "797215326"' },
    { issuer: 'github', condition: 'subject.startsWith("repo:acme/app:")', source: githubDocs },
    { issuer: 'github', condition: 'claims.repository == "acme/app" && claims.ref.startsWith("refs/heads/")' },
    { issuer: 'github', condition: 'claims.repository_id == "1" && claims.environment.startsWith("prod")' },
  ],
  'github-risky-event': [
    { issuer: 'github', condition: 'claims.repository_id == "1" && claims.event_name == "pull_request_target"' },
    { issuer: 'github', condition: 'claims.repository_id == "1" && claims.event_name in ["push", "workflow_run"]' },
  ],
  'github-reusable': [
    // The reusable workflow without its ref.
    {
      issuer: 'github',
      condition:
        'claims.repository_id == "1" && claims.job_workflow_ref.startsWith("acme/infra/.github/workflows/deploy.yml")',
      source: githubDocs,
    },
    {
      issuer: 'github',
      condition: 'claims.repository_owner == "acme" && claims.job_workflow_ref.startsWith("acme/infra/")',
    },
  ],
  'github-name-only': [
    // Names can be registered again after a rename or deletion.
    { issuer: 'github', subject: 'repo:acme/app:ref:refs/heads/main', source: githubChange },
    { issuer: 'github', condition: 'claims.repository == "acme/app" && claims.ref == "refs/heads/main"' },
    { issuer: 'github', condition: 'claims.repository_id == "1" || claims.repository in ["acme/app", "acme/lib"]' },
  ],
  'github-old-subject': [
    { issuer: 'github', subject: 'repo:acme/app:ref:refs/heads/main', source: githubChange },
    { issuer: 'github', condition: 'subject == "repo:acme/app:environment:production" && claims.repository_id == "1"' },
  ],
  'gitlab-unprotected': [
    { issuer: 'gitlab', condition: 'claims.project_id == "20"', source: gitlabDocs },
    {
      issuer: 'gitlab',
      condition: 'claims.project_path == "acme/app" && claims.ref_type == "branch"',
      source: gitlabDocs,
    },
    { issuer: 'ownGitlab', condition: 'claims.project_id == "20" && claims.environment == "production"' },
  ],
  'gitlab-name-only': [
    { issuer: 'gitlab', subject: 'project_path:acme/app:ref_type:branch:ref:main', source: gitlabDocs },
    { issuer: 'gitlab', condition: 'claims.namespace_path == "acme" && claims.ref_protected == "true"' },
  ],
  'gitlab-subgroups': [
    { issuer: 'gitlab', condition: 'claims.project_path.startsWith("acme/") && claims.ref_protected == "true"' },
    { issuer: 'ownGitlab', condition: 'claims.namespace_path.startsWith("acme/team/")' },
  ],
  'k8s-any-namespace': [
    { issuer: 'kubernetes', condition: 'claims["kubernetes.io"].serviceaccount.name == "runner"' },
    { issuer: 'eks', condition: 'subject.endsWith(":runner")' },
  ],
  'k8s-namespace': [
    { issuer: 'kubernetes', condition: 'claims["kubernetes.io"].namespace == "inference"' },
    { issuer: 'eks', condition: 'subject.startsWith("system:serviceaccount:inference:")' },
  ],
  'k8s-default-account': [
    { issuer: 'eks', condition: 'subject.startsWith("system:serviceaccount:ml:") && subject.endsWith(":default")' },
    { issuer: 'kubernetes', subject: 'system:serviceaccount:inference:default', source: kubernetesDocs },
    {
      issuer: 'eks',
      condition:
        'claims["kubernetes.io"].namespace == "ml" && claims["kubernetes.io"]["serviceaccount"].name == "default"',
    },
  ],
  'k8s-recreated': [
    { issuer: 'kubernetes', subject: 'system:serviceaccount:inference:batch' },
    { issuer: 'eks', condition: 'subject in ["system:serviceaccount:ml:a", "system:serviceaccount:ml:b"]' },
  ],
  'circleci-project': [
    { issuer: 'circleci', condition: 'claims["oidc.circleci.com/vcs-ref"] == "refs/heads/main"' },
    {
      issuer: 'circleci',
      condition: '"58bef0c1-399d-49ca-a5ba-2f4317e4224d" in claims["oidc.circleci.com/context-ids"]',
    },
  ],
  'circleci-fork': [
    {
      issuer: 'circleci',
      condition:
        'claims["oidc.circleci.com/project-id"] == "ecc458d2-fbdc-4d9a-93c4-ac065ed3c3ca" && claims["oidc.circleci.com/vcs-ref"] == "refs/heads/main"',
    },
    {
      issuer: 'circleciRoot',
      condition:
        'claims["oidc.circleci.com/project-id"] == "ecc458d2-fbdc-4d9a-93c4-ac065ed3c3ca" && subject.endsWith("/vcs-ref/refs/heads/main")',
    },
  ],
  'circleci-ssh-rerun': [
    {
      issuer: 'circleci',
      condition: 'claims["oidc.circleci.com/project-id"] == "ecc458d2-fbdc-4d9a-93c4-ac065ed3c3ca"',
    },
    {
      issuer: 'circleci',
      condition:
        'subject.startsWith("org/c9035eb6-6eb2-4c85-8a81-d9ee6a1fa8c2/project/ecc458d2-fbdc-4d9a-93c4-ac065ed3c3ca/")',
    },
  ],
  'buildkite-names': [
    { issuer: 'buildkite', condition: 'claims.organization_slug == "acme-inc" && claims.pipeline_slug == "app"' },
    { issuer: 'buildkite', condition: 'subject.startsWith("organization:acme-inc:pipeline:app:ref:refs/heads/main:")' },
  ],
  'terraform-plan': [
    { issuer: 'terraform', condition: 'claims.terraform_workspace_id == "ws-zb3fKQWxJxzYyQm2"' },
    { issuer: 'terraform', subject: 'organization:acme:project:infra:workspace:prod:run_phase:plan' },
  ],
  'terraform-names': [
    { issuer: 'terraform', subject: 'organization:acme:project:infra:workspace:prod:run_phase:apply' },
    {
      issuer: 'terraform',
      condition: 'claims.terraform_organization_name == "acme" && claims.terraform_run_phase == "apply"',
    },
  ],
  'email-domain': [
    // Everybody can have an address at these domains, or a project with such an account.
    { issuer: 'google', condition: 'claims.email.endsWith("@gmail.com") && claims.email_verified == true' },
    { issuer: 'google', condition: 'claims.email.endsWith("@hotmail.co.uk") && claims.email_verified == true' },
    { issuer: 'google', condition: 'claims.email.endsWith("@PROTON.me") && claims.email_verified' },
    { issuer: 'google', condition: 'claims.email.endsWith("@developer.gserviceaccount.com")', source: serviceAccounts },
    { issuer: 'google', condition: 'claims.email.endsWith("@appspot.gserviceaccount.com")', source: serviceAccounts },
    { issuer: 'google', condition: 'claims.email.endsWith("@cloudbuild.gserviceaccount.com")' },
    { issuer: 'google', condition: 'claims.email.endsWith("@gcp-sa-pubsub.iam.gserviceaccount.com")' },
    { issuer: 'sigstore', condition: 'claims.email.endsWith("@outlook.com")', source: fulcioDocs },
    { issuer: 'google', condition: 'claims.email.endsWith("@usa.com") && claims.email_verified == true' },
    { issuer: 'google', condition: 'claims.email.endsWith("@yopmail.com") && claims.email_verified == true' },
    { issuer: 'google', condition: 'claims.email.endsWith("@abv.bg") && claims.email_verified == true' },
    { issuer: 'google', condition: 'claims.email.endsWith("@ieee.org") && claims.email_verified == true' },
    { issuer: 'google', condition: 'claims.email.endsWith("@acme.example") && claims.email_verified == true' },
    {
      issuer: 'google',
      condition: 'claims.email.endsWith("@project.gserviceaccount.com") && claims.email_verified == true',
    },
    {
      issuer: 'google',
      condition: 'claims.email.endsWith("@dataproc-accounts.iam.gserviceaccount.com") && claims.email_verified == true',
    },
    {
      issuer: 'google',
      condition: 'claims.email.endsWith("@cloud-tpu.iam.gserviceaccount.com") && claims.email_verified == true',
    },
    {
      issuer: 'google',
      condition: 'claims.email.endsWith("@gcp-gae-service.iam.gserviceaccount.com") && claims.email_verified == true',
    },
    {
      issuer: 'google',
      condition:
        'claims.email.endsWith("@gae-api-prod.google.com.iam.gserviceaccount.com") && claims.email_verified == true',
    },
    { issuer: 'sigstore', condition: 'claims.email.endsWith("@simplelogin.com") && claims.email_verified == true' },
    { issuer: 'google', condition: '["usa.com", "acme.example"].exists(d, claims.email.endsWith("@" + d))' },
  ],
  'google-email': [
    { issuer: 'google', condition: 'claims.email == "alice@acme.example"' },
    { issuer: 'google', condition: 'claims.email.endsWith("@acme.example") && claims.hd == "acme.example"' },
  ],
  'google-email-only': [
    { issuer: 'google', condition: 'claims.email == "a@acme.example" && claims.email_verified == true' },
    { issuer: 'google', condition: 'claims.email_verified && claims.email in ["a@acme.example", "b@acme.example"]' },
  ],
  'spiffe-domain': [
    { issuer: 'spire', condition: 'subject.startsWith("spiffe://acme.example/")' },
    { issuer: 'spire', condition: 'claims.sub.startsWith("spiffe://acme.example/") && subject.endsWith("/sa/app")' },
  ],
  'long-token': [
    { issuer: 'kubernetes', subject: 'system:serviceaccount:ml:batch', maxTokenAge: null },
    { issuer: 'gitlab', condition: 'claims.project_id == "20"', maxTokenAge: null },
  ],
}
