// Services that run the jobs of everybody, with one issuer for all. Each names its source.
import { nothing } from './issuer-kind.ts'
import { ids, serviceOf, subject } from './public-service.ts'

/** https://vercel.com/docs/oidc/reference */
export const vercel = serviceOf({
  id: 'vercel',
  title: 'Vercel',
  issuers: /^https:\/\/oidc\.vercel\.com\/?$/,
  ownIssuers: /^https:\/\/oidc\.vercel\.com\/[^/]+\/?$/,
  levels: [
    { pins: [...ids('owner_id', 'project_id'), { claim: 'owner' }, subject(/^owner:[^:*]+:/, /^owner:./)] },
    {
      pins: [
        ...ids('project_id'),
        { claim: 'project' },
        subject(/^owner:[^:]+:project:[^:*]+:/, /^owner:[^:]+:project:./),
      ],
    },
  ],
  stranger: {
    sub: 'owner:mallory:project:lab:environment:production',
    owner: 'mallory',
    owner_id: 'team_mallory0000000000000001',
    project: 'lab',
    project_id: 'prj_mallory00000000000000002',
    environment: 'production',
    user_id: 'mallory00000000000000003',
  },
})

const pulumiOrganization = /^pulumi:(?:environments:(?:org|pulumi\.organization\.login)|deploy:org):[^:*]+(?::|$)/
const pulumiProject =
  /^pulumi:(?:environments:org:[^:]+:env:[^/:*]+(?:\/[^:*]+)?$|deploy:org:[^:]+:project:[^:]+:stack:[^:*]+:)/
/** https://www.pulumi.com/docs/administration/access-identity/oidc-provider/ */
export const pulumi = serviceOf({
  id: 'pulumi',
  title: 'Pulumi Cloud',
  issuers: /^https:\/\/api\.pulumi\.com\/oidc\/?$/,
  levels: [
    {
      pins: [{ claim: 'sub', value: pulumiOrganization, prefix: /^pulumi:(?:environments|deploy):[a-z.]+:[^:]+:/ }],
    },
    {
      pins: [
        {
          ...{ claim: 'sub', value: pulumiProject, open: nothing },
          prefix: /^pulumi:(?:environments:org:[^:]+:env:[^/:]+\/|deploy:org:[^:]+:project:[^:]+:)/,
        },
      ],
    },
  ],
  stranger: {
    sub: 'pulumi:environments:org:mallory:env:lab/dev',
    current_env: 'lab/dev',
    root_env: 'lab/dev',
    trigger_user: 'mallory',
  },
})

const ofPulumi = (name: string) => `https://pulumi.com/${name}`
/** https://www.pulumi.com/docs/esc/guides/configuring-oidc/custom-audience/ */
export const pulumiIds = serviceOf({
  id: 'pulumi-ids',
  title: 'Pulumi Cloud, with ids',
  issuers: /^https:\/\/api\.pulumi\.com\/oidc\/v2\/?$/,
  levels: [
    {
      pins: [
        ...ids(ofPulumi('org_id'), ofPulumi('current_env_id'), ofPulumi('root_env_id')),
        { claim: ofPulumi('org') },
        subject(/^pulumi:org:[^:*]+:/, /^pulumi:org:./, { immutable: true }),
      ],
    },
    {
      pins: [
        ...ids(ofPulumi('current_env_id'), ofPulumi('root_env_id')),
        { claim: 'sub', immutable: true, value: /^pulumi:org:[^:]+:env:[^:*]+$/, open: /^pulumi:org:[^:]+:env:./ },
      ],
    },
  ],
  stranger: {
    sub: 'pulumi:org:90000000-0000-4000-8000-000000000001:env:90000000-0000-4000-8000-000000000002',
    [ofPulumi('org')]: 'mallory',
    [ofPulumi('org_id')]: '90000000-0000-4000-8000-000000000001',
    [ofPulumi('current_env')]: 'lab/dev',
    [ofPulumi('current_env_id')]: '90000000-0000-4000-8000-000000000002',
    [ofPulumi('root_env')]: 'lab/dev',
    [ofPulumi('root_env_id')]: '90000000-0000-4000-8000-000000000002',
    [ofPulumi('actor')]: 'mallory',
    [ofPulumi('actor_id')]: '90000000-0000-4000-8000-000000000003',
  },
})

/** https://codefresh.io/docs/docs/integrations/oidc-pipelines/ */
export const codefresh = serviceOf({
  id: 'codefresh',
  title: 'Codefresh',
  issuers: /^https:\/\/oidc\.codefresh\.io\/?$/,
  levels: [
    {
      pins: [
        ...ids('account_id', 'pipeline_id'),
        { claim: 'account_name' },
        subject(/^account:[^:*]+:/, /^account:./, { immutable: true }),
      ],
    },
    {
      pins: [
        ...ids('pipeline_id'),
        { claim: 'pipeline_name' },
        subject(/^account:[^:]+:pipeline:[^:*]+:/, /^account:[^:]+:pipeline:./, { immutable: true }),
      ],
    },
  ],
  stranger: {
    sub: 'account:900000000000000000000001:pipeline:900000000000000000000002:initiator:mallory',
    account_id: '900000000000000000000001',
    account_name: 'mallory',
    pipeline_id: '900000000000000000000002',
    pipeline_name: 'lab/lab',
    workflow_id: '900000000000000000000003',
    initiator: 'mallory',
    runner_environment: 'hybrid',
  },
})

