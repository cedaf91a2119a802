// GitLab CI/CD: gitlab.com and self-managed instances (docs.gitlab.com, ID token authentication).
import type { JsonObject } from '../../tokens/jwt-text.ts'
import type { Facts } from './fact.ts'
import { canBe, type IssuerKind, isAsked, isExactly, isOnly, type Level, nothing, type Pin } from './issuer-kind.ts'

/** Servers on which everybody can create a project, with where they say so. */
const publicServers = [
  'https://gitlab.gnome.org', // https://wiki.gnome.org/Git/NewRepository
  'https://salsa.debian.org', // http://blog.snow-crash.org/blog/salsa.debian.org-git.debian.org-replacement-going-into-beta
  'https://gitlab.freedesktop.org', // https://www.fooishbar.org/blog/gitlab-fdo-introduction
  'https://invent.kde.org', // https://community.kde.org/Infrastructure/Get_a_Contributor_Account
  'https://gitlab.xfce.org', // https://wiki.xfce.org/howto/gitlab_signup
  'https://framagit.org', // https://framablog.org/tag/gitlab/
  'https://gitlab.wikimedia.org', // https://www.mediawiki.org/wiki/GitLab/Workflows/Registering_an_account_on_GitLab
]

const subjectIds = /(?:^|:)(?:project|namespace)_id:\d+(?::|$)/

/**
 * On gitlab.com, a runner of a group or project. Those of GitLab itself have ids too, and run the jobs of everybody
 * (https://docs.gitlab.com/ci/secrets/id_token_authentication/, `runner_environment`). On other servers, runners for
 * everybody are self-hosted too.
 */
const ownRunner: Pin = { claim: 'runner_id', beside: { claim: 'runner_environment', value: /^self-hosted$/ } }

