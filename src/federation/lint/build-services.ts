// Buildkite, CircleCI, HCP Terraform, Bitbucket Pipelines and Jenkins (sources: the documentation of each).
import { type IssuerKind, isExactly, nothing } from './issuer-kind.ts'

export const buildkite: IssuerKind = {
  id: 'buildkite',
  title: 'Buildkite',
  matches: (issuerUrl) => /^https:\/\/agent\.buildkite\.com\/?$/.test(issuerUrl),
  isShared: () => true,
  levels: [
    {
      pins: [
        { claim: 'organization_id', immutable: true },
        { claim: 'pipeline_id', immutable: true },
        { claim: 'organization_slug' },
        { claim: 'sub', value: /^organization:[^:*]+:/, prefix: /^organization:[^:]+:/, open: /^organization:./ },
      ],
    },
    {
      pins: [
        { claim: 'pipeline_id', immutable: true },
        { claim: 'pipeline_slug' },
        { claim: 'sub', prefix: /^organization:[^:]+:pipeline:[^:]+:/, open: /^organization:[^:]+:pipeline:./ },
      ],
    },
  ],
  wideRule: 'tenant-wide',
  namesRule: 'buildkite-names',
  checks: [],
  stranger: {
    sub: 'organization:mallory:pipeline:lab:ref:refs/heads/patch-1:commit:0f0e0d0c0b0a09080706050403020100fedcba98:step:ask',
    organization_slug: 'mallory',
    pipeline_slug: 'lab',
    build_number: 1,
    build_branch: 'patch-1',
    build_tag: null,
    build_commit: '0f0e0d0c0b0a09080706050403020100fedcba98',
    build_source: 'webhook',
    step_key: 'ask',
    job_id: '0184990a-477b-4fa8-9968-496074483cee',
    agent_id: '0184990a-4782-42b5-afc1-16715b10b8ff',
    runner_environment: 'buildkite-hosted',
  },
  // Each subject contains a commit and a step.
  subjects: nothing,
  sometimes: ['organization_id', 'pipeline_id', 'cluster_id', 'cluster_name', 'queue_id', 'queue_key', 'build_id'],
  alsoKnown: /^agent_tag:|^https:\/\/aws\.amazon\.com\//,
  cohere: (claims, isFixed) => {
    const { organization_slug, pipeline_slug, build_branch, build_commit, step_key } = claims
    if (!isFixed('sub'))
      claims.sub = `organization:${organization_slug}:pipeline:${pipeline_slug}:ref:refs/heads/${build_branch}:commit:${build_commit}:step:${step_key}`
  },
  defaultAudience: /^https:\/\/buildkite\.com\/|^sts\.amazonaws\.com$/,
}

const circleSubject = /^org\/[^/]+\/project\/[^/]+\//
const sshRerun = 'oidc.circleci.com/ssh-rerun'
export const circleci: IssuerKind = {
  id: 'circleci',
  title: 'CircleCI',
  matches: (issuerUrl) => /^https:\/\/oidc\.circleci\.com\/org\//.test(issuerUrl),
  isShared: () => false,
  levels: [
    {
      pins: [
        { claim: 'oidc.circleci.com/project-id', immutable: true },
        { claim: 'sub', value: circleSubject, prefix: circleSubject, open: /^org\/[^/]+\/project\/./ },
      ],
    },
  ],
  wideRule: 'circleci-project',
  checks: [{ rule: 'circleci-ssh-rerun', applies: (facts) => !isExactly(facts, sshRerun, /^false$/) }],
  checkedClaims: [sshRerun],
  stranger: {
    sub: 'org/c9035eb6-6eb2-4c85-8a81-d9ee6a1fa8c2/project/90000000-0000-4000-8000-000000000001/user/90000000-0000-4000-8000-000000000003/vcs-origin/github.com/mallory/lab/vcs-ref/refs/heads/patch-1',
    'oidc.circleci.com/context-ids': [],
    'oidc.circleci.com/job-id': '1f2e3d4c-5b6a-4978-8695-a4b3c2d1e0f9',
    'oidc.circleci.com/org-id': 'c9035eb6-6eb2-4c85-8a81-d9ee6a1fa8c2',
    'oidc.circleci.com/pipeline-definition-id': '961ae4b1-070b-4134-ae64-1328a3ae3862',
    'oidc.circleci.com/pipeline-id': '9f8e7d6c-5b4a-4c3d-8e2f-1a0b9c8d7e6f',
    'oidc.circleci.com/project-id': '90000000-0000-4000-8000-000000000001',
    'oidc.circleci.com/ssh-rerun': true,
    'oidc.circleci.com/vcs-origin': 'github.com/mallory/lab',
    'oidc.circleci.com/vcs-ref': 'refs/heads/patch-1',
    'oidc.circleci.com/workflow-id': '2b3c4d5e-6f7a-4b8c-9d0e-1f2a3b4c5d6e',
  },
  sometimes: [],
  alsoKnown: /^oidc\.circleci\.com\//,
}

