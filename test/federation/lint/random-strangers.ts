// Random tokens of strangers: nobody of them is `acme` or `initech`, or has an id that a policy names. What is free to
// choose is often what a policy compares.
import fc from 'fast-check'
import { github } from '../../../src/federation/lint/github.ts'
import { gitlab } from '../../../src/federation/lint/gitlab.ts'
import { unknownIssuer } from '../../../src/federation/lint/identity-services.ts'
import { strangerOf } from '../../../src/federation/lint/witness.ts'
import type { JsonObject } from '../../../src/tokens/jwt-text.ts'
import { type IssuerName, issuerUrls, policyOf } from './linting.ts'
import type { Vocabulary } from './random-conditions.ts'

/** Ids and names of tenants, and parts of them, with what everyone can choose. */
export const tenantWords = [
  ...['acme', 'initech', 'acme/', 'acme/app', 'acm', 'ac', 'a', 'app', '/app', 'acme-', 'acme/app:', ''],
  ...['162148032', '797215326', '7', '9', 'refs/heads/main', 'refs/heads/', 'production', 'main', 'push', 'true'],
]
/** None of these names and ids can be joined from the words above: a policy that names one of them names its tenant. */
const owners = ['mallory', 'cm', 'me', 'acmeq', 'acme-q', 'q-acme', 'q', 'initechq', 'quitelongname', 'ACMEQ']
const names = ['lab', 'app', 'acme', 'production', 'main', 'a', 'acme-app']
const free = [
  'main',
  'production',
  'acme',
  'acme/app',
  'acme/app:ref:refs/heads/main',
  'repo:acme/app',
  'a',
  '7',
  'app',
]
const ids = ['900000001', '1100000001', '16214803', '1621480320', '797215327', '2', '60']

const word = (...more: readonly string[]) => fc.constantFrom(...free, ...more)
const times = fc.constantFrom(0, 5, -5).map((early) => ({ nbf: 1_795_000_000 - early }))

const githubStrangers = fc
  .record({
    owner: fc.constantFrom(...owners),
    name: fc.constantFrom(...names),
    branch: word('patch-1'),
    kind: fc.constantFrom('heads', 'heads', 'tags', 'pull'),
    environment: fc.option(word(), { nil: undefined }),
    workflow: word('CI'),
    event_name: fc.constantFrom('push', 'workflow_dispatch', 'release'),
    ownerId: fc.constantFrom(...ids),
    id: fc.constantFrom(...ids),
    time: times,
    ref_protected: fc.constantFrom('true', 'false'),
    withIds: fc.boolean(),
  })
  .map(({ owner, name, branch, kind, environment, workflow, ownerId, id, time, withIds, ref_protected, ...more }) => {
    const repository = `${owner}/${name}`
    const isPull = kind === 'pull'
    const ref = isPull ? 'refs/pull/7/merge' : `refs/${kind}/${branch}`
    const context = environment === undefined ? (isPull ? 'pull_request' : `ref:${ref}`) : `environment:${environment}`
    const workflowRef = `${repository}/.github/workflows/${workflow.replaceAll(/[/:]/g, '-')}.yml@${ref}`
    return {
      ...strangerOf(github, issuerUrls.github, policyOf({ issuer: 'github' }).audience),
      ...{ repository, repository_owner: owner, repository_owner_id: ownerId, repository_id: id, ref, ref_protected },
      ...{ actor: owner, head_ref: isPull ? branch : '', base_ref: isPull ? 'main' : '', workflow },
      ...{ workflow_ref: workflowRef, job_workflow_ref: workflowRef, ref_type: kind === 'tags' ? 'tag' : 'branch' },
      ...{ event_name: isPull ? 'pull_request' : more.event_name, ...time },
      ...(environment === undefined ? {} : { environment }),
      sub: withIds ? `repo:${owner}@${ownerId}/${name}@${id}:${context}` : `repo:${repository}:${context}`,
    } as JsonObject
  })

const gitlabStrangers = fc
  .record({
    group: fc.constantFrom(...owners),
    subgroup: fc.constantFrom('', '/acme', '/app', '/main'),
    name: fc.constantFrom(...names),
    ref: word('patch-1'),
    ref_type: fc.constantFrom('branch', 'tag'),
    ref_protected: fc.constantFrom('true', 'false'),
    environment: fc.option(word(), { nil: undefined }),
    id: fc.constantFrom(...ids),
    groupId: fc.constantFrom(...ids),
    time: times,
  })
  .map(({ group, subgroup, name, ref, ref_type, ref_protected, environment, id, groupId, time }) => {
    const namespace = `${group}${subgroup}`
    const path = `${namespace}/${name}`
    const refPath = `refs/${ref_type === 'tag' ? 'tags' : 'heads'}/${ref}`
    return {
      ...strangerOf(gitlab, issuerUrls.gitlab, policyOf({ issuer: 'gitlab' }).audience),
      ...{ namespace_path: namespace, project_path: path, namespace_id: groupId, project_id: id },
      ...{ job_namespace_path: namespace, job_project_path: path, job_namespace_id: groupId, job_project_id: id },
      ...{ ref, ref_type, ref_protected, ref_path: refPath, user_login: group, ...time },
      ...(environment === undefined ? {} : { environment, environment_protected: ref_protected }),
      ci_config_ref_uri: `gitlab.com/${path}//.gitlab-ci.yml@${refPath}`,
      sub: `project_path:${path}:ref_type:${ref_type}:ref:${ref}`,
    } as JsonObject
  })

