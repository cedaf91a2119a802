// The platforms that give tokens to workloads, one entry each: how its issuer is known, which claims its policies compare, ids first, since nobody
// else can register them again, and where the manual has its lines. From it follow the cards of the policy form, the rules that they
// write, and what they read from a token.

/**
 * `claim`: where a token has the answer. `must`: without it, nothing is written. `guarded`: tokens can lack the claim. `prefix` stands before the answer in
 * the claim.
 * @typedef {{ name: string, label: string, claim?: readonly string[], must?: true, guarded?: true, prefix?: string, help?: string, placeholder?: string, options?: [string, string][] }} Question
 * @typedef {Record<string, string>} Answers
 * @typedef {{ subject: string, condition: string }} Rules
 * @typedef {Record<string, unknown>} Claims
 */
/**
 * `issuer` matches its URLs, `url` is how to find it. `recipe`: the heading of the manual. `write` and `read` are for platforms whose rules are more
 * than a comparison of each claim.
 * @typedef {{ label: string, issuer: RegExp, url?: string, host?: string, recipe?: string, audience?: string, questions: readonly Question[], always?: string, write?: (answers: Answers) => Rules, read?: (claims: Claims) => Answers }} Platform
 */

/** A string in CEL. @param {string | undefined} text */
const quote = (text) => JSON.stringify(text ?? '')
/** @param {(string | false | undefined | '')[]} parts */
const all = (...parts) => parts.filter(Boolean).join(' && ')
/** A claim in CEL. @param {readonly string[]} path */
export const claimText = (path) =>
  `claims${path.map((name) => (/^[a-z_]\w*$/i.test(name) ? `.${name}` : `[${quote(name)}]`)).join('')}`
const none = { subject: '', condition: '' }

/** @type {[string, string][]} */
const refs = [
  ['branch', 'a branch'],
  ['environment', 'an environment'],
  ['tag', 'a tag'],
]

/** @param {Claims} claims @param {readonly string[]} path */
const valueAt = (claims, path) => path.reduce((/** @type {any} */ value, name) => value?.[name], claims)

/** @param {Claims} claims @param {...string} path */
function textAt(claims, ...path) {
  const value = valueAt(claims, path)
  return ['string', 'number'].includes(typeof value) ? String(value) : ''
}

/** Where a job runs: its environment, or its branch or tag. @param {Claims} claims @returns {Answers} */
function placeIn(claims) {
  const environment = textAt(claims, 'environment')
  if (environment !== '') return { kind: 'environment', value: environment }
  const [, found, name] = /^refs\/(heads|tags)\/(.+)/.exec(textAt(claims, 'ref')) ?? []
  return found === undefined ? {} : { kind: found === 'tags' ? 'tag' : 'branch', value: name ?? '' }
}

const inCluster = /** @type {const} */ (['kubernetes.io', 'serviceaccount', 'uid'])
/** @type {Pick<Platform, 'recipe' | 'audience' | 'questions' | 'write' | 'read'>} */
const kubernetes = {
  recipe: 'Kubernetes',
  audience: 'latchkey',
  questions: [
    { name: 'namespace', label: 'Namespace', placeholder: 'batch' },
    { name: 'account', label: 'Service account', placeholder: 'summarizer' },
    {
      name: 'uid',
      label: 'Its uid',
      help: 'If namespaces change hands: `kubectl get serviceaccount NAME -o jsonpath={.metadata.uid}`',
    },
  ],
  write: ({ namespace, account, uid }) => ({
    subject: namespace && account ? `system:serviceaccount:${namespace}:${account}` : '',
    condition: uid ? `${claimText(inCluster)} == ${quote(uid)}` : '',
  }),
  read: (claims) => {
    const [, namespace = '', account = ''] = /^system:serviceaccount:([^:]+):(.+)/.exec(textAt(claims, 'sub')) ?? []
    return { namespace, account, uid: textAt(claims, ...inCluster) }
  },
}