const terraformSubject = /^organization:[^:]+:project:[^:]+:workspace:[^:]+:/
export const terraform: IssuerKind = {
  id: 'terraform',
  title: 'HCP Terraform',
  matches: (issuerUrl, subjects) =>
    /^https:\/\/app(?:\.eu)?\.terraform\.io\/?$/.test(issuerUrl) ||
    subjects.some((text) => /^organization:[^:]+:project:/.test(text)),
  isShared: (issuerUrl) => /^https:\/\/app(?:\.eu)?\.terraform\.io\/?$/.test(issuerUrl) || undefined,
  levels: [
    {
      pins: [
        { claim: 'terraform_organization_id', immutable: true },
        { claim: 'terraform_project_id', immutable: true },
        { claim: 'terraform_workspace_id', immutable: true },
        { claim: 'terraform_organization_name' },
        { claim: 'sub', value: /^organization:[^:*]+:/, prefix: /^organization:[^:]+:/, open: /^organization:./ },
      ],
    },
    {
      pins: [
        { claim: 'terraform_project_id', immutable: true },
        { claim: 'terraform_workspace_id', immutable: true },
        { claim: 'terraform_workspace_name' },
        { claim: 'terraform_project_name' },
        {
          claim: 'sub',
          value: terraformSubject,
          prefix: terraformSubject,
          open: /^organization:[^:]+:project:[^:]+:workspace:./,
        },
      ],
    },
  ],
  wideRule: 'tenant-wide',
  namesRule: 'terraform-names',
  checks: [
    {
      rule: 'terraform-plan',
      applies: (facts) =>
        !isExactly(facts, 'terraform_run_phase', /^apply$/) && !isExactly(facts, 'sub', /:run_phase:apply$/),
    },
  ],
  checkedClaims: ['terraform_run_phase'],
  stranger: {
    sub: 'organization:mallory:project:lab:workspace:lab:run_phase:plan',
    terraform_run_phase: 'plan',
    terraform_workspace_id: 'ws-mallory000000001',
    terraform_workspace_name: 'lab',
    terraform_organization_id: 'org-mallory00000002',
    terraform_organization_name: 'mallory',
    terraform_project_id: 'prj-mallory00000003',
    terraform_project_name: 'lab',
    terraform_run_id: 'run-mallory00000004',
    terraform_full_workspace: 'organization:mallory:project:lab:workspace:lab',
  },
  subjects: /^organization:[^:*]+:project:[^:*]+:workspace:[^:*]+:run_phase:(?:plan|apply)$/,
  sometimes: ['terraform_stack_id', 'terraform_stack_name', 'terraform_operation'],
  cohere: (claims, isFixed) => {
    const { terraform_organization_name: organization, terraform_workspace_name: workspace } = claims
    const full = `organization:${organization}:project:${claims.terraform_project_name}:workspace:${workspace}`
    if (!isFixed('terraform_full_workspace')) claims.terraform_full_workspace = full
    if (!isFixed('sub')) claims.sub = `${full}:run_phase:${claims.terraform_run_phase}`
  },
  defaultAudience: /^aws\.workload\.identity$|^api:\/\/AzureADTokenExchange$|^hcp\.workload\.identity$/,
  hasLongTokens: true,
}

export const bitbucket: IssuerKind = {
  id: 'bitbucket',
  title: 'Bitbucket Pipelines',
  matches: (issuerUrl) => /^https:\/\/api\.bitbucket\.org\/2\.0\/workspaces\//.test(issuerUrl),
  // The URL contains the workspace.
  isShared: () => false,
  levels: [
    {
      pins: [
        { claim: 'repositoryUuid', immutable: true },
        { claim: 'sub', value: /^\{[^}]+\}:/, prefix: /^\{[^}]+\}:/ },
      ],
    },
  ],
  wideRule: 'tenant-wide',
  checks: [],
  stranger: {
    sub: '{90000000-0000-4000-8000-000000000001}:{90000000-0000-4000-8000-000000000004}',
    workspaceUuid: '{90000000-0000-4000-8000-000000000002}',
    repositoryUuid: '{90000000-0000-4000-8000-000000000001}',
    pipelineUuid: '{90000000-0000-4000-8000-000000000005}',
    stepUuid: '{90000000-0000-4000-8000-000000000004}',
    branchName: 'patch-1',
  },
  // Each subject contains the step.
  subjects: nothing,
  sometimes: ['deploymentEnvironmentUuid', 'pipelineRunUuid', 'pullRequestId', 'tagName'],
  defaultAudience: /^ari:cloud:bitbucket::workspace\//,
}

export const jenkins: IssuerKind = {
  id: 'jenkins',
  title: 'Jenkins',
  matches: (issuerUrl) =>
    /^https:\/\/(?:[^/]*\bjenkins\b[^/]*(?:\/.*)?|[^/]+(?:\/.*)?\/jenkins(?:\/.*)?)\/oidc$/.test(issuerUrl),
  isShared: () => undefined,
  levels: [{ pins: [{ claim: 'sub', prefix: /\/job\/[^/]+\/$/, open: /^https?:\/\/.+\/job\// }] }],
  wideRule: 'tenant-wide',
  checks: [],
  stranger: { sub: 'https://jenkins.example.com/job/sandbox/job/lab/', build_number: 1 },
  sometimes: [],
  alsoKnown: /./,
}
