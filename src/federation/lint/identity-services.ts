// Microsoft Entra, Kubernetes, SPIFFE, and issuers of which nothing is known (sources: their documentation).
import { claimAt } from './atom.ts'
import { certaintyOf, type IssuerKind, isExactly, isPinnedForever, type Level } from './issuer-kind.ts'

const entra =
  /^https:\/\/(?:login\.microsoftonline\.(?:com|us)|login\.partner\.microsoftonline\.cn|sts\.windows\.net)\//
/** One tenant's issuer. Other paths are of Azure AD B2C, to which people sign up. */
const oneTenant = /^https:\/\/(?:[^/]+\/[0-9a-f-]{36}\/v2\.0|sts\.windows\.net\/[0-9a-f-]{36}\/)$/i
/** The tenants of all personal accounts: their own, and the one through which they pass to applications of Microsoft. */
const personal = /9188040d-6c67-4c5b-b112-36a304b66dad|f8cdef31-a31e-4b4a-93e4-5f571e91255a/i
export const azure: IssuerKind = {
  id: 'azure',
  title: 'Microsoft Entra',
  matches: (issuerUrl) => entra.test(issuerUrl),
  isShared: (issuerUrl) => {
    if (/\/(?:common|organizations|consumers)(?:\/|$)/.test(issuerUrl) || personal.test(issuerUrl)) return true
    return oneTenant.test(issuerUrl) ? false : undefined
  },
  levels: [
    {
      pins: [
        { claim: 'tid', immutable: true, value: { test: (tenant) => !personal.test(tenant) } },
        { claim: 'oid', immutable: true },
        { claim: 'sub', immutable: true },
      ],
    },
    {
      pins: [
        { claim: 'oid', immutable: true },
        { claim: 'sub', immutable: true },
        { claim: 'azp', immutable: true },
        { claim: 'appid', immutable: true },
        { claim: 'xms_mirid' },
      ],
    },
  ],
  wideRule: 'tenant-wide',
  checks: [],
  stranger: {
    sub: '90000000-0000-4000-8000-000000000001',
    oid: '90000000-0000-4000-8000-000000000001',
    tid: '90000000-0000-4000-8000-000000000002',
    azp: '90000000-0000-4000-8000-000000000003',
    azpacr: '1',
    ver: '2.0',
    idtyp: 'app',
  },
  sometimes: [
    'roles',
    'scp',
    'appid',
    'appidacr',
    'idp',
    'upn',
    'preferred_username',
    'name',
    'groups',
    'xms_mirid',
    'wids',
    'email',
    'rh',
    'uti',
    'aio',
    'unique_name',
    'acct',
  ],
  defaultAudience: /^https:\/\/(?:graph\.microsoft\.com|management\.azure\.com)\/?$|^api:\/\/AzureADTokenExchange$/,
  hasLongTokens: true,
}

