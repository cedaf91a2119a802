// Which identity a workload has: the value of --identity as a typed record, and what an environment shows without being
// asked. It reads variables only; identity-token.ts gets the token.
import { Fault } from '../fault.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** Where a workload's JWT comes from. */
export type Identity =
  | { kind: 'file' | 'spiffe'; path: string }
  | { kind: 'env' | 'gitlab'; name: string }
  | { kind: 'command'; command: string }
  /** A person who signed in with `latchkey login`, to the server and for the policy. */
  | { kind: 'login'; url: string; policy: string }
  | { kind: 'github' | 'kubernetes' | 'buildkite' | 'circleci' | 'azure' | 'gcp' }

/** Names a file with the token; part of the detection. */
export const tokenFileVariable = 'LATCHKEY_IDENTITY_TOKEN_FILE'
/** Where the manual mounts the projected service account token (Kubernetes: Projected volumes, serviceAccountToken). */
export const kubernetesTokenPath = '/var/run/latchkey/token'
/** The ID token that the manual gives to GitLab jobs (GitLab CI/CD YAML: id_tokens). */
const gitlabVariable = 'LATCHKEY_JWT'

export const identityForms =
  'file:PATH, env:NAME, github, gitlab:NAME, kubernetes, buildkite, circleci, azure, gcp, spiffe:FILE, spiffe:unix:SOCKET, command:CMD or login'

const plainKinds = ['github', 'kubernetes', 'buildkite', 'circleci', 'azure', 'gcp'] as const

/** What `login` needs to name a login. */
type Target = { url: string; policy: string }

/** Parses the value of --identity or LATCHKEY_IDENTITY. Throws a `usage` fault that lists the forms. */
export function parseIdentity(text: string, { url, policy }: Target): Identity {
  const plain = plainKinds.find((kind) => kind === text)
  if (plain !== undefined) return { kind: plain }
  if (text === 'login') return { kind: 'login', url, policy }
  if (text === 'gitlab') return { kind: 'gitlab', name: gitlabVariable }
  const split = text.indexOf(':')
  const kind = text.slice(0, Math.max(split, 0))
  const rest = text.slice(split + 1)
  if (rest !== '') {
    if (kind === 'file' || kind === 'spiffe') return { kind, path: rest }
    if (kind === 'command') return { kind, command: rest }
    if ((kind === 'env' || kind === 'gitlab') && /^[A-Za-z_]\w*$/.test(rest)) return { kind, name: rest }
  }
  // The text can be a token that somebody put here by mistake.
  const shown = kind === '' ? 'The value' : JSON.stringify(`${kind}:…`)
  throw new Fault('usage', `${shown} is not a valid value for --identity: use ${identityForms}`)
}

/** Each platform in order of detection, with the variable that marks it and the identity that it stands for. */
const markers: readonly { variable: string; value?: string; identity: Identity }[] = [
  { variable: 'ACTIONS_ID_TOKEN_REQUEST_URL', identity: { kind: 'github' } },
  { variable: 'GITHUB_ACTIONS', value: 'true', identity: { kind: 'github' } },
  { variable: 'GITLAB_CI', value: 'true', identity: { kind: 'gitlab', name: gitlabVariable } },
  { variable: 'BUILDKITE', value: 'true', identity: { kind: 'buildkite' } },
  { variable: 'CIRCLECI', value: 'true', identity: { kind: 'circleci' } },
  { variable: 'KUBERNETES_SERVICE_HOST', identity: { kind: 'kubernetes' } },
]

/**
 * Finds the identity of a workload whose user names none. The first that applies wins: a token file, GitHub, GitLab,
 * Buildkite, CircleCI, Kubernetes, a login of this user. CI comes before Kubernetes, because runners are often pods.
 * Metadata services are never asked. Throws a fault that names what to set if nothing applies.
 */
export function detectIdentity(environment: Environment, login?: Target): Identity {
  const path = environment[tokenFileVariable]
  if (path !== undefined && path !== '') return { kind: 'file', path }
  const found = markers.find(({ variable, value }) => {
    const text = environment[variable] ?? ''
    return value === undefined ? text !== '' : text === value
  })
  if (found !== undefined) return found.identity
  if (login !== undefined) return { kind: 'login', ...login }
  throw new Fault('unavailable', 'No identity was found in this environment', {
    hint: `: people run latchkey login URL; for a workload, set LATCHKEY_IDENTITY or --identity to ${identityForms}`,
  })
}

/** The identity in the form that --identity takes. */
export function nameIdentity(identity: Identity): string {
  if ('path' in identity) return `${identity.kind}:${identity.path}`
  if ('name' in identity) return `${identity.kind}:${identity.name}`
  return 'command' in identity ? `command:${identity.command}` : identity.kind
}

/**
 * Returns what separates two workloads of one user that have the same kind of identity, such as two CI jobs on one
 * runner. A cached token must never serve the other one. The text can contain secrets: only its hash may be stored.
 */
export function distinguishIdentity(identity: Identity, environment: Environment): string {
  const variables = 'name' in identity ? [identity.name] : (distinguishing[identity.kind] ?? [])
  return JSON.stringify([nameIdentity(identity), ...variables.map((name) => environment[name] ?? '')])
}

const distinguishing: Partial<Record<Identity['kind'], readonly string[]>> = {
  github: ['ACTIONS_ID_TOKEN_REQUEST_URL', 'ACTIONS_ID_TOKEN_REQUEST_TOKEN'],
  buildkite: ['BUILDKITE_JOB_ID'],
  circleci: ['CIRCLE_OIDC_TOKEN_V2'],
  azure: ['AZURE_CLIENT_ID', 'IDENTITY_ENDPOINT'],
}
