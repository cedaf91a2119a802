// Files that give jobs and pods their tokens: their scripts run as the platforms run them, with stand-ins for the platforms.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildPortableFiles } from '../../scripts/build/release/portable-files.ts'
import action from '../../scripts/deploy/github-action.yml' with { type: 'text' }
import component from '../../scripts/deploy/gitlab-component.yml' with { type: 'text' }
import sidecar from '../../scripts/deploy/kubernetes-sidecar.yaml' with { type: 'text' }
import { kubernetesTokenPath } from '../../src/agent/identity.ts'
import { type Federation, listenLocally, runCommand, startFederation, temporaryFolder } from '../support/latchkey.ts'

const folder = temporaryFolder()
const inFolder = (name: string) => join(folder.path, name)
const asks = 'curl -s -H "Authorization: Bearer $OPENAI_API_KEY" "$OPENAI_BASE_URL/models" | grep -o echo'
let federation: Federation
let platform: Awaited<ReturnType<typeof listenLocally>>
let runner: Record<string, string>

beforeAll(async () => {
  await buildPortableFiles(folder.path, 'test')
  federation = await startFederation()
  const jwt = await federation.mint()
  platform = await listenLocally(async (request) => {
    const isAsked = new URL(request.url).searchParams.get('audience') === 'https://llm.example.com'
    const isJob = request.headers.get('authorization') === 'Bearer of-the-job'
    return isAsked && isJob ? Response.json({ value: jwt }) : new Response('refused', { status: 403 })
  })
  runner = { PATH: process.env.PATH ?? '', HOME: folder.path, XDG_RUNTIME_DIR: folder.path }
})
afterAll(async () => {
  await Promise.all([federation.stop(), platform.listener.drain()])
  folder.remove()
})

const runShell = (shell: string, script: string, env: Record<string, string>) =>
  runCommand(['-ec', script], { cwd: folder.path, env, program: [shell] })

/** Puts values in the place of `${{ inputs.x }}` or `$[[ inputs.x ]]`, or the default of the input. */
function fillIn(text: string, inputs: Record<string, { default?: string }>, values: Record<string, string>): string {
  return text.replaceAll(/\$(?:\{\{|\[\[) inputs\.([\w-]+) (?:\}\}|\]\])/g, (_, name: string) => {
    const input = inputs[name]
    if (input === undefined) throw new Error(`The file has no input ${name}`)
    const value = values[name] ?? input.default
    if (value === undefined) throw new Error(`The input ${name} has no value`)
    return value
  })
}

describe('the GitHub action', () => {
  type Step = { name: string; shell: string; env: Record<string, string>; run: string }
  type Action = { inputs: Record<string, { default?: string }>; runs: { using: string; steps: Step[] } }
  const { inputs, runs } = Bun.YAML.parse(action) as Action
  const setUp = async (values: Record<string, string>, more: Record<string, string> = {}) => {
    const [step] = runs.steps
    mkdirSync(inFolder('action'), { recursive: true })
    copyFileSync(inFolder('latchkey-agent.mjs'), inFolder('action/latchkey-agent.mjs'))
    for (const name of ['github-env', 'github-path']) writeFileSync(inFolder(name), '')
    const job: Record<string, string> = {
      ...runner,
      GITHUB_ACTIONS: 'true',
      GITHUB_ACTION_PATH: inFolder('action'),
      GITHUB_ENV: inFolder('github-env'),
      GITHUB_PATH: inFolder('github-path'),
      RUNNER_TEMP: inFolder('temp'),
      ACTIONS_ID_TOKEN_REQUEST_URL: `${platform.url}/?api-version=2`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'of-the-job',
      ...more,
    }
    const given = { url: federation.server.baseUrl, policy: federation.policy.id, runtime: process.execPath, ...values }
    const env = Object.entries(step?.env ?? {}).map(([name, value]) => [name, fillIn(value, inputs, given)] as const)
    const finished = await runShell('bash', step?.run ?? '', { ...job, ...Object.fromEntries(env) })
    const later = readFileSync(inFolder('github-env'), 'utf8').trim().split('\n')
    const named = later
      .filter((line) => line !== '')
      .map((line) => line.split(/=(.*)/s).slice(0, 2) as [string, string])
    const path = `${readFileSync(inFolder('github-path'), 'utf8').trim()}:${job.PATH}`
    return { finished, laterEnv: { ...job, ...Object.fromEntries(named), PATH: path } }
  }

  test('is one composite step without code of others', () => {
    expect(runs.using).toBe('composite')
    expect(runs.steps.map((step) => [step.shell, 'uses' in step])).toEqual([['bash', false]])
    // Inputs reach the script as variables, where they cannot become commands.
    expect(runs.steps[0]?.run).not.toContain('${{')
  })

  test.skipIf(Bun.which('curl') === null)('gives later steps the command latchkey (needs curl)', async () => {
    const { finished, laterEnv } = await setUp({ audience: 'https://llm.example.com' })
    expect(finished).toEqual({ code: 0, stdout: '', stderr: '' })
    const step = await runShell('sh', `latchkey exec -- sh -c '${asks}'`, laterEnv)
    expect(step).toEqual({ code: 0, stdout: 'echo\n', stderr: '' })
    expect(readFileSync(inFolder('github-env'), 'utf8')).not.toContain('eyJ')
  })

  test('fails at once for a wrong policy, and for a job without permission', async () => {
    const wrong = await setUp({ audience: 'https://llm.example.com', policy: crypto.randomUUID() })
    expect(wrong.finished).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('(request id ') })
    const forbidden = await setUp({}, { ACTIONS_ID_TOKEN_REQUEST_URL: '', ACTIONS_ID_TOKEN_REQUEST_TOKEN: '' })
    expect(forbidden.finished).toMatchObject({ code: 1, stderr: expect.stringContaining('id-token: write') })
  })
})

