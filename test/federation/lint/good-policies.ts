// Policies that must save without an exception: conditions that vendors recommend, translated, and those of the manual.
import type { PolicyRow } from './linting.ts'

const github = 'https://docs.github.com/en/actions/reference/security/oidc'
const githubReusable =
  'https://docs.github.com/en/actions/how-tos/secure-your-work/security-harden-deployments/oidc-with-reusable-workflows'
const githubAws = 'https://docs.github.com/en/actions/how-tos/secure-your-work/security-harden-deployments/oidc-in-aws'
const googleCloud = 'https://docs.cloud.google.com/iam/docs/workload-identity-federation-with-deployment-pipelines'
const entra = 'https://learn.microsoft.com/entra/workload-id/workload-identities-github-immutable-subjects'
const gitlab = 'https://docs.gitlab.com/ci/cloud_services/aws/'
const gitlabVault = 'https://docs.gitlab.com/ci/secrets/hashicorp_vault/'
const kubernetes = 'https://docs.aws.amazon.com/eks/latest/userguide/associate-service-account-role.html'
const circleci = 'https://circleci.com/docs/guides/permissions-authentication/openid-connect-tokens/'
const buildkite = 'https://buildkite.com/docs/apis/workload-identity-federation/buildkite-agents'
const terraform = 'https://developer.hashicorp.com/terraform/cloud-docs/dynamic-provider-credentials/aws-configuration'
const terraformIds = 'https://docs.dodopayments.com/developer-resources/workload-identity/providers/terraform-cloud'
const bitbucket = 'https://ui.shadcn.com/oidc/docs/providers/bitbucket'
const jenkins = 'https://plugins.jenkins.io/oidc-provider'
const googleToken = 'https://ui.shadcn.com/oidc/docs/providers/google'
const entraToken = 'https://ui.shadcn.com/oidc/docs/providers/azure'
const spire = 'https://spiffe.io/docs/latest/keyless/oidc-federation-aws/'
const githubClaims = 'https://token.actions.githubusercontent.com/.well-known/openid-configuration'
const gitlabPolicies = 'https://gitlab.com/gitlab-org/gitlab/-/issues/459001'
const serviceAccounts = 'https://cloud.google.com/iam/docs/service-account-types'
const buildkiteCli = 'https://buildkite.com/docs/agent/v3/cli-oidc'
const buildkiteSubject = 'https://github.com/buildkite/agent/pull/3784'
const terraformStacks = 'https://developer.hashicorp.com/terraform/cloud-docs/stacks/deploy/authenticate'
const vercel = 'https://vercel.com/docs/oidc/reference'
const pulumi = 'https://www.pulumi.com/docs/administration/access-identity/oidc-provider/'
const pulumiIds = 'https://www.pulumi.com/docs/esc/guides/configuring-oidc/custom-audience/'
const depot = 'https://depot.dev/docs/ci/oidc'
const modal = 'https://modal.com/docs/guide/oidc-integration'
const cognito = 'https://docs.aws.amazon.com/cognito/latest/developerguide/role-trust-and-permissions.html'
const humanitec = 'https://github.com/humanitec-tf-modules/orchestrator-cloud-account-gcp-identity'
const forgejo = 'https://forgejo.org/docs/latest/user/actions/security-openid-connect/'
const manual = 'the manual of Latchkey'

const circleProject = 'claims["oidc.circleci.com/project-id"] == "ecc458d2-fbdc-4d9a-93c4-ac065ed3c3ca"'