/** @type {Record<string, Platform>} */
export const platforms = {
  github: {
    label: 'GitHub',
    issuer: /^https:..token\.actions\.|_services.token$/,
    host: 'token.actions.githubusercontent.com',
    recipe: 'GitHub Actions',
    questions: [
      {
        name: 'repositoryId',
        label: 'Repository id',
        placeholder: '797215326',
        help: 'Survives a rename. To print it: `gh api repos/acme/app --jq .id`',
      },
      { name: 'owner', label: 'Organization', placeholder: 'acme', help: 'Only without the id' },
      { name: 'repository', label: 'Repository', placeholder: 'app', help: 'Only without the id' },
      { name: 'kind', label: 'Limit to', options: refs },
      { name: 'value', label: 'Its name', placeholder: 'main' },
    ],
    // No subject: repositories created since July 2026 send one with ids, and older ones another.
    write: ({ owner, repository, repositoryId, kind = 'branch', value }) => {
      const ref = `refs/${kind === 'tag' ? 'tags' : 'heads'}/${value}`
      const place =
        value && (kind === 'environment' ? `claims.environment == ${quote(value)}` : `claims.ref == ${quote(ref)}`)
      const source = repositoryId
        ? `claims.repository_id == ${quote(repositoryId)}`
        : owner && repository && `claims.repository == ${quote(`${owner}/${repository}`)}`
      return { subject: '', condition: source && place ? all(source, place) : '' }
    },
    read: (claims) => {
      const [owner = '', repository = ''] = textAt(claims, 'repository').split('/')
      return { repositoryId: textAt(claims, 'repository_id'), owner, repository, ...placeIn(claims) }
    },
  },
  gitlab: {
    label: 'GitLab',
    issuer: /gitlab/,
    host: 'gitlab.com',
    recipe: 'GitLab CI',
    questions: [
      {
        name: 'projectId',
        label: 'Project id',
        placeholder: '4711',
        help: 'Survives a rename; it is on the page of the project',
      },
      { name: 'project', label: 'Project path', placeholder: 'acme/app', help: 'Only without the id' },
      {
        name: 'kind',
        label: 'Limit to',
        options: refs.map(([kind, words]) => [kind, kind === 'environment' ? words : `a protected ${kind}`]),
      },
      { name: 'value', label: 'Its name', placeholder: 'main' },
    ],
    write: ({ project, projectId, kind = 'branch', value }) => {
      const ofRef = all(
        `claims.ref == ${quote(value)}`,
        `claims.ref_type == ${quote(kind)}`,
        'claims.ref_protected == "true"',
      )
      const place = value && (kind === 'environment' ? `claims.environment == ${quote(value)}` : ofRef)
      if (projectId) return { subject: '', condition: all(`claims.project_id == ${quote(projectId)}`, place) }
      if (!project || !value) return none
      return kind === 'environment'
        ? { subject: '', condition: all(`claims.project_path == ${quote(project)}`, place) }
        : { subject: `project_path:${project}:ref_type:${kind}:ref:${value}`, condition: '' }
    },
    read: (claims) => {
      const [environment, value] = [textAt(claims, 'environment'), textAt(claims, 'ref')]
      const place = environment
        ? { kind: 'environment', value: environment }
        : { kind: textAt(claims, 'ref_type') || 'branch', value }
      return { projectId: textAt(claims, 'project_id'), project: textAt(claims, 'project_path'), ...place }
    },
  },
  kubernetes: {
    label: 'Kubernetes',
    issuer: /kubernetes|\.svc/,
    url: '`kubectl get --raw /.well-known/openid-configuration`',
    ...kubernetes,
  },
  eks: {
    label: 'Amazon EKS',
    issuer: /^https:..oidc\.eks\./,
    url: '`aws eks describe-cluster --name NAME --query cluster.identity.oidc.issuer`',
    ...kubernetes,
  },
  gke: {
    label: 'Google GKE',
    issuer: /^https:..container\.googleapis\./,
    url: 'the path of the cluster at container.googleapis.com: `gcloud container clusters describe NAME --format "value(selfLink)"`',
    ...kubernetes,
  },
  aks: {
    label: 'Azure AKS',
    issuer: /^https:..[^/]*prod-aks\.azure\./,
    url: '`az aks show --name NAME --resource-group GROUP --query oidcIssuerProfile.issuerUrl`',
    ...kubernetes,
  },
  entra: {
    label: 'Microsoft Entra',
    issuer: /^https:..(login\.microsoftonline|login\.partner\.microsoftonline|sts\.windows)\./,
    url: 'login.microsoftonline.com, the id of your tenant, and v2.0',
    recipe: 'Microsoft Entra',
    questions: [
      {
        name: 'object',
        label: 'Object id of the identity',
        claim: ['oid'],
        must: true,
        help: 'Not of its application: `az ad sp show --id APPLICATION_ID --query id`',
      },
      { name: 'tenant', label: 'Tenant id', claim: ['tid'] },
    ],
  },
  okta: {
    label: 'Okta',
    issuer: /^https:..[^/]+\.(okta|oktapreview|okta-emea)\.com\b/,
    url: 'a custom authorization server: its issuer URI ends in /oauth2/ and an id',
    recipe: 'Okta',
    questions: [{ name: 'client', label: 'Client id', claim: ['cid'], must: true, placeholder: '0oa1b2c3d4' }],
  },
  google: {
    label: 'Google',
    issuer: /^https:..accounts\.google\.com$/,
    host: 'accounts.google.com',
    questions: [
      {
        name: 'account',
        label: 'Unique id of the service account',
        claim: ['sub'],
        must: true,
        placeholder: '104479897743394244856',
        help: 'An email can be used again: `gcloud iam service-accounts describe EMAIL --format "value(uniqueId)"`',
      },
    ],
  },
  aws: {
    label: 'AWS',
    issuer: /\.tokens\.sts\.global\.api\.aws/,
    url: '`aws iam get-outbound-web-identity-federation-info`',
    recipe: 'AWS',
    questions: [
      {
        name: 'role',
        label: 'ARN of the role',
        claim: ['sub'],
        must: true,
        placeholder: 'arn:aws:iam::123456789012:role/batch',
      },
    ],
  },
  buildkite: {
    label: 'Buildkite',
    issuer: /^https:..agent\.buildkite\.com/,
    host: 'agent.buildkite.com',
    recipe: 'Buildkite',
    questions: [
      {
        name: 'pipeline',
        label: 'Pipeline id',
        claim: ['pipeline_id'],
        must: true,
        guarded: true,
        help: 'In the settings of the pipeline. The step requests its token with `--claim pipeline_id`',
      },
      { name: 'branch', label: 'Branch', claim: ['build_branch'], placeholder: 'main' },
      { name: 'step', label: 'Step key', claim: ['step_key'], placeholder: 'deploy' },
    ],
  },
  circleci: {
    label: 'CircleCI',
    issuer: /^https:..oidc\.circleci\.com/,
    url: 'oidc.circleci.com/org/ and the id of the organization, which is in its settings',
    recipe: 'CircleCI',
    questions: [
      {
        name: 'project',
        label: 'Project id',
        claim: ['oidc.circleci.com/project-id'],
        must: true,
        help: 'In the settings of the project',
      },
      {
        name: 'origin',
        label: 'Repository',
        claim: ['oidc.circleci.com/vcs-origin'],
        must: true,
        placeholder: 'github.com/acme/app',
        help: 'A fork has the same branches',
      },
      {
        name: 'branch',
        label: 'Branch',
        claim: ['oidc.circleci.com/vcs-ref'],
        must: true,
        prefix: 'refs/heads/',
        placeholder: 'main',
      },
    ],
    // A rerun with SSH gives a person a shell in the job.
    always: `${claimText(['oidc.circleci.com/ssh-rerun'])} == false`,
  },
  terraform: {
    label: 'HCP Terraform',
    issuer: /^https:..app(\.eu)?\.terraform\.io/,
    host: 'app.terraform.io',
    questions: [
      {
        name: 'workspace',
        label: 'Workspace id',
        claim: ['terraform_workspace_id'],
        must: true,
        placeholder: 'ws-mbsd5E3Ktt5Rg2Xm',
        help: 'In the settings of the workspace',
      },
      {
        name: 'organization',
        label: 'Organization id',
        claim: ['terraform_organization_id'],
        placeholder: 'org-GRNbCjYNpBB6NEBi',
      },
      {
        name: 'phase',
        label: 'Phase',
        claim: ['terraform_run_phase'],
        must: true,
        help: 'Plans of pull requests run in the same workspace',
        options: [
          ['apply', 'apply'],
          ['plan', 'plan'],
        ],
      },
    ],
  },
  spiffe: {
    label: 'SPIFFE',
    issuer: /spire|spiffe/,
    url: 'the `jwt_issuer` of SPIRE',
    recipe: 'SPIFFE',
    questions: [
      {
        name: 'id',
        label: 'SPIFFE ID',
        claim: ['sub'],
        must: true,
        placeholder: `spiffe:/${'/example.org/ns/batch/sa/reports'}`,
        help: '`spire-agent api fetch jwt` shows it',
      },
    ],
  },
  keycloak: {
    label: 'Keycloak',
    issuer: /\/realms\//,
    url: 'the URL of the realm',
    recipe: 'Keycloak',
    questions: [
      {
        name: 'client',
        label: 'Client id',
        claim: ['azp'],
        placeholder: 'batch',
        help: 'The claim `azp`: `sub` is only the id of its service account',
      },
      { name: 'role', label: 'Realm role', placeholder: 'inference' },
    ],
    write: ({ client, role }) => ({
      subject: '',
      condition: all(client && `claims.azp == ${quote(client)}`, role && `${quote(role)} in claims.realm_access.roles`),
    }),
    read: (claims) => ({ client: textAt(claims, 'azp') }),
  },
  other: { label: 'Other', issuer: /(?!)/, questions: [] },
}