const group: Level = {
  pins: [
    // Not `job_project_…` and `job_namespace_…`: a pipeline of a fork can run in the project to which it wants to merge
    // (https://gitlab.com/gitlab-org/gitlab/-/issues/563038).
    { claim: 'namespace_id', immutable: true },
    { claim: 'project_id', immutable: true },
    // Only who may read a policy project can apply its policies (CVE-2023-4002, GitLab 16.2.2).
    { claim: 'job_policy_ref_uri', value: /^[^/]+\/[^/]+\//, prefix: /^[^/]+\/[^/]+\//, open: /^[^/]+\/./ },
    { claim: 'sub', immutable: true, value: subjectIds, prefix: /^(?:project|namespace)_id:\d+:/, open: nothing },
    { claim: 'namespace_path', prefix: /^[^/]+\// },
    { claim: 'project_path', value: /^[^/]+\//, prefix: /^[^/]+\// },
    { claim: 'ci_config_ref_uri', value: /^[^/]+\/[^/]+\//, prefix: /^[^/]+\/[^/]+\//, open: /^[^/]+\/./ },
    { claim: 'sub', value: /^project_path:[^/:*]+\//, prefix: /^project_path:[^/:]+\//, open: /^project_path:./ },
  ],
}
const project: Level = {
  pins: [
    { claim: 'project_id', immutable: true },
    { claim: 'sub', immutable: true, value: /(?:^|:)project_id:\d+(?::|$)/, prefix: /^project_id:\d+:/, open: nothing },
    { claim: 'project_path', open: /^[^/]+\/./ },
    { claim: 'ci_config_ref_uri', prefix: /^[^/]+\/.+\/\//, open: nothing },
    { claim: 'sub', prefix: /^project_path:[^:]+:/, open: /^project_path:[^/:]+\/./ },
  ],
}

/** The pipeline runs for a protected branch or tag, or for a named one. */
function isRefClosed(facts: Facts): boolean {
  return (
    isExactly(facts, 'ref_protected', /^true$/) ||
    isExactly(facts, 'environment_protected', /^true$/) ||
    isExactly(facts, 'ref', /./) ||
    isExactly(facts, 'ref_path', /./) ||
    isOnly(facts, 'ci_config_ref_uri', /@./) ||
    isExactly(facts, 'sub', /:ref:[^*]+$/) ||
    isAsked(facts, 'sha')
  )
}

export const gitlab: IssuerKind = {
  id: 'gitlab',
  title: 'GitLab CI/CD',
  matches: (issuerUrl, subjects) =>
    publicServers.includes(issuerUrl.replace(/\/$/, '')) ||
    /^https:\/\/gitlab\.[^/]+\/?$/.test(issuerUrl) ||
    subjects.some((text) => text.startsWith('project_path:')),
  isShared: (issuerUrl) => publicServers.includes(issuerUrl.replace(/\/$/, '')) || undefined,
  levels: [group, project],
  wideRule: 'tenant-wide',
  namesRule: 'gitlab-name-only',
  checks: [
    { rule: 'gitlab-unprotected', applies: (facts) => !isRefClosed(facts) || canBe(facts, 'ref_protected', /^false$/) },
    {
      rule: 'gitlab-subgroups',
      applies: (facts) =>
        facts.get('project_path')?.values === undefined &&
        (isOnly(facts, 'project_path', /\/$/) || isOnly(facts, 'namespace_path', /\/$/)) &&
        !isAsked(facts, 'namespace_id') &&
        !isAsked(facts, 'project_id'),
    },
  ],
  checkedClaims: ['ref_protected', 'environment_protected', 'ref', 'ref_path', 'sha', 'runner_environment'],
  chosenClaims: ['environment', 'deployment_tier', 'ref', 'ref_path'],
  stranger: {
    sub: 'project_path:mallory/lab:ref_type:branch:ref:patch-1',
    namespace_id: '900000002',
    namespace_path: 'mallory',
    project_id: '900000001',
    project_path: 'mallory/lab',
    job_namespace_id: '900000002',
    job_namespace_path: 'mallory',
    job_project_id: '900000001',
    job_project_path: 'mallory/lab',
    user_id: '900000003',
    user_login: 'mallory',
    user_email: 'mallory@example.net',
    user_access_level: 'developer',
    user_identities: [],
    pipeline_id: '574',
    pipeline_source: 'merge_request_event',
    job_id: '302',
    job_source: 'merge_request_event',
    ref: 'patch-1',
    ref_type: 'branch',
    ref_path: 'refs/heads/patch-1',
    ref_protected: 'false',
    runner_id: 12_270_852,
    runner_environment: 'gitlab-hosted',
    sha: '0f0e0d0c0b0a09080706050403020100fedcba98',
    project_visibility: 'public',
    ci_config_ref_uri: 'gitlab.com/mallory/lab//.gitlab-ci.yml@refs/heads/patch-1',
    ci_config_sha: '0f0e0d0c0b0a09080706050403020100fedcba98',
  },
  subjects: /^(?:project_path:[^/:*]+\/[^:*]+:[^*]+|(?!project_path:)[a-z_]+:[^*]+)$/,
  sometimes: [
    'environment',
    'environment_protected',
    'deployment_tier',
    'environment_action',
    'groups_direct',
    'job_policy_ref_uri',
    'job_policy_ref_sha',
    'target_audience',
  ],
  defaultAudience: /^https:\/\/gitlab\.com$|^sts\.amazonaws\.com$/,
  hasLongTokens: true,
  carry: (text) => `project_path:mallory/lab:ref_type:branch:ref:${text}`,
  cohere,
}

export const gitlabCom: IssuerKind = {
  ...gitlab,
  id: 'gitlab-com',
  title: 'GitLab.com',
  matches: (issuerUrl) => /^https:\/\/gitlab\.com\/?$/.test(issuerUrl),
  isShared: () => true,
  levels: [{ pins: [...group.pins, ownRunner] }, project],
}

/** The project, its namespace, the ref and the subject name the same job. */
function cohere(claims: JsonObject, isFixed: (name: string) => boolean): void {
  const set = (name: string, value: string): void => {
    if (!isFixed(name)) claims[name] = value
  }
  const fromSubject = /^project_path:([^:]+):ref_type:(branch|tag):ref:(.+)$/
  const [, path, type, ref] = isFixed('sub') ? (fromSubject.exec(String(claims.sub)) ?? []) : []
  if (path !== undefined) set('project_path', path)
  else if (isFixed('namespace_path')) set('project_path', `${claims.namespace_path}/lab`)
  if (type !== undefined) set('ref_type', type)
  if (ref !== undefined) set('ref', ref)
  const projectPath = String(claims.project_path)
  set('namespace_path', projectPath.split('/').slice(0, -1).join('/'))
  set('job_project_path', projectPath)
  set('job_namespace_path', String(claims.namespace_path))
  const refPath = `refs/${claims.ref_type === 'tag' ? 'tags' : 'heads'}/${claims.ref}`
  set('ref_path', refPath)
  set('ci_config_ref_uri', `gitlab.com/${projectPath}//.gitlab-ci.yml@${refPath}`)
  set('sub', `project_path:${projectPath}:ref_type:${claims.ref_type}:ref:${claims.ref}`)
}
