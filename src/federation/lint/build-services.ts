// Buildkite, HCP Terraform, Bitbucket Pipelines and Jenkins (sources: the documentation of each).
import { type IssuerKind, isExactly, nothing, type Pin } from './issuer-kind.ts'

/** Since March 2026, a job can ask for one of its ids as the subject (https://github.com/buildkite/agent/pull/3784). */
const idSubject = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/
/** Claims that a job can ask for (https://buildkite.com/docs/agent/v3/cli-oidc). */
const buildkiteIds: Pin[] = [
  ...['pipeline_id', 'cluster_id', 'queue_id', 'agent_id'].map((claim): Pin => ({ claim, immutable: true })),
  { claim: 'sub', immutable: true, value: idSubject, open: nothing },
]
export const buildkite: IssuerKind = {
  id: 'buildkite',
  title: 'Buildkite',
  matches: (issuerUrl) => /^https:\/\/agent\.buildkite\.com\/?$/.test(issuerUrl),
  isShared: () => true,
  levels: [
    {
      pins: [
        { claim: 'organization_id', immutable: true },
        ...buildkiteIds,
        { claim: 'organization_slug' },
        { claim: 'sub', value: /^organization:[^:*]+:/, prefix: /^organization:[^:]+:/, open: /^organization:./ },
      ],
    },
    {
      pins: [
        ...buildkiteIds,
        { claim: 'pipeline_slug' },
        { claim: 'sub', prefix: /^organization:[^:]+:pipeline:[^:]+:/, open: /^organization:[^:]+:pipeline:./ },
      ],
    },
  ],
  wideRule: 'tenant-wide',
  namesRule: 'buildkite-names',
  checks: [],
  chosenClaims: ['build_branch', 'build_tag', 'step_key'],
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
    job_id: '90000000-0000-4000-8000-000000000005',
    agent_id: '90000000-0000-4000-8000-000000000006',
    runner_environment: 'buildkite-hosted',
  },
  // All others contain a commit and a step.
  subjects: idSubject,
  sometimes: ['organization_id', 'pipeline_id', 'cluster_id', 'cluster_name', 'queue_id', 'queue_key', 'build_id'],
  alsoKnown: /^agent_tag:|^https:\/\/aws\.amazon\.com\//,
  cohere: (claims, isFixed) => {
    const { organization_slug, pipeline_slug, build_branch, build_commit, step_key } = claims
    if (!isFixed('sub'))
      claims.sub = `organization:${organization_slug}:pipeline:${pipeline_slug}:ref:refs/heads/${build_branch}:commit:${build_commit}:step:${step_key}`
  },
  defaultAudience: /^https:\/\/buildkite\.com\/|^sts\.amazonaws\.com$/,
}

/** A workspace, or a deployment of a stack. */
const terraformSubject = /^organization:[^:]+:project:[^:]+:(?:workspace|stack):[^:]+:/
const terraformWorkspace = /^organization:[^:*]+:project:[^:*]+:workspace:[^:*]+$/
const terraformIds = ['terraform_project_id', 'terraform_workspace_id', 'terraform_stack_id'].map(
  (claim): Pin => ({ claim, immutable: true }),
)
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
        ...terraformIds,
        { claim: 'terraform_organization_name' },
        {
          claim: 'terraform_full_workspace',
          value: terraformWorkspace,
          prefix: /^organization:[^:]+:/,
          open: /^organization:./,
        },
        { claim: 'sub', value: /^organization:[^:*]+:/, prefix: /^organization:[^:]+:/, open: /^organization:./ },
      ],
    },
    {
      pins: [
        ...terraformIds,
        { claim: 'terraform_workspace_name' },
        { claim: 'terraform_project_name' },
        { claim: 'terraform_stack_name' },
        {
          claim: 'terraform_full_workspace',
          value: terraformWorkspace,
          prefix: /^organization:[^:]+:project:[^:]+:/,
          open: /^organization:[^:]+:project:./,
        },
        {
          claim: 'sub',
          value: terraformSubject,
          prefix: terraformSubject,
          open: /^organization:[^:]+:project:[^:]+:(?:workspace|stack):./,
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
        !isExactly(facts, 'terraform_run_phase', /^apply$/) &&
        !isExactly(facts, 'terraform_operation', /^apply$/) &&
        !isExactly(facts, 'sub', /:(?:run_phase|operation):apply$/),
    },
  ],
  checkedClaims: ['terraform_run_phase', 'terraform_operation'],
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
  // Of stacks: https://developer.hashicorp.com/terraform/cloud-docs/stacks/deploy/authenticate
  subjects:
    /^organization:[^:*]+:project:[^:*]+:(?:workspace:[^:*]+:run_phase|stack:[^:*]+:deployment:[^:*]+:operation):(?:plan|apply)$/,
  sometimes: [
    'terraform_stack_id',
    'terraform_stack_name',
    'terraform_stack_deployment_name',
    'terraform_operation',
    'terraform_plan_id',
  ],
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
