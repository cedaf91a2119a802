// GitHub Actions: github.com, GHE.com and GitHub Enterprise Server (docs.github.com, OpenID Connect reference).
import type { JsonObject } from '../../tokens/jwt-text.ts'
import type { Facts } from './fact.ts'
import {
  canBe,
  certaintyOf,
  type IssuerKind,
  isAsked,
  isExactly,
  isOnly,
  type Level,
  nothing,
  type Pin,
} from './issuer-kind.ts'

const repositoryPath = /^[^/]+\//
const workflowPath = /^[^/]+\/[^/]+\//
const withIds = /^repo:[^@/:]+@\d+\/[^@:]+@\d+:/

/**
 * An organization can build its subjects from other claims, each after its name. GitHub writes `%3A` for a colon in a
 * value, so what stands between colons cannot come from a name that a stranger chooses.
 */
const customOwner = /(?:^|:)(?:repo|repository_owner(?:_id)?|repository(?:_id)?|enterprise(?:_id)?|workflow_ref):[^:]/
const customOwnerFirst =
  /^(?:(?:repository_owner(?:_id)?|repository(?:_id)?|enterprise(?:_id)?):[^:]+:|(?:repository|workflow_ref):[^/:]+\/)/
const customOwnerId: Pin = {
  claim: 'sub',
  immutable: true,
  value: /(?:^|:)(?:repository(?:_owner)?|enterprise)_id:\d+(?::|$)/,
  prefix: /^(?:[^:]+:)*(?:repository(?:_owner)?|enterprise)_id:\d+:/,
  suffix: /:(?:repository(?:_owner)?|enterprise)_id:\d+$/,
  contained: /:(?:repository(?:_owner)?|enterprise)_id:\d+:/,
  open: nothing,
}
const customRepositoryId: Pin = {
  ...customOwnerId,
  value: /(?:^|:)repository_id:\d+(?::|$)/,
  prefix: /^(?:[^:]+:)*repository_id:\d+:/,
  suffix: /:repository_id:\d+$/,
  contained: /:repository_id:\d+:/,
}

