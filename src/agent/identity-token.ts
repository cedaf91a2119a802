// Gets the workload's JWT from its platform, again for each exchange. The outside world is an argument.
import { Fault } from '../fault.ts'
import { type Fetch, fetchText } from './bounded-fetch.ts'
import { type Environment, type Identity, kubernetesTokenPath, nameIdentity } from './identity.ts'
import { loginPath, readLogin } from './login-files.ts'
import { lastingClaims } from './unverified-claims.ts'

/**
 * `folder` is the current one. `readFile` rejects for a file that is longer than any token. `run` returns standard output,
 * and rejects unless the program ends with exit code 0. `fetchSvid` asks the SPIFFE Workload API.
 */
export type Platform = {
  environment: Environment
  folder: string
  readFile: (path: string) => Promise<string>
  fetch: Fetch
  run: (program: string, args: readonly string[]) => Promise<string>
  fetchSvid: (socketPath: string, audience: string) => Promise<string>
  /** The ID token of a person who has signed in (login-token.ts). */
  findIdToken: (login: { url: string; policy: string }) => Promise<string>
}

/** `audience` is what the token must be for. `isDefault`: nobody named it, it is the origin of the base URL. */
export type Audience = { value: string; isDefault: boolean }

const subjectTokenCharactersMax = 16 * 1024

/** Returns the JWT. Throws a fault that names what is missing, and never contains the token. */
export async function readIdentityToken(identity: Identity, audience: Audience, platform: Platform): Promise<string> {
  const token = (await read(identity, audience, platform)).trim()
  const name = identity.kind === 'command' ? 'command' : nameIdentity(identity)
  if (token === '') throw failure(`The identity ${name} is empty`)
  if (token.length > subjectTokenCharactersMax)
    throw failure(`The identity ${name} is longer than 16 KB, the limit for a JWT`)
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token))
    throw failure(`The identity ${name} is not a JWT: it must be three parts of base64url text, separated by dots`)
  return token
}

function read(identity: Identity, audience: Audience, platform: Platform): Promise<string> {
  switch (identity.kind) {
    case 'file':
      return readTokenFile(identity.path, platform, 'check the path, and who can read the file')
    case 'spiffe':
      return readSvid(identity.path, audience, platform)
    case 'kubernetes':
      return readTokenFile(kubernetesTokenPath, platform, kubernetesHint)
    case 'env':
      return Promise.resolve(variable(identity.name, platform, 'set it, or choose a different --identity'))
    case 'gitlab':
      return Promise.resolve(variable(identity.name, platform, `add id_tokens: ${identity.name}: aud: to the job`))
    case 'login':
      return platform.findIdToken(identity)
    case 'command':
      return run('/bin/sh', ['-c', identity.command], platform, 'the command of --identity')
    case 'buildkite':
      return run('buildkite-agent', ['oidc', 'request-token', '--audience', audience.value], platform)
    case 'circleci':
      return readCircle(audience, platform)
    case 'github':
      return fetchGithub(audience, platform)
    case 'azure':
      return fetchAzure(audience, platform)
    case 'gcp':
      return fetchGoogle(audience, platform)
  }
}

/**
 * Returns what separates two workloads that name the same file or command: the claims in the file, or the folder in which
 * the command runs. The text can contain what is private: only its hash may be stored.
 */
export async function distinguishContent(identity: Identity, audience: Audience, platform: Platform): Promise<string> {
  const { readFile, folder } = platform
  if (identity.kind === 'command') return folder
  // After a new login, a token of the former person must not be used.
  if (identity.kind === 'login') return loginNameOf(identity, platform)
  if (identity.kind === 'spiffe') return readSvid(identity.path, audience, platform).then(lastingClaims, () => '')
  const path = 'path' in identity ? identity.path : identity.kind === 'kubernetes' ? kubernetesTokenPath : undefined
  if (path === undefined) return ''
  return readFile(path).then(lastingClaims, () => '')
}

function loginNameOf(identity: { url: string; policy: string }, { environment }: Platform): string {
  const login = readLogin(loginPath(environment, identity))
  return login === undefined ? '' : `${login.issuer} ${login.subject} ${login.signedInAt}`
}

// The default token of a pod is for the API server of the cluster, which must not go anywhere else.
const kubernetesHint =
  'mount a projected serviceAccountToken there, as in "latchkey help workloads", or use file: with its path'

const fileProblems: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  EACCES: 'is not readable by this user',
  EISDIR: 'is a folder',
  EFBIG: 'is longer than 64 KB',
}

/** The socket of the Workload API has the form of SPIFFE_ENDPOINT_SOCKET: unix:///run/spire/agent.sock, or unix:PATH. */
async function readSvid(path: string, { value }: Audience, platform: Platform): Promise<string> {
  if (!path.startsWith('unix:'))
    return readTokenFile(path, platform, 'check jwt_svid_file_name in the configuration of spiffe-helper')
  try {
    return await platform.fetchSvid(path.replace(/^unix:(\/\/)?/, ''), value)
  } catch (error) {
    throw failure(
      `Could not get a JWT-SVID from the SPIFFE Workload API at ${path}`,
      `${error instanceof Error ? error.message : String(error)}; check the socket, and that the workload is registered`,
    )
  }
}

