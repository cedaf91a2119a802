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
  {
    issuer: 'github',
    subject: 'job_workflow_ref:octo-org/octo-automation/.github/workflows/oidc.yml@refs/heads/main',
    source: githubReusable,
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