describe('the GitLab component', () => {
  type Job = { id_tokens: object; variables: Record<string, string>; before_script: string[] }
  type Spec = { spec: { inputs: Record<string, { default?: string }> } }
  const parse = (text: string) => Bun.YAML.parse(text) as [Spec, { '.latchkey': Job }]
  const [{ spec }] = parse(component)
  const fill = (values: Record<string, string>) => parse(fillIn(component, spec.inputs, values))[1]['.latchkey']

  test.skipIf(Bun.which('curl') === null)('gives a job the command latchkey (needs curl)', async () => {
    const job = fill({
      url: federation.server.baseUrl,
      policy: federation.policy.id,
      audience: 'https://llm.example.com',
      agent: inFolder('latchkey-agent.mjs'),
      runtime: process.execPath,
    })
    expect(job.id_tokens).toEqual({ LATCHKEY_JWT: { aud: 'https://llm.example.com' } })
    const env = { ...runner, ...job.variables, GITLAB_CI: 'true', LATCHKEY_JWT: await federation.mint() }
    const script = [...job.before_script, `latchkey exec -- sh -c '${asks}'`].join('\n')
    expect(await runShell('sh', script, env)).toEqual({ code: 0, stdout: 'echo\n', stderr: '' })
    const lacking = await runShell('sh', script, { ...env, LATCHKEY_JWT: '' })
    expect(lacking).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('id_tokens: LATCHKEY_JWT') })
  })

  test('asks for what has no default', () => {
    expect(() => fill({ url: 'https://llm.example.com/v1', policy: 'p' })).toThrow('audience has no value')
  })
})

describe('the sidecar', () => {
  type Mount = { name: string; mountPath: string }
  type Container = {
    name: string
    command: string[]
    restartPolicy?: string
    env: { name: string; value: string }[]
    securityContext: object
    startupProbe: { exec: { command: string[] } }
    volumeMounts: Mount[]
  }
  type Pod = { securityContext: object; initContainers: Container[]; containers: Container[]; volumes: object[] }
  type Manifest = { kind: string; spec: { template: { spec: Pod } } }
  const manifests = (Bun.YAML.parse(sidecar) as (Manifest | null)[]).filter((each) => each !== null)
  const pod = manifests.find(({ kind }) => kind === 'Deployment')?.spec.template.spec
  const [agent] = pod?.initContainers ?? []

  test('has no rights, a read-only root, and a token for Latchkey where the agent looks for it', () => {
    expect(agent?.restartPolicy).toBe('Always')
    const restricted = {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    }
    for (const container of [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])])
      expect(container.securityContext).toEqual(restricted)
    const token = { serviceAccountToken: { audience: 'latchkey', expirationSeconds: 600, path: 'token' } }
    expect(pod?.volumes).toContainEqual({ name: 'token', projected: { sources: [token] } })
    expect(`${agent?.volumeMounts.find(({ name }) => name === 'token')?.mountPath}/token`).toBe(kubernetesTokenPath)
  })

  test('runs commands that the portable file has, on the address that the program calls', async () => {
    const [, , ...args] = agent?.startupProbe.exec.command ?? []
    const probe = await runCommand(args, {
      cwd: folder.path,
      program: [process.execPath, inFolder('latchkey-agent.mjs')],
    })
    expect(probe).toMatchObject({ stderr: '', code: expect.any(Number) })
    expect(['ready', 'not_ready', 'unreachable']).toContain(probe.stdout.trim())
    const address = agent?.command.at(-1)
    expect(agent?.command.slice(2)).toEqual(['agent', '--listen', String(address)])
    expect(args).toEqual(['agent', '--ready', '--listen', String(address)])
    const urls = pod?.containers[0]?.env.filter(({ name }) => name.endsWith('_URL')).map(({ value }) => value)
    expect(urls).toEqual([`http://${address}/v1`, `http://${address}`])
    const names = agent?.env.map(({ name }) => name)
    expect(names).toEqual(['LATCHKEY_URL', 'LATCHKEY_POLICY', 'LATCHKEY_IDENTITY'])
  })
})

test('service print prints each of them', async () => {
  for (const [file, text] of Object.entries({ sidecar, 'github-action': action, 'gitlab-component': component })) {
    const printed = await runCommand(['service', 'print', file], { cwd: folder.path })
    expect(printed).toEqual({ code: 0, stdout: `${text.trimEnd()}\n`, stderr: '' })
  }
})