/** The options of a question count from the start. @param {Question} question @param {Answers} answers */
const answerTo = ({ name, options }, answers) => answers[name] ?? options?.[0]?.[0] ?? ''

/** Subject and condition of a policy. @param {string} platform @param {Answers} answers @returns {Rules} */
export function rulesOf(platform, answers) {
  const { write, questions = [], always } = platforms[platform] ?? {}
  if (write !== undefined) return write(answers)
  const asked = questions.map((question) => ({ ...question, answer: answerTo(question, answers) }))
  const isOpen = asked.some(({ must, answer }) => must && answer === '')
  if (isOpen || !asked.some(({ answer }) => answer !== '')) return none
  const ofSubject = asked.find(({ claim = [] }) => claim.join() === 'sub')
  const parts = asked.flatMap(({ claim = [], guarded, prefix = '', answer }) => {
    if (claim.join() === 'sub' || answer === '') return []
    const compared = `${claimText(claim)} == ${quote(prefix + answer)}`
    return [guarded ? `has(${claimText(claim)}) && ${compared}` : compared]
  })
  return { subject: ofSubject?.answer ?? '', condition: all(...parts, always) }
}

/** What a token answers. @param {string} platform @param {Claims} claims @returns {Answers} */
export function answersIn(platform, claims) {
  const { read, questions = [] } = platforms[platform] ?? {}
  if (read !== undefined) return read(claims)
  return Object.fromEntries(
    questions.map(({ name, claim = [], prefix = '' }) => {
      const text = textAt(claims, ...claim)
      return [name, text.startsWith(prefix) ? text.slice(prefix.length) : '']
    }),
  )
}

