// Recorded environments of the platforms, made from their documentation: which identity each shows, and what is said
// when a part is missing.
import { describe, expect, test } from 'bun:test'
import {
  detectIdentity,
  distinguishIdentity,
  type Environment,
  kubernetesTokenPath,
  nameIdentity,
  parseIdentity,
} from '../../src/agent/identity.ts'
import { distinguishContent, type Platform, readIdentityToken } from '../../src/agent/identity-token.ts'
import { thisMachine } from '../../src/agent/this-machine.ts'

const jwt = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ3In0.c2ln'
const audience = { value: 'https://llm.example.com', isDefault: true }
const named = { value: 'api://latchkey', isDefault: false }

const githubJob = {
  CI: 'true',
  GITHUB_ACTIONS: 'true',
  GITHUB_REPOSITORY: 'octo-org/octo-repo',
  ACTIONS_ID_TOKEN_REQUEST_URL: 'https://pipelines.actions.githubusercontent.com/x/idtoken?api-version=2.0',
  ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'of-the-job',
}
const gitlabJob = { CI: 'true', GITLAB_CI: 'true', CI_SERVER_URL: 'https://gitlab.com', LATCHKEY_JWT: jwt }
const buildkiteJob = { CI: 'true', BUILDKITE: 'true', BUILDKITE_JOB_ID: '0184990a-477b-4fa8-9968-496074483cee' }
const circleJob = { CI: 'true', CIRCLECI: 'true', CIRCLE_OIDC_TOKEN: 'v1', CIRCLE_OIDC_TOKEN_V2: jwt }
const pod = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' }
const appService = { IDENTITY_ENDPOINT: 'http://127.0.0.1:41741/msi/token/', IDENTITY_HEADER: 'of-the-app' }

type Asked = { url: string; headers: Record<string, string> } | { program: string; args: readonly string[] }

/** A platform that answers every question, and what it was asked. */
function platformOf(
  environment: Environment,
  {
    files = {},
    response = () => new Response(jwt),
  }: { files?: Record<string, string>; response?: () => Response } = {},
): { platform: Platform; asked: Asked[] } {
  const asked: Asked[] = []
  const platform: Platform = {
    environment,
    folder: '/',
    readFile: async (path) => {
      const text = files[path]
      if (text === undefined) throw Object.assign(new Error('not found'), { code: 'ENOENT' })
      return text
    },
    fetch: async (url, { headers }) => {
      asked.push({ url, headers: headers as Record<string, string> })
      return response()
    },
    findIdToken: async ({ url, policy }) => {
      asked.push({ program: 'login', args: [url, policy] })
      return jwt
    },
    fetchSvid: async (socket, wanted) => {
      asked.push({ program: socket, args: [wanted] })
      return jwt
    },
    run: async (program, args) => {
      asked.push({ program, args })
      return `${jwt}\n`
    },
  }
  return { platform, asked }
}

const login = { url: 'https://llm.example.com/v1', policy: 'p' }

describe('an environment shows the identity', () => {
  const environments: [name: string, environment: Environment, identity: string][] = [
    ['of GitHub', githubJob, 'github'],
    ['of GitHub before the container that runs it', { ...pod, ...githubJob }, 'github'],
    ['of GitHub without permission, to say what is missing', { GITHUB_ACTIONS: 'true' }, 'github'],
    ['of GitLab', gitlabJob, 'gitlab:LATCHKEY_JWT'],
    ['of GitLab on a runner in Kubernetes', { ...pod, ...gitlabJob }, 'gitlab:LATCHKEY_JWT'],
    ['of Buildkite', buildkiteJob, 'buildkite'],
    ['of CircleCI', circleJob, 'circleci'],
    ['of Kubernetes', pod, 'kubernetes'],
    ['in a named file, before all others', { ...githubJob, LATCHKEY_IDENTITY_TOKEN_FILE: '/t' }, 'file:/t'],
  ]
  for (const [name, environment, identity] of environments)
    test(name, () => expect(nameIdentity(detectIdentity(environment))).toBe(identity))

  test('never of a metadata service: nothing asks one unless its user names it', () => {
    const azure = { ...appService, AZURE_CLIENT_ID: 'c', AZURE_FEDERATED_TOKEN_FILE: '/var/run/secrets/azure/token' }
    const google = { GOOGLE_CLOUD_PROJECT: 'p', K_SERVICE: 'run', GCE_METADATA_HOST: 'metadata.google.internal' }
    for (const environment of [{}, azure, google, { GITLAB_CI: 'false', LATCHKEY_IDENTITY_TOKEN_FILE: '' }])
      expect(() => detectIdentity(environment)).toThrow('No identity was found in this environment')
  })
})