const owner: Level = {
  pins: [
    { claim: 'repository_owner_id', immutable: true },
    { claim: 'repository_id', immutable: true },
    { claim: 'enterprise_id', immutable: true },
    { claim: 'repository_owner_node_id', immutable: true },
    { claim: 'repository_node_id', immutable: true },
    { claim: 'environment_node_id', immutable: true },
    { claim: 'sub', immutable: true, value: withIds, prefix: withIds, open: nothing },
    customOwnerId,
    { claim: 'sub', value: /^repo:[^/:*]+\//, prefix: /^repo:[^/:]+\//, open: /^repo:./ },
    {
      claim: 'sub',
      value: customOwner,
      prefix: customOwnerFirst,
      open: /^(?:repository|enterprise|workflow_ref)\w*:./,
    },
    { claim: 'repository_owner' },
    { claim: 'enterprise' },
    { claim: 'repository', value: repositoryPath, prefix: repositoryPath },
    { claim: 'workflow_ref', value: repositoryPath, prefix: repositoryPath },
    // Not `job_workflow_ref`: any repository can call a public reusable workflow.
  ],
}
const repository: Level = {
  pins: [
    { claim: 'repository_id', immutable: true },
    { claim: 'repository_node_id', immutable: true },
    { claim: 'environment_node_id', immutable: true },
    { claim: 'sub', immutable: true, value: withIds, prefix: withIds, open: nothing },
    customRepositoryId,
    {
      claim: 'sub',
      value: /^(?!repo:[^/]+\/\*)/,
      prefix: /^repo(?:sitory)?:[^/:]+\/[^:]+:/,
      open: /^repo(?:sitory)?:[^/:]+\/./,
    },
    { claim: 'repository', open: /^[^/]+\/./ },
    { claim: 'workflow_ref', prefix: workflowPath, open: /^[^/]+\/./ },
  ],
}

/** Claims that say what runs, and not where. A stranger gives them any value. */
const borrowed = ['environment', 'workflow', 'ref', 'head_ref', 'base_ref', 'actor', 'job_workflow_ref']

/** Reports whether a pull request or an arbitrary branch is excluded. */
function isRefClosed(facts: Facts): boolean {
  return (
    isOnly(facts, 'sub', /:ref:refs\/(?:heads|tags)\/./) ||
    isExactly(facts, 'sub', /(?:^|:)environment:./) ||
    isOnly(facts, 'ref', /^refs\/(?:heads|tags)\/./) ||
    // A job creates the environment that it names, so only a whole name excludes others.
    isExactly(facts, 'environment', /./) ||
    isExactly(facts, 'environment_node_id', /./) ||
    isExactly(facts, 'ref_protected', /^true$/) ||
    isOnly(facts, 'job_workflow_ref', /@./) ||
    isOnly(facts, 'workflow_ref', /@./) ||
    isAsked(facts, 'job_workflow_sha') ||
    isAsked(facts, 'sha')
  )
}

/** Reports whether the part of a value that is asked for has a text. */
function contains(facts: Facts, claim: string, text: string): boolean {
  const { prefix = '', suffix = '', contained = [] } = facts.get(claim) ?? {}
  return [prefix, suffix, ...contained].some((part) => part.includes(text))
}

function namesPullRequest(facts: Facts): boolean {
  return (
    canBe(facts, 'sub', /:pull_request$/) ||
    canBe(facts, 'event_name', /^pull_request$/) ||
    contains(facts, 'sub', ':pull') ||
    contains(facts, 'event_name', 'pull_request') ||
    isOnly(facts, 'ref', /^refs\/pull/)
  )
}

export const github: IssuerKind = {
  id: 'github',
  title: 'GitHub Actions',
  matches: (issuerUrl) =>
    /^https:\/\/token\.actions\.(?:githubusercontent\.com|[^/]+\.ghe\.com)(?:\/|$)/.test(issuerUrl) ||
    /^https:\/\/[^/]+\/_services\/token$/.test(issuerUrl),
  // An enterprise on github.com or GHE.com can have its own issuer.
  isShared: (issuerUrl) =>
    /^https:\/\/token\.actions\./.test(issuerUrl) ? /\.githubusercontent\.com\/?$/.test(issuerUrl) : undefined,
  levels: [owner, repository],
  wideRule: 'tenant-wide',
  namesRule: 'github-name-only',
  checks: [
    { rule: 'github-pull-request', applies: (facts) => namesPullRequest(facts) && !isRefClosed(facts) },
    { rule: 'github-any-ref', applies: (facts) => !namesPullRequest(facts) && !isRefClosed(facts) },
    {
      rule: 'github-risky-event',
      applies: (facts) => canBe(facts, 'event_name', /^(?:pull_request_target|workflow_run|issue_comment)$/),
    },
    {
      rule: 'github-reusable',
      applies: (facts) =>
        isAsked(facts, 'job_workflow_ref') && !isOnly(facts, 'job_workflow_ref', /@./) && !isRefClosed(facts),
    },
    { rule: 'github-old-subject', applies: (facts) => isOnly(facts, 'sub', /^repo:[^@/:]+\/[^@:*]+:/) },
  ],
  checkedClaims: [...borrowed, 'ref_protected', 'job_workflow_sha', 'sha', 'event_name'],
  chosenClaims: ['environment', 'workflow', 'workflow_ref', 'job_workflow_ref', 'ref', 'head_ref', 'base_ref'],
  strangerChecks: [
    {
      rule: 'github-environment-alone',
      applies: (facts) =>
        certaintyOf(owner, facts) === 'free' &&
        (borrowed.some((claim) => isAsked(facts, claim)) ||
          isOnly(facts, 'sub', /^(?:environment|workflow|\w*ref|actor):/)),
    },
  ],
  stranger: {
    sub: 'repo:mallory/lab:pull_request',
    actor: 'mallory',
    actor_id: '900000003',
    base_ref: 'main',
    check_run_id: '96193868770',
    event_name: 'pull_request',
    head_ref: 'patch-1',
    job_workflow_ref: 'mallory/lab/.github/workflows/ci.yml@refs/pull/7/merge',
    job_workflow_sha: '0f0e0d0c0b0a09080706050403020100fedcba98',
    ref: 'refs/pull/7/merge',
    ref_protected: 'false',
    ref_type: 'branch',
    repository: 'mallory/lab',
    repository_id: '900000001',
    repository_owner: 'mallory',
    repository_owner_id: '900000002',
    repository_visibility: 'public',
    run_attempt: '1',
    run_id: '10685993555',
    run_number: '154',
    runner_environment: 'github-hosted',
    sha: '0f0e0d0c0b0a09080706050403020100fedcba98',
    workflow: 'CI',
    workflow_ref: 'mallory/lab/.github/workflows/ci.yml@refs/pull/7/merge',
    workflow_sha: '0f0e0d0c0b0a09080706050403020100fedcba98',
  },
  subjects: /^(?:repo:[^/:*]+\/[^:*]+:[^*]+|(?!repo:)[a-z_]+:[^*]+)$/,
  sometimes: ['environment', 'environment_node_id', 'enterprise', 'enterprise_id', 'issuer_scope', 'workspace_id'],
  alsoKnown: /^repo_property_|^(?:repository|repository_owner)_node_id$|^x5t$/,
  defaultAudience: /^https:\/\/github\.com\/|^sts\.amazonaws\.com$|^api:\/\/AzureADTokenExchange$/,
  carry: (text) => `repo:mallory/lab:environment:${text}`,
  cohere,
}

/** The repository, its owner, the workflow, the event and the subject name the same run. */
function cohere(claims: JsonObject, isFixed: (name: string) => boolean): void {
  const set = (name: string, value: string): void => {
    if (!isFixed(name)) claims[name] = value
  }
  const fromSubject = /^repo:([^/@:]+)(?:@(\d+))?\/([^@:]+)(?:@(\d+))?:(?:ref:(.+)|environment:(.+))?/
  const [, ownerName, ownerId, name, id, ref, environment] = isFixed('sub')
    ? (fromSubject.exec(String(claims.sub)) ?? [])
    : []
  if (ownerId !== undefined) set('repository_owner_id', ownerId)
  if (id !== undefined) set('repository_id', id)
  if (ref !== undefined) set('ref', ref)
  if (environment !== undefined) set('environment', environment)
  if (ownerName !== undefined && name !== undefined) set('repository', `${ownerName}/${name}`)
  else if (isFixed('repository_owner')) set('repository', `${claims.repository_owner}/lab`)
  const repositoryName = String(claims.repository)
  set('repository_owner', repositoryName.split('/')[0] ?? '')
  if (!String(claims.ref).startsWith('refs/pull/')) {
    set('event_name', 'push')
    set('base_ref', '')
    set('head_ref', '')
  }
  const workflow = `${repositoryName}/.github/workflows/ci.yml@${claims.ref}`
  set('workflow_ref', workflow)
  set('job_workflow_ref', workflow)
  const isPullRequest = claims.event_name === 'pull_request'
  const context = isPullRequest ? 'pull_request' : `ref:${claims.ref}`
  const rest = claims.environment === undefined ? context : `environment:${claims.environment}`
  set('sub', `repo:${repositoryName}:${rest}`)
}