/** https://depot.dev/docs/ci/oidc */
export const depot = serviceOf({
  id: 'depot',
  title: 'Depot CI',
  issuers: /^https:\/\/identity\.depot\.dev\/?$/,
  levels: [
    {
      pins: [
        ...ids('org_id'),
        subject(/^spiffe:\/\/identity\.depot\.dev\/org\/[^/*]+\//, /^spiffe:\/\/identity\.depot\.dev\/org\/./),
      ],
    },
    {
      pins: [
        { claim: 'repository' },
        ...ids('repository_id'),
        {
          ...{ claim: 'sub', open: /^spiffe:\/\/[^/]+\/org\/[^/]+\/ci\/github\/./ },
          prefix: /^spiffe:\/\/[^/]+\/org\/[^/]+\/ci\/github\/[^/]+\/[^/]+\//,
        },
      ],
    },
  ],
  stranger: {
    sub: 'spiffe://identity.depot.dev/org/mallory001/ci/github/mallory/lab/ref/refs/heads/patch-1/sandbox/snd_1',
    org_id: 'mallory001',
    repository: 'mallory/lab',
    repository_id: '900000001',
    repository_owner_id: '900000002',
    ref: 'refs/heads/patch-1',
  },
})

/** https://modal.com/docs/guide/oidc-integration */
export const modal = serviceOf({
  id: 'modal',
  title: 'Modal',
  issuers: /^https:\/\/oidc\.modal\.com\/?$/,
  levels: [
    {
      pins: [
        ...ids('workspace_id', 'environment_id', 'app_id', 'function_id'),
        subject(/^modal:workspace_id:[^:*]+:/, /^modal:workspace_id:./, { immutable: true }),
      ],
    },
    {
      pins: [
        ...ids('environment_id', 'app_id', 'function_id'),
        { claim: 'app_name' },
        subject(/^modal:workspace_id:[^:]+:environment_name:[^:*]+:/, /^modal:workspace_id:[^:]+:environment_name:./),
      ],
    },
  ],
  stranger: {
    sub: 'modal:workspace_id:ac-mallory01:environment_name:main:app_name:lab:function_name:run:container_id:ta-mallory02',
    workspace_id: 'ac-mallory01',
    environment_id: 'en-mallory03',
    environment_name: 'main',
    app_id: 'ap-mallory04',
    app_name: 'lab',
    function_id: 'fu-mallory05',
    function_name: 'run',
    container_id: 'ta-mallory02',
  },
})

const forgejoName = /^repo:[^/:*]+\//
/** Codeberg runs jobs of everybody: https://forgejo.org/docs/latest/user/actions/security-openid-connect/ */
export const codeberg = serviceOf({
  id: 'codeberg',
  title: 'Codeberg',
  issuers: /^https:\/\/codeberg\.org\/api\/actions\/?$/,
  levels: [
    {
      pins: [
        { claim: 'repository_owner' },
        { claim: 'repository', value: /^[^/]+\//, prefix: /^[^/]+\// },
        subject(forgejoName, /^repo:./),
      ],
    },
    {
      pins: [
        { claim: 'repository', open: /^[^/]+\/./ },
        { claim: 'sub', value: forgejoName, prefix: /^repo:[^/:]+\/[^:]+:/, open: /^repo:[^/:]+\/./ },
      ],
    },
  ],
  stranger: {
    sub: 'repo:mallory-900000002/lab-900000001:pull_request',
    repository: 'mallory/lab',
    repository_owner: 'mallory',
    ref: 'refs/pull/7/head',
    ref_type: 'branch',
    event_name: 'pull_request',
    workflow_ref: 'mallory/lab/.forgejo/workflows/ci.yml@refs/pull/7/head',
    actor: 'mallory',
  },
})

/** https://github.com/humanitec-tf-modules/orchestrator-cloud-account-gcp-identity */
export const humanitec = serviceOf({
  id: 'humanitec',
  title: 'Humanitec',
  issuers: /^https:\/\/idtoken\.humanitec\.io\/?$/,
  levels: [
    { pins: [subject(/^[^/*]+\//, /^./)] },
    { pins: [{ claim: 'sub', value: /^[^/]+\/[^/*]+$/, open: /^[^/]+\/./ }] },
  ],
  stranger: { sub: 'mallory/lab' },
})

/** https://namespace.so/docs/federation/aws */
export const namespace = serviceOf({
  id: 'namespace',
  title: 'Namespace',
  issuers: /^https:\/\/federation\.namespaceapis\.com\/?$/,
  levels: [{ pins: [...ids('tenant_id', 'sub')] }],
  stranger: { sub: 'tenant_mallory01/lab', tenant_id: 'tenant_mallory01' },
})