test('a value of --identity is a known form; no other is repeated, since it can be a token', () => {
  const forms = [
    'file:a:b',
    'env:A_B',
    'github',
    'gitlab:X',
    'kubernetes',
    'azure',
    'gcp',
    'spiffe:/svid',
    'command:a b',
  ]
  for (const form of forms) expect(nameIdentity(parseIdentity(form, login))).toBe(form)
  expect(nameIdentity(parseIdentity('gitlab', login))).toBe('gitlab:LATCHKEY_JWT')
  for (const wrong of ['', jwt, 'file:', 'env:1A', 'env:A B', 'github:x', 'GitHub', `vault:${jwt}`]) {
    expect(() => parseIdentity(wrong, login)).toThrow('is not a valid value for --identity')
    expect(() => parseIdentity(wrong, login)).not.toThrow(jwt)
  }
})

describe('the token comes', () => {
  const sources: [name: string, identity: string, audience: typeof named, environment: Environment, asked: Asked[]][] =
    [
      ['from a variable', 'env:TOKEN', named, { TOKEN: ` ${jwt}\n` }, []],
      ['from the ID token of GitLab', 'gitlab:LATCHKEY_JWT', named, gitlabJob, []],
      ['from the variable of CircleCI, for its own audience', 'circleci', audience, circleJob, []],
      [
        'from the program of CircleCI, for another audience',
        'circleci',
        named,
        circleJob,
        [{ program: 'circleci', args: ['run', 'oidc', 'get', '--claims', '{"aud":"api://latchkey"}'] }],
      ],
      [
        'from the agent of Buildkite',
        'buildkite',
        audience,
        buildkiteJob,
        [{ program: 'buildkite-agent', args: ['oidc', 'request-token', '--audience', 'https://llm.example.com'] }],
      ],
      [
        'from the SPIFFE Workload API',
        'spiffe:unix:///run/spire/agent.sock',
        audience,
        {},
        [{ program: '/run/spire/agent.sock', args: ['https://llm.example.com'] }],
      ],
      ['from a command', 'command:print it', named, {}, [{ program: '/bin/sh', args: ['-c', 'print it'] }]],
      [
        'from the metadata service of Google',
        'gcp',
        audience,
        {},
        [
          {
            url: 'http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/identity?audience=https%3A%2F%2Fllm.example.com&format=full',
            headers: { 'metadata-flavor': 'Google' },
          },
        ],
      ],
    ]
  for (const [name, identity, wanted, environment, expected] of sources) {
    test(name, async () => {
      const { platform, asked } = platformOf(environment)
      expect(await readIdentityToken(parseIdentity(identity, login), wanted, platform)).toBe(jwt)
      expect(asked).toEqual(expected)
    })
  }

  test('from a file, read again each time', async () => {
    const files: Record<string, string> = { '/t': `${jwt}\n`, '/var/run/latchkey/token': jwt }
    const { platform } = platformOf(pod, { files })
    const read = (identity: string) => readIdentityToken(parseIdentity(identity, login), audience, platform)
    expect([await read('file:/t'), await read('spiffe:/t'), await read('kubernetes')]).toEqual([jwt, jwt, jwt])
    files['/t'] = 'a.b.c'
    expect(await read('file:/t')).toBe('a.b.c')
  })

  test('from GitHub, with the audience in the URL and the credential of the job in a header', async () => {
    const { platform, asked } = platformOf(githubJob, { response: () => Response.json({ value: jwt }) })
    expect(await readIdentityToken({ kind: 'github' }, audience, platform)).toBe(jwt)
    const url = `${githubJob.ACTIONS_ID_TOKEN_REQUEST_URL}&audience=https%3A%2F%2Fllm.example.com`
    expect(asked).toEqual([{ url, headers: { authorization: 'Bearer of-the-job', accept: 'application/json' } }])
  })

  test('from Azure: the metadata service, or the endpoint of an app', async () => {
    const response = () => Response.json({ access_token: jwt, token_type: 'Bearer' })
    const machine = platformOf({ AZURE_CLIENT_ID: 'user-assigned' }, { response })
    expect(await readIdentityToken({ kind: 'azure' }, named, machine.platform)).toBe(jwt)
    const resource = 'resource=api%3A%2F%2Flatchkey'
    const imds = 'http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01'
    expect(machine.asked).toEqual([
      { url: `${imds}&${resource}&client_id=user-assigned`, headers: { metadata: 'true' } },
    ])
    const app = platformOf(appService, { response })
    expect(await readIdentityToken({ kind: 'azure' }, named, app.platform)).toBe(jwt)
    const endpoint = `${appService.IDENTITY_ENDPOINT}?api-version=2019-08-01&${resource}`
    expect(app.asked).toEqual([{ url: endpoint, headers: { 'x-identity-header': 'of-the-app' } }])
  })
})