/**
 * Customers of a service that the linter does not know. Their subjects are parts of those that policies name, never whole
 * ones; the other parts are in claims that everyone can choose.
 */
const customers = fc
  .record({
    sub: fc.constantFrom('cme', 'ac', 'tech', 'app', 'app@', 'batch', '/app', 'acme-', 'mallory'),
    tenant: fc.constantFrom('acme', 'a', 'acme-', 'ini', 'initech'),
    nickname: fc.constantFrom('app', 'me', 'acme', 'acme-app', '', '-app'),
    team: fc.option(fc.constantFrom('acme', 'app', 'a'), { nil: undefined }),
    token_type: fc.constantFrom('acme', 'a', ''),
    groups: fc.array(fc.constantFrom('acme', 'app', 'a'), { maxLength: 2 }),
    email_verified: fc.boolean(),
    time: times,
  })
  .map(({ team, time, ...claims }) => ({
    ...strangerOf(unknownIssuer, issuerUrls.own, policyOf({ issuer: 'own' }).audience),
    ...{ ...claims, ...time },
    ...(team === undefined ? {} : { team }),
  }))

const common = { digits: [0, 1, 3, 4, 5, 8, 162_148_032, 1_795_000_000], flags: ['claims.admin', '1 < 2'] }
type Platform = {
  issuer: IssuerName
  strangers: fc.Arbitrary<JsonObject>
  vocabulary: Vocabulary
  /** Of the policies that a stranger passes, the least part for which the linter shows a token. */
  shownMin: number
}
export const platforms: Platform[] = [
  {
    issuer: 'github',
    strangers: githubStrangers,
    shownMin: 0.9,
    vocabulary: {
      ...common,
      texts: [
        ...['subject', 'claims.repository', 'claims.repository_owner', 'claims.repository_owner', 'claims.ref'],
        ...['claims.repository_id', 'claims.repository_owner_id', 'claims.environment', 'claims.workflow_ref'],
        ...['claims.actor', 'claims.workflow', 'claims.event_name'],
      ],
      numbers: ['claims.iat', 'claims.nbf', 'int(claims.repository_id)', 'int(claims.repository_owner_id)'],
      lists: ['audience', 'scopes', 'claims.groups'],
      flags: ['has(claims.environment)', 'claims.ref_protected == "true"', 'claims.nbf < claims.iat'],
      words: [...tenantWords, 'repo:acme', 'repo:acme/', 'repo:acme/app:', 'repo:acme@162148032/', 'repo:'],
    },
  },
  {
    issuer: 'gitlab',
    strangers: gitlabStrangers,
    shownMin: 0.9,
    vocabulary: {
      ...common,
      texts: [
        ...['subject', 'claims.project_path', 'claims.namespace_path', 'claims.project_id', 'claims.namespace_id'],
        ...['claims.ref', 'claims.environment', 'claims.user_login', 'claims.ref_path', 'claims.ci_config_ref_uri'],
      ],
      numbers: ['claims.iat', 'claims.nbf', 'int(claims.project_id)'],
      lists: ['audience', 'scopes', 'claims.user_identities'],
      flags: ['has(claims.environment)', 'claims.ref_protected == "true"', 'claims.nbf < claims.iat'],
      words: [...tenantWords, 'project_path:acme', 'project_path:acme/', 'project_path:acme/app:'],
    },
  },
  {
    issuer: 'own',
    strangers: customers,
    // Any claim of an unknown issuer may be one that strangers cannot choose.
    shownMin: 0,
    vocabulary: {
      ...common,
      texts: ['subject', 'subject', 'subject', 'claims.tenant', 'claims.nickname', 'claims.team', 'token_type'],
      numbers: ['claims.iat', 'claims.nbf'],
      lists: ['audience', 'scopes', 'claims.groups'],
      flags: ['has(claims.team)', 'claims.email_verified == true', 'claims.nbf < claims.iat'],
      words: ['acme', 'initech', 'acme/app', 'acme-app', 'app@acme', ''],
      sums: true,
    },
  },
]
