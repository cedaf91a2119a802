// What a policy must compare for each platform: asks for names and ids, and writes subject and condition. Ids are preferred,
// since nobody else can register them again.

/**
 * @typedef {Record<string, string>} Answers
 * @typedef {{ name: string, label: string, help?: string, placeholder?: string, options?: [string, string][] }} Question
 * @typedef {{ label: string, host?: string, questions: Question[], write: (answers: Answers) => { subject: string, condition: string } }} Platform
 */

/** A string in CEL. @param {string | undefined} text */
const quote = (text) => JSON.stringify(text ?? '')
/** @param {(string | false | undefined | '')[]} parts */
const all = (...parts) => parts.filter(Boolean).join(' && ')

/** @type {Record<string, Platform>} */
export const platforms = {
  github: {
    label: 'GitHub',
    host: 'token.actions.githubusercontent.com',
    questions: [
      { name: 'owner', label: 'Organization', placeholder: 'acme' },
      { name: 'repository', label: 'Repository', placeholder: 'app' },
      {
        name: 'repositoryId',
        label: 'Repository id',
        placeholder: '797215326',
        help: 'Survives a rename. To print it: `gh api repos/acme/app --jq .id`',
      },
      {
        name: 'kind',
        label: 'Limit to',
        options: [
          ['branch', 'a branch'],
          ['environment', 'an environment'],
          ['tag', 'a tag'],
        ],
      },
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
  },
  gitlab: {
    label: 'GitLab',
    host: 'gitlab.com',
    questions: [
      { name: 'project', label: 'Project path', placeholder: 'acme/app' },
      {
        name: 'projectId',
        label: 'Project id',
        placeholder: '4711',
        help: 'Survives a rename; it is on the page of the project',
      },
      {
        name: 'kind',
        label: 'Limit to',
        options: [
          ['branch', 'a protected branch'],
          ['tag', 'a protected tag'],
          ['environment', 'an environment'],
        ],
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
      if (!project || !value) return { subject: '', condition: '' }
      return kind === 'environment'
        ? { subject: '', condition: all(`claims.project_path == ${quote(project)}`, place) }
        : { subject: `project_path:${project}:ref_type:${kind}:ref:${value}`, condition: '' }
    },
  },
  kubernetes: {
    label: 'Kubernetes',
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
      condition: uid ? `claims["kubernetes.io"].serviceaccount.uid == ${quote(uid)}` : '',
    }),
  },
  keycloak: {
    label: 'Keycloak',
    questions: [
      {
        name: 'client',
        label: 'Client id',
        placeholder: 'batch',
        help: 'The claim `azp`: `sub` is only the id of its service account',
      },
      { name: 'role', label: 'Realm role', placeholder: 'inference' },
    ],
    write: ({ client, role }) => ({
      subject: '',
      condition: all(client && `claims.azp == ${quote(client)}`, role && `${quote(role)} in claims.realm_access.roles`),
    }),
  },
  other: { label: 'Other', questions: [], write: () => ({ subject: '', condition: '' }) },
}

/** @param {string} issuerUrl */
export function guessPlatform(issuerUrl) {
  const found = Object.entries(platforms).find(([, { host }]) => host !== undefined && issuerUrl.includes(host))
  if (found !== undefined) return found[0]
  return /kubernetes|\.svc|eks|oidc\.prod-aks|container\.googleapis/.test(issuerUrl)
    ? 'kubernetes'
    : /\/realms\//.test(issuerUrl)
      ? 'keycloak'
      : /gitlab/.test(issuerUrl)
        ? 'gitlab'
        : 'other'
}