const inCluster = (...members: string[]) => claimAt('kubernetes.io', ...members)
const accountName = inCluster('serviceaccount', 'name')
const clusters = new RegExp(
  [
    '^https://kubernetes\\.default\\.svc(?:[.:/]|$)',
    '^https://oidc\\.eks\\.[^/]+/id/',
    '^https://container\\.googleapis\\.com/v1/projects/',
    '^https://(?:[^/]*oic|oidc)\\.prod-aks\\.azure\\.com/',
  ].join('|'),
)
const namespace: Level = {
  pins: [
    { claim: inCluster('serviceaccount', 'uid'), immutable: true },
    { claim: inCluster('pod', 'uid'), immutable: true },
    { claim: inCluster('namespace') },
    {
      claim: 'sub',
      value: /^system:serviceaccount:[^:*]+:/,
      prefix: /^system:serviceaccount:[^:]+:/,
      open: /^system:serviceaccount:./,
    },
  ],
}
const account: Level = {
  pins: [
    { claim: inCluster('serviceaccount', 'uid'), immutable: true },
    { claim: inCluster('pod', 'uid'), immutable: true },
    { claim: accountName },
    {
      claim: 'sub',
      value: /^system:serviceaccount:[^:]+:[^:*]+$/,
      suffix: /^:./,
      open: /^system:serviceaccount:[^:]+:./,
    },
  ],
}
export const kubernetes: IssuerKind = {
  id: 'kubernetes',
  title: 'Kubernetes',
  matches: (issuerUrl, subjects) =>
    clusters.test(issuerUrl) || subjects.some((text) => text.startsWith('system:serviceaccount')),
  isShared: (issuerUrl) => (clusters.test(issuerUrl) ? false : undefined),
  levels: [namespace, account],
  wideRule: 'k8s-namespace',
  namesRule: 'k8s-recreated',
  strangerChecks: [
    {
      rule: 'k8s-any-namespace',
      applies: (facts) => certaintyOf(namespace, facts) !== 'pinned' && certaintyOf(account, facts) === 'pinned',
    },
  ],
  checks: [
    {
      rule: 'k8s-default-account',
      applies: (facts) =>
        !isPinnedForever([account], facts) &&
        !isExactly(facts, accountName, /^(?!default$)/) &&
        !isExactly(facts, 'sub', /:(?!default$)[^:]*$/) &&
        (isExactly(facts, 'sub', /:default$/) ||
          isExactly(facts, accountName, /^default$/) ||
          facts.get('sub')?.suffix === ':default'),
    },
  ],
  stranger: {
    sub: 'system:serviceaccount:sandbox:default',
    'kubernetes.io': {
      namespace: 'sandbox',
      node: { name: 'node-9', uid: '90000000-0000-4000-8000-000000000001' },
      pod: { name: 'shell', uid: '90000000-0000-4000-8000-000000000002' },
      serviceaccount: { name: 'default', uid: '90000000-0000-4000-8000-000000000003' },
      warnafter: 1_795_000_600,
    },
  },
  subjects: /^system:serviceaccount:[^:*]+:[^:*]+$/,
  sometimes: [],
  defaultAudience: /^https:\/\/kubernetes\.default\.svc(?:\.|$)|^k3s$|^sts\.amazonaws\.com$/,
  hasLongTokens: true,
  cohere: (claims, isFixed) => {
    const inner = claims['kubernetes.io'] as { namespace: string; serviceaccount: { name: string } }
    const [, name, own] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(String(claims.sub)) ?? []
    if (isFixed('sub')) {
      if (name !== undefined && !isFixed(inCluster('namespace'))) inner.namespace = name
      if (own !== undefined && !isFixed(accountName)) inner.serviceaccount.name = own
    } else claims.sub = `system:serviceaccount:${inner.namespace}:${inner.serviceaccount.name}`
  },
}

export const spiffe: IssuerKind = {
  id: 'spiffe',
  title: 'SPIFFE',
  matches: (_issuerUrl, subjects) => subjects.some((text) => text.startsWith('spiffe:')),
  isShared: () => undefined,
  levels: [
    { pins: [{ claim: 'sub', value: /^spiffe:\/\/[^/*]+\//, prefix: /^spiffe:\/\/[^/]+\//, open: /^spiffe:\/\/./ }] },
    { pins: [{ claim: 'sub', prefix: /^spiffe:\/\/[^/]+\/.*\/$/, open: /^spiffe:\/\/[^/]+\/./ }] },
  ],
  wideRule: 'spiffe-domain',
  checks: [],
  stranger: { sub: 'spiffe://example.org/ns/sandbox/sa/default' },
  subjects: /^spiffe:\/\/[^/*]+\/[^*]+$/,
  sometimes: [],
  alsoKnown: /./,
}

/** Issuers whose URL contains the account or the organization. */
const accounts = new RegExp(
  [
    // https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_providers_outbound.html
    '^https://[0-9a-f-]+\\.tokens\\.sts\\.global\\.api\\.aws/?$',
    // https://fly.io/docs/security/openid-connect/
    '^https://oidc\\.fly\\.io/[^/]+/?$',
    // https://docs.spacelift.io/integrations/cloud-providers/oidc/
    '^https://[^./]+\\.app\\.(?:us\\.)?spacelift\\.io/?$',
    // https://learn.microsoft.com/en-us/azure/devops/pipelines/release/configure-workload-identity
    '^https://vstoken\\.dev\\.azure\\.com/[0-9a-f-]{36}/?$',
    // https://developer.harness.io/harness-platform/use-harness-platform/pipelines/workload-identity/token-claims-reference
    '^https://app\\.harness\\.io/ng/api/oidc/account/[^/]+/?$',
  ].join('|'),
)
export const unknownIssuer: IssuerKind = {
  id: 'private',
  title: 'an issuer of your own',
  matches: () => true,
  isShared: (issuerUrl) => (accounts.test(issuerUrl) ? false : undefined),
  levels: [],
  checks: [],
  stranger: { sub: '0f8fad5b-d9cb-469f-a165-70867728950e' },
  sometimes: [],
  alsoKnown: /./,
}