/** Claims that only tokens of a platform have, for issuers whose URL says nothing. @type {readonly [string, string][]} */
const marks = [
  ['kubernetes.io', 'kubernetes'],
  ['repository_owner_id', 'github'],
  ['project_path', 'gitlab'],
  ['terraform_workspace_id', 'terraform'],
  ['pipeline_slug', 'buildkite'],
  ['realm_access', 'keycloak'],
]

/** @param {string} issuerUrl @param {Claims} [claims] of a token */
export function guessPlatform(issuerUrl, claims = {}) {
  const found = Object.entries(platforms).find(([, { issuer }]) => issuer.test(issuerUrl))
  if (found !== undefined) return found[0]
  if (textAt(claims, 'sub').startsWith('spiffe:')) return 'spiffe'
  return marks.find(([claim]) => claim in claims)?.[1] ?? 'other'
}

/** Commands that make issuer and policy, with their further lines. */
const adminCommands = /^latchkey (?:issuers|policies) .*\n?(?:[ \t]+.*\n?)*/gm

/**
 * The lines for the workload, of a section of the manual: the policy exists, so nothing explains or makes it.
 * @param {readonly import('../types.ts').Block[]} section
 */
export function linesForWorkload(section) {
  const isForWorkload = (/** @type {import('../types.ts').Block} */ block) => block.kind !== 'code' || block.text !== ''
  const rest = section
    .map((block) =>
      block.kind === 'code' ? { ...block, text: block.text.replaceAll(adminCommands, '').trim() } : block,
    )
    .filter(isForWorkload)
  const explains = rest.some((block) => block.kind === 'paragraph' && block.text.includes('Policy:'))
  const first = rest.findIndex(({ kind }) => kind === 'code')
  return explains ? rest.slice(Math.max(first, 0)) : rest
}