export const goodPolicies: PolicyRow[] = [
  { issuer: 'github', subject: 'repo:octo-org/octo-repo:environment:Production', source: github },
  { issuer: 'github', subject: 'repo:octo-org/octo-repo:ref:refs/heads/demo-branch', source: github },
  { issuer: 'github', subject: 'repo:octo-org/octo-repo:ref:refs/tags/demo-tag', source: github },
  { issuer: 'github', subject: 'repo:octocat@123456/my-repo@456789:ref:refs/heads/main', source: github },
  { issuer: 'github', subject: 'repo:contoso@5544123/payments-api@821093847:ref:refs/heads/main', source: entra },
  { issuer: 'github', subject: 'repository_owner_id:1234567', source: github },
  { issuer: 'github', subject: 'repository_owner:octo-org:repository_visibility:private', source: github },
  {
    issuer: 'github',
    subject:
      'repo:octo-org/octo-repo:environment:prod:job_workflow_ref:octo-org/octo-automation/.github/workflows/oidc.yml@refs/heads/main',
    source: github,
  },
  { issuer: 'github', condition: 'subject.startsWith("repo:octo-org/octo-repo:")', source: githubAws },
  {
    issuer: 'github',
    condition: 'subject.startsWith("repo:octo-org/octo-repo:ref:refs/heads/octo-branch")',
    source: githubAws,
  },
  { issuer: 'github', condition: 'subject.startsWith("repo:octo-org/")', source: githubAws },
  { issuer: 'github', condition: 'claims.repository_owner == "octo-org"', source: googleCloud },
  {
    issuer: 'github',
    condition: 'claims.repository_owner_id == "123456789" && claims.repository_id == "1234"',
    source: googleCloud,
  },
  {
    issuer: 'github',
    condition:
      'claims.repository == "octo-org/octo-repo" && claims.ref == "refs/heads/main" && claims.ref_type == "branch"',
    source: googleCloud,
  },
  {
    issuer: 'github',
    condition:
      'claims.job_workflow_ref == "octo-org/octo-automation/.github/workflows/oidc.yml@refs/heads/main" && claims.repository_owner == "octo-org"',
    source: githubReusable,
  },
  { issuer: 'github', subject: 'repo:acme@162148032/app@797215326:ref:refs/heads/main', source: manual },
  { issuer: 'github', subject: 'repo:acme/app:ref:refs/heads/main', source: manual },
  {
    issuer: 'github',
    condition: 'claims.repository_id == "797215326" && claims.ref == "refs/heads/main"',
    source: manual,
  },
  {
    issuer: 'github',
    condition: 'claims.repository == "acme/app" && claims.environment in ["staging", "production"]',
    source: manual,
  },
  { issuer: 'github', condition: 'claims.repository_owner_id == "162148032"', source: manual },
  { issuer: 'github', condition: 'claims.repository_id in ["1", "2", "3"] && claims.environment == "production"' },
  {
    issuer: 'github',
    condition: '(claims.repository_id == "1" || claims.repository_id == "2") && claims.ref.startsWith("refs/tags/v")',
  },
  {
    issuer: 'github',
    condition: '["1", "2"].exists(id, claims.repository_id == id) && claims.ref_protected == "true"',
  },
  {
    issuer: 'github',
    condition:
      'claims.repository_id == "1" ? claims.ref == "refs/heads/main" : claims.repository_id == "2" && claims.environment == "prod"',
  },
  {
    issuer: 'github',
    condition: '!(claims.repository_id != "1" || claims.event_name == "pull_request") && claims.sha == "0f0e"',
  },
  {
    issuer: 'github',
    subject: 'repo:acme/app:ref:refs/heads/main',
    condition: 'claims.runner_environment == "self-hosted"',
  },
  { issuer: 'github', subject: 'repo:acme/app:ref:refs/heads/main', condition: 'claims.repository_owner.size() == 4' },
  {
    issuer: 'github',
    condition: '!has(claims.environment) && claims.repository_id == "1" && claims.ref == "refs/heads/main"',
  },
  {
    issuer: 'github',
    condition: 'claims.enterprise_id == "42" && claims.repository.startsWith("acme/") && claims.environment == "prod"',
  },
  // Between two colons, or after the last one, stands no text that a stranger chose: GitHub writes %3A for those.
  { issuer: 'github', condition: 'subject.contains(":repository_owner_id:123:")', source: github },
  { issuer: 'github', condition: 'subject.endsWith(":repository_owner_id:123")', source: github },
  { issuer: 'github', condition: 'subject.startsWith("repository_owner_id:123:")', source: github },
  {
    issuer: 'github',
    condition: 'subject.endsWith(":repository_id:456") && claims.event_name == "push"',
    source: github,
  },
  { issuer: 'github', subject: 'environment:prod:repo:octo-org/octo-repo', source: github },
  { issuer: 'github', condition: 'subject.startsWith("repository:octo-org/")', source: github },
  { issuer: 'github', condition: 'subject.startsWith("workflow_ref:octo-org/octo-repo/")', source: github },
  { issuer: 'github', condition: 'claims.environment_node_id == "EN_kwDOAA"', source: githubClaims },
  { issuer: 'github', condition: 'claims.repository_node_id == "R_kgDOAA" && claims.ref == "refs/heads/main"' },
  { issuer: 'github', condition: 'claims.repository_owner_node_id in ["O_kgDOAA", "O_kgDOAB"]' },
  {
    issuer: 'github',
    condition:
      'claims.job_workflow_ref == "octo-org/octo-automation/.github/workflows/oidc.yml@refs/heads/main" && claims.repository_owner_id == "123456789"',
    source: githubReusable,
  },
  { issuer: 'enterpriseServer', subject: 'repo:acme/app:ref:refs/heads/main' },
  { issuer: 'enterpriseServer', condition: 'claims.repository_owner == "acme" && claims.environment == "production"' },
  { issuer: 'gitlab', subject: 'project_path:mygroup/myproject:ref_type:branch:ref:main', source: gitlab },
  { issuer: 'gitlab', condition: 'subject.startsWith("project_path:mygroup/")', source: gitlab },
  {
    issuer: 'gitlab',
    condition: 'claims.project_id == "22" && claims.ref == "master" && claims.ref_type == "branch"',
    source: gitlabVault,
  },
  {
    issuer: 'gitlab',
    condition:
      'claims.project_id == "22" && claims.ref_protected == "true" && claims.ref_type == "branch" && claims.ref.startsWith("auto-deploy-")',
    source: gitlabVault,
  },
  {
    issuer: 'gitlab',
    condition:
      'claims.namespace_id == "12" && claims.environment == "production" && claims.environment_protected == "true"',
    source: gitlabVault,
  },
  { issuer: 'gitlab', subject: 'project_path:acme/app:ref_type:branch:ref:main', source: manual },
  { issuer: 'gitlab', condition: 'claims.project_path == "acme/app" && claims.ref_path == "refs/heads/main"' },
  { issuer: 'gitlab', condition: 'claims.job_project_id == "22" && claims.project_id == "22" && claims.ref == "main"' },
  { issuer: 'gitlab', condition: 'claims.namespace_id == "12" && claims.job_namespace_path == "acme"' },
  { issuer: 'gitlab', condition: 'claims.runner_id == 4242 && claims.runner_environment == "self-hosted"' },
  {
    issuer: 'gitlab',
    condition:
      'claims.job_policy_ref_uri == "gitlab.com/acme/policies//.gitlab/security-policies/policy.yml@refs/heads/main"',
    source: gitlabPolicies,
  },
  { issuer: 'gnome', condition: 'claims.project_id == "22" && claims.ref_protected == "true"' },
  { issuer: 'salsa', subject: 'project_path:acme-team/app:ref_type:branch:ref:main' },
  { issuer: 'ownGitlab', condition: 'claims.ref_protected == "true"' },
  { issuer: 'ownGitlab', condition: 'claims.project_id == "22" && claims.ref_protected == "true"' },
  { issuer: 'google', subject: '104479897743394244856', source: googleToken },
  {
    issuer: 'google',
    condition: 'claims.email == "bot@acme.iam.gserviceaccount.com" && claims.sub == "117"',
    source: googleToken,
  },
  {
    issuer: 'google',
    condition: 'claims.email == "bot@acme.iam.gserviceaccount.com" && claims.email_verified == true',
  },
  // Only Google creates service accounts, so nobody signs up with their addresses.
  { issuer: 'google', condition: 'claims.email == "bot@acme.iam.gserviceaccount.com"', source: serviceAccounts },
  {
    issuer: 'google',
    condition: 'claims.email in ["a@acme.iam.gserviceaccount.com", "acme@appspot.gserviceaccount.com"]',
  },
  { issuer: 'google', condition: 'claims.email == "739419398126-compute@developer.gserviceaccount.com"' },
  { issuer: 'google', condition: 'claims.email.endsWith("@acme.iam.gserviceaccount.com")', source: serviceAccounts },
  {
    issuer: 'google',
    condition: 'claims.email.endsWith("@acme.example") && claims.email_verified && claims.hd == "acme.example"',
  },
  { issuer: 'google', condition: 'claims.email.endsWith("@cloud-acme.iam.gserviceaccount.com")' },
  { issuer: 'google', condition: 'claims.email.endsWith("@app.acme.example.iam.gserviceaccount.com")' },
  {
    issuer: 'google',
    condition: 'claims.google.compute_engine.project_number == 739419398126 && claims.sub == "104479897743394244856"',
  },
  { issuer: 'google', condition: 'claims.hd == "acme.example" && claims.email_verified == true' },
  { issuer: 'entra', condition: 'claims.oid == "aaaaaaaa-0000-1111-2222-bbbbbbbbbbbb"', source: entraToken },
  {
    issuer: 'entra',
    condition:
      'claims.azp == "cccccccc-0000-1111-2222-dddddddddddd" && claims.tid == "72f988bf-86f1-41af-91ab-2d7cd011db47"',
    source: entraToken,
  },
  {
    issuer: 'entraCommon',
    condition:
      'claims.tid == "72f988bf-86f1-41af-91ab-2d7cd011db47" && claims.oid == "aaaaaaaa-0000-1111-2222-bbbbbbbbbbbb"',
    source: entraToken,
  },
  { issuer: 'kubernetes', subject: 'system:serviceaccount:default:my-service-account', source: kubernetes },
  { issuer: 'eks', condition: 'subject.startsWith("system:serviceaccount:my-namespace:")', source: kubernetes },
  {
    issuer: 'kubernetes',
    condition: 'claims["kubernetes.io"].serviceaccount.uid == "a087d5a0-e1dd-43ec-93ac-f13d89cd13af"',
  },
  {
    issuer: 'kubernetes',
    condition: 'claims["kubernetes.io"].namespace == "ml" && claims["kubernetes.io"].serviceaccount.name in ["a", "b"]',
  },
  { issuer: 'own', subject: 'system:serviceaccount:inference:summarizer', source: manual },
  { issuer: 'circleci', condition: circleProject, source: circleci },
  {
    issuer: 'circleci',
    condition: `${circleProject} && claims["oidc.circleci.com/vcs-origin"] == "github.com/octo-org/octo-repo" && claims["oidc.circleci.com/vcs-ref"] == "refs/heads/main" && claims["oidc.circleci.com/ssh-rerun"] == false`,
    source: manual,
  },
  {
    issuer: 'circleci',
    condition: `"58bef0c1-399d-49ca-a5ba-2f4317e4224d" in claims["oidc.circleci.com/context-ids"] && ${circleProject}`,
    source: circleci,
  },
  {
    issuer: 'buildkite',
    condition:
      'claims.organization_id == "01865d2b-1b1b-4a5b-9d5a-2b7d5d6f7a8b" && subject.startsWith("organization:acme-inc:pipeline:app:ref:refs/heads/main:commit:")',
    source: buildkite,
  },
  {
    issuer: 'buildkite',
    condition:
      'claims.organization_slug == "acme-inc" && claims.pipeline_slug == "super-duper-app" && claims.build_branch == "main"',
    source: manual,
  },
  {
    issuer: 'buildkite',
    condition: 'claims.pipeline_id == "01865d2b-1b1b-4a5b-9d5a-2b7d5d6f7a8b" && claims.step_key == "deploy"',
  },
  {
    issuer: 'buildkite',
    condition: 'claims.cluster_id == "0184990a-4782-42b5-afc1-16715b10b8ff"',
    source: buildkiteCli,
  },
  { issuer: 'buildkite', condition: 'claims.queue_id == "0184990a-4782-42b5-afc1-16715b10b8ff"', source: buildkiteCli },
  { issuer: 'buildkite', condition: 'claims.agent_id == "0184990a-4782-42b5-afc1-16715b10b8ff"', source: buildkiteCli },
  { issuer: 'buildkite', subject: '01865d2b-1b1b-4a5b-9d5a-2b7d5d6f7a8b', source: buildkiteSubject },
  {
    issuer: 'terraform',
    condition:
      'claims.terraform_full_workspace == "organization:acme:project:infra:workspace:prod" && claims.terraform_run_phase == "apply"',
    source: terraform,
  },
  {
    issuer: 'terraform',
    condition: 'claims.terraform_full_workspace.startsWith("organization:acme:project:infra:workspace:")',
    source: terraform,
  },
  {
    issuer: 'terraform',
    condition: 'claims.terraform_stack_id == "st-1" && claims.terraform_operation == "apply"',
    source: terraformStacks,
  },
  {
    issuer: 'terraform',
    subject: 'organization:acme:project:infra:stack:network:deployment:production:operation:apply',
    source: terraformStacks,
  },
  {
    issuer: 'terraform',
    subject: 'organization:my-org:project:my-project:workspace:my-workspace:run_phase:apply',
    source: terraform,
  },
  {
    issuer: 'terraform',
    condition: 'subject.startsWith("organization:my-org:project:my-project:workspace:my-workspace:run_phase:")',
    source: terraform,
  },
  {
    issuer: 'terraform',
    condition:
      'claims.terraform_organization_id == "org-1" && claims.terraform_workspace_id == "ws-1" && claims.terraform_run_phase == "apply"',
    source: terraformIds,
  },
  {
    issuer: 'bitbucket',
    condition: 'claims.repositoryUuid == "{9a8b}"',
    audience: 'ari:cloud:bitbucket::workspace/123',
    source: bitbucket,
  },
  { issuer: 'bitbucket', condition: 'subject.startsWith("{9a8b0000-0000-4000-8000-000000000000}:")' },
  { issuer: 'jenkins', subject: 'https://jenkins.acme.example/job/deploy/job/app/', source: jenkins },
  { issuer: 'jenkins', condition: 'subject.startsWith("https://jenkins.acme.example/job/deploy/")', source: jenkins },
  { issuer: 'spire', subject: 'spiffe://example.org/ns/inference/sa/summarizer', source: manual },
  { issuer: 'spire', subject: 'spiffe://example.org/myservice', source: spire },
  { issuer: 'spire', condition: 'subject.startsWith("spiffe://example.org/ns/prod/")' },
  { issuer: 'spire', condition: 'subject.startsWith("spiffe://example.org/")', source: spire },
  { issuer: 'vercel', subject: 'owner:acme:project:app:environment:production', source: vercel },
  { issuer: 'vercel', condition: 'claims.owner_id == "team_1" && claims.environment == "production"', source: vercel },
  { issuer: 'vercel', condition: 'claims.project_id in ["prj_1", "prj_2"]', source: vercel },
  { issuer: 'vercelTeam', condition: 'claims.environment == "production"', source: vercel },
  { issuer: 'pulumi', subject: 'pulumi:environments:org:acme:env:infra/prod', source: pulumi },
  { issuer: 'pulumi', condition: 'subject.startsWith("pulumi:deploy:org:acme:project:infra:")', source: pulumi },
  {
    issuer: 'pulumi',
    subject: 'pulumi:environments:pulumi.organization.login:acme:currentEnvironment.name:infra/prod',
    source: pulumi,
  },
  {
    issuer: 'pulumiIds',
    subject: 'pulumi:org:0c5f6e2a-0000-4000-8000-000000000001:env:0c5f6e2a-0000-4000-8000-000000000002',
    source: pulumiIds,
  },
  { issuer: 'pulumiIds', condition: 'claims["https://pulumi.com/org_id"] == "0c5f6e2a"', source: pulumiIds },
  { issuer: 'sigstore', condition: 'claims.email == "release@acme.example" && claims.email_verified == true' },
  {
    issuer: 'sigstore',
    condition:
      'claims.federated_claims.user_id == "583231" && claims.federated_claims.connector_id == "https://github.com/login/oauth"',
  },
  { issuer: 'sigstore', condition: 'claims.email in ["a@acme.example", "b@acme.example"]' },
  {
    issuer: 'cognito',
    condition: '"arn:aws:iam::123456789012:oidc-provider/idp.acme.example" in claims.amr',
    audience: 'us-east-1:0c5f6e2a-0000-4000-8000-000000000009',
    source: cognito,
  },
  { issuer: 'cognito', subject: 'us-east-1:0c5f6e2a-0000-4000-8000-000000000001' },
  { issuer: 'circleciRoot', condition: circleProject, source: circleci },
  {
    issuer: 'circleciRoot',
    condition: 'claims["oidc.circleci.com/org-id"] == "c9035eb6-6eb2-4c85-8a81-d9ee6a1fa8c2"',
    source: circleci,
  },
  { issuer: 'codefresh', condition: 'claims.account_id == "628a80b6" && claims.pipeline_id == "65e5a53e"' },
  { issuer: 'codefresh', condition: 'subject.startsWith("account:628a80b6:pipeline:65e5a53e:")' },
  { issuer: 'depot', condition: 'claims.org_id == "pcnr2v598s" && claims.repository == "acme/app"', source: depot },
  {
    issuer: 'depot',
    condition:
      'subject.startsWith("spiffe://identity.depot.dev/org/pcnr2v598s/ci/github/acme/app/ref/refs/heads/main/")',
    source: depot,
  },
  { issuer: 'modal', condition: 'subject.startsWith("modal:workspace_id:ac-1:environment_name:main:")', source: modal },
  { issuer: 'modal', condition: 'claims.workspace_id == "ac-1" && claims.app_name == "batch"', source: modal },
  { issuer: 'codeberg', subject: 'repo:acme-9/app-84:ref:refs/heads/main', source: forgejo },
  { issuer: 'codeberg', condition: 'claims.repository == "acme/app" && claims.ref == "refs/heads/main"' },
  { issuer: 'publicService', subject: 'e3f5a1b2c3d4/0a1b2c3d4e5f' },
  { issuer: 'humanitec', condition: 'subject.startsWith("my-org/")', source: humanitec },
  { issuer: 'humanitec', subject: 'my-org/my-cloud-account', source: humanitec },
  {
    issuer: 'namespace',
    condition: 'claims.tenant_id == "tenant_1"',
    source: 'https://namespace.so/docs/federation/aws',
  },
  { issuer: 'own', condition: 'claims.azp == "batch" && "inference" in claims.realm_access.roles', source: manual },
  { issuer: 'own', condition: '(" " + claims.scope + " ").contains(" llm ")', source: manual },
  { issuer: 'own', subject: 'my-workload', source: manual },
  { issuer: 'own', subject: 'svc-batch', scope: 'inference', source: manual },
  {
    issuer: 'own',
    condition: 'claims.environment == "production" && audience.exists(one, one.startsWith("https://llm"))',
  },
  { issuer: 'own', condition: 'claims.groups.exists(g, g == "ml") && token_type == "access"' },
]

/** Of these, the ones about which nothing at all is found. */
export const spotlessConditions = [
  'claims.repository_id == "797215326" && claims.ref == "refs/heads/main"',
  'claims.repository_id in ["1", "2", "3"] && claims.environment == "production"',
  '["1", "2"].exists(id, claims.repository_id == id) && claims.ref_protected == "true"',
  'claims.project_id == "22" && claims.ref == "master" && claims.ref_type == "branch"',
  'claims.terraform_organization_id == "org-1" && claims.terraform_workspace_id == "ws-1" && claims.terraform_run_phase == "apply"',
  'claims.azp == "batch" && "inference" in claims.realm_access.roles',
  'claims.oid == "aaaaaaaa-0000-1111-2222-bbbbbbbbbbbb"',
  'claims.pipeline_id == "01865d2b-1b1b-4a5b-9d5a-2b7d5d6f7a8b" && claims.step_key == "deploy"',
]