async function readTokenFile(path: string, { readFile }: Platform, hint: string): Promise<string> {
  try {
    return await readFile(path)
  } catch (error) {
    const code = (error as { code?: unknown }).code
    throw failure(`The identity file ${path} ${fileProblems[String(code)] ?? 'cannot be read'}`, hint)
  }
}

function variable(name: string, { environment }: Platform, hint: string): string {
  const value = environment[name] ?? ''
  if (value === '') throw failure(`The environment variable ${name} is not set`, hint)
  return value
}

async function run(program: string, args: readonly string[], platform: Platform, name = program): Promise<string> {
  try {
    return await platform.run(program, args)
  } catch (error) {
    throw failure(`Could not get the identity from ${name}`, error instanceof Error ? error.message : String(error))
  }
}

/** CircleCI: OIDC tokens with custom claims. The token in the variable is for the organization id. */
function readCircle(audience: Audience, platform: Platform): Promise<string> {
  if (!audience.isDefault)
    return run('circleci', ['run', 'oidc', 'get', '--claims', JSON.stringify({ aud: audience.value })], platform)
  return Promise.resolve(
    variable(
      'CIRCLE_OIDC_TOKEN_V2',
      platform,
      'turn on OIDC tokens for the job; forks get none unless secrets are passed to them',
    ),
  )
}

/** GitHub: OpenID Connect reference, "Requesting the JWT using environment variables". */
async function fetchGithub({ value }: Audience, platform: Platform): Promise<string> {
  const permission = 'add "permissions: id-token: write" to the job'
  const url = new URL(variable('ACTIONS_ID_TOKEN_REQUEST_URL', platform, permission))
  const requestToken = variable('ACTIONS_ID_TOKEN_REQUEST_TOKEN', platform, permission)
  // A changed variable must not send the job's credential in the clear.
  if (url.protocol !== 'https:' && !isLoopback(url.hostname))
    throw failure('ACTIONS_ID_TOKEN_REQUEST_URL must start with https://')
  url.searchParams.set('audience', value)
  const headers = { authorization: `Bearer ${requestToken}`, accept: 'application/json' }
  return member(await ask('GitHub', url.href, headers, platform), 'value', 'GitHub')
}

/**
 * Azure: managed identities on a virtual machine (IMDS, 2018-02-01), or App Service and Container Apps (2019-08-01) if
 * IDENTITY_ENDPOINT is set.
 */
async function fetchAzure({ value, isDefault }: Audience, platform: Platform): Promise<string> {
  if (isDefault)
    throw failure(
      'The identity azure needs an audience',
      'set --audience to an application ID URI such as api://latchkey',
    )
  const { IDENTITY_ENDPOINT: endpoint = '', AZURE_CLIENT_ID: clientId = '' } = platform.environment
  const isApp = endpoint !== ''
  const url = new URL(isApp ? endpoint : 'http://169.254.169.254/metadata/identity/oauth2/token')
  url.searchParams.set('api-version', isApp ? '2019-08-01' : '2018-02-01')
  url.searchParams.set('resource', value)
  if (clientId !== '') url.searchParams.set('client_id', clientId)
  const headers: Record<string, string> = isApp
    ? {
        'x-identity-header': variable(
          'IDENTITY_HEADER',
          platform,
          'App Service sets it together with IDENTITY_ENDPOINT',
        ),
      }
    : { metadata: 'true' }
  return member(await ask('Azure', url.href, headers, platform), 'access_token', 'Azure')
}

/** Google: "Verify VM identity" (Compute Engine), the same on Cloud Run and GKE. */
function fetchGoogle({ value }: Audience, platform: Platform): Promise<string> {
  const url = new URL('http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/identity')
  url.searchParams.set('audience', value)
  url.searchParams.set('format', 'full')
  return ask('Google', url.href, { 'metadata-flavor': 'Google' }, platform)
}

async function ask(name: string, url: string, headers: Record<string, string>, platform: Platform): Promise<string> {
  const { status, text } = await fetchText(platform.fetch, url, { headers }, `The token service of ${name}`)
  if (status === 200) return text
  throw failure(
    `The token service of ${name} responded with ${status}`,
    'check the identity and permissions of this job or machine',
  )
}

function member(text: string, name: string, source: string): string {
  try {
    const value = (JSON.parse(text) as Record<string, unknown>)[name]
    if (typeof value === 'string') return value
  } catch {
    // Reported below.
  }
  throw failure(`The token service of ${source} sent a response without ${name}`)
}

/** Whether a host name of a URL is this machine. */
export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}

function failure(message: string, hint = ''): Fault {
  return new Fault('unavailable', message, { hint: hint === '' ? '' : `: ${hint}` })
}