describe('the failure names', () => {
  const missing: [name: string, identity: string, environment: Environment, message: string, hint: string][] = [
    ['the variable', 'env:TOKEN', {}, 'variable TOKEN is not set', 'set it'],
    ['the file', 'file:/none', {}, 'file /none does not exist', 'check the path'],
    ['the file of a SPIFFE helper', 'spiffe:/svid', {}, 'file /svid does not exist', 'jwt_svid_file_name'],
    ['the mount of a pod', 'kubernetes', pod, '/var/run/latchkey/token does not exist', 'serviceAccountToken'],
    ['the permission of GitHub', 'github', { GITHUB_ACTIONS: 'true' }, 'REQUEST_URL is not set', 'id-token: write'],
    [
      'the second variable of GitHub',
      'github',
      { ...githubJob, ACTIONS_ID_TOKEN_REQUEST_TOKEN: '' },
      'REQUEST_TOKEN is not set',
      'id-token: write',
    ],
    [
      'the URL of GitHub that is not encrypted',
      'github',
      { ...githubJob, ACTIONS_ID_TOKEN_REQUEST_URL: 'http://example.com/t' },
      'must start with https://',
      '',
    ],
    ['the ID token of GitLab', 'gitlab:LATCHKEY_JWT', { GITLAB_CI: 'true' }, 'LATCHKEY_JWT is not set', 'id_tokens'],
    ['the token of CircleCI', 'circleci', { CIRCLECI: 'true' }, 'CIRCLE_OIDC_TOKEN_V2 is not set', 'forks'],
    ['the audience of Azure', 'azure', {}, 'azure needs an audience', '--audience'],
    ['an empty file', 'file:/empty', {}, 'file:/empty is empty', ''],
    ['a file without a JWT', 'file:/text', {}, 'file:/text is not a JWT', ''],
    ['a file that is too long', 'file:/long', {}, 'file:/long is longer than 16 KB', ''],
  ]
  const files = { '/empty': '\n', '/text': 'hello', '/long': `${jwt}${'a'.repeat(20_000)}` }
  for (const [name, identity, environment, message, hint] of missing) {
    test(name, async () => {
      const { platform } = platformOf(environment, { files })
      const failed = readIdentityToken(parseIdentity(identity, login), audience, platform)
      await expect(failed).rejects.toMatchObject({
        code: 'unavailable',
        message: expect.stringContaining(message),
        hint: expect.stringContaining(hint),
      })
    })
  }

  test('the header that an app of Azure lacks, and the status of a token service', async () => {
    const { IDENTITY_ENDPOINT } = appService
    const app = platformOf({ IDENTITY_ENDPOINT }).platform
    await expect(readIdentityToken({ kind: 'azure' }, named, app)).rejects.toThrow('IDENTITY_HEADER is not set')
    const refused = platformOf({}, { response: () => new Response('no', { status: 404 }) }).platform
    await expect(readIdentityToken({ kind: 'gcp' }, audience, refused)).rejects.toThrow('responded with 404')
    const odd = platformOf(githubJob, { response: () => Response.json({ token: jwt }) }).platform
    await expect(readIdentityToken({ kind: 'github' }, audience, odd)).rejects.toThrow('without value')
  })
})

test('two jobs of one user on one runner differ, and the same job does not', () => {
  const pairs: [identity: string, one: Environment, other: Environment][] = [
    ['env:TOKEN', { TOKEN: 'a' }, { TOKEN: 'b' }],
    ['gitlab', { LATCHKEY_JWT: 'a' }, { LATCHKEY_JWT: 'b' }],
    ['github', githubJob, { ...githubJob, ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'b' }],
    ['buildkite', buildkiteJob, { ...buildkiteJob, BUILDKITE_JOB_ID: 'b' }],
    ['circleci', circleJob, { ...circleJob, CIRCLE_OIDC_TOKEN_V2: 'b' }],
  ]
  for (const [identity, one, other] of pairs) {
    const textIn = (environment: Environment) => distinguishIdentity(parseIdentity(identity, login), environment)
    expect(textIn(one)).toBe(textIn({ ...one }))
    expect(textIn(one)).not.toBe(textIn(other))
  }
})

test('one file that belongs to two workloads in turn differs, and a renewed token of one workload does not', async () => {
  const tokenOf = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`
  const textOf = (identity: string, claims: object, folder = '/') => {
    const files = { '/t': tokenOf(claims), [kubernetesTokenPath]: tokenOf(claims) }
    return distinguishContent(parseIdentity(identity, login), audience, {
      ...platformOf({}, { files }).platform,
      folder,
    })
  }
  const workload = { iss: 'https://idp', sub: 'one', iat: 1, exp: 2, jti: 'a' }
  for (const identity of ['file:/t', 'spiffe:/t', 'kubernetes']) {
    const text = await textOf(identity, workload)
    expect(await textOf(identity, { jti: 'b', exp: 4, iat: 3, sub: 'one', iss: 'https://idp' })).toBe(text)
    expect(await textOf(identity, { ...workload, sub: 'other' })).not.toBe(text)
    expect(await textOf(identity, { ...workload, environment: 'production' })).not.toBe(text)
  }
  expect(await textOf('command:./jwt', workload, '/a')).not.toBe(await textOf('command:./jwt', workload, '/b'))
  expect(await textOf('file:/none', workload)).toBe('')
})

test('a file that never ends, a folder and a damaged token are refused with a sentence', async () => {
  const read = (path: string) => readIdentityToken({ kind: 'file', path }, audience, thisMachine)
  await expect(read('/dev/zero')).rejects.toThrow('The identity file /dev/zero is longer than 64 KB')
  await expect(read('/')).rejects.toThrow('The identity file / is a folder')
})
