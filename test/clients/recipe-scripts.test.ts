// The shell scripts of the recipes for platforms, run with a stand-in for the platform's own command, and the settings of coding agents.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Federation,
  type Finished,
  listenLocally,
  runCommand,
  startFederation,
  temporaryFolder,
} from '../support/latchkey.ts'
import { codeUnder } from '../support/manual.ts'

const folder = temporaryFolder()
const inFolder = (name: string) => join(folder.path, name)
const accessToken = /^ey[\w-]+\.[\w-]+\.[\w-]+$/
let federation: Federation
let env: Record<string, string>
let stopPlatform: () => Promise<void>

beforeAll(async () => {
  federation = await startFederation()
  const subjectToken = await federation.mint()
  const platform = await listenLocally(async (request) => {
    const isAsked = new URL(request.url).searchParams.get('audience') === 'https://llm.example.com'
    const isCaller = request.headers.get('authorization') === 'Bearer of the job'
    return isAsked && isCaller ? Response.json({ value: subjectToken }) : new Response('refused', { status: 403 })
  })
  stopPlatform = () => platform.listener.drain()
  mkdirSync(inFolder('bin'))
  writeCommand('buildkite-agent', 'oidc request-token --audience https://llm.example.com')
  writeCommand('circleci', 'run oidc get --claims {"aud": "https://llm.example.com"}')
  writeFileSync(inFolder('token'), subjectToken)
  env = {
    PATH: `${inFolder('bin')}:${process.env.PATH}`,
    LATCHKEY: federation.server.baseUrl,
    POLICY: federation.policy.id,
    JWT: subjectToken,
    JWT_FILE: inFolder('token'),
    LATCHKEY_JWT: subjectToken,
    ACTIONS_ID_TOKEN_REQUEST_URL: `${platform.url}/?api-version=2`,
    ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'of the job',
    GITHUB_ENV: inFolder('github-env'),
    BASH_ENV: inFolder('bash-env'),
  }
  writeFileSync(inFolder('bash-env'), '')
})
afterAll(async () => {
  await Promise.all([federation.stop(), stopPlatform()])
  folder.remove()
})

/** A command that prints the workload's JWT for exactly these arguments. */
function writeCommand(name: string, args: string): void {
  const path = inFolder(join('bin', name))
  writeFileSync(path, `#!/bin/sh\n[ "$*" = '${args}' ] && echo "$JWT"\n`)
  chmodSync(path, 0o755)
}

/** The script at a place in the YAML of a recipe, its lines joined where it is a list. */
function scriptAt(heading: string, ...path: (string | number)[]): string {
  let value = Bun.YAML.parse(codeUnder(heading, 'yaml'))
  for (const step of path) value = (value as Record<string | number, unknown>)[step]
  return [value].flat().join('\n')
}

function run(script: string, more: Record<string, string> = {}): Promise<Finished> {
  return runCommand(['-eo', 'pipefail', '-c', script], {
    cwd: folder.path,
    env: { ...env, ...more },
    program: ['bash'],
  })
}

const lacksTools = ['bash', 'curl', 'jq'].some((tool) => Bun.which(tool) === null)
const needs = '(needs bash, curl and jq)'
/** Each with the script as the platform would run it, and what prints the token afterward. */
const platforms: [name: string, script: string, print: string][] = [
  ['GitHub Actions', scriptAt('GitHub Actions', 'steps', 0, 'run'), 'sed -n s/^OPENAI_API_KEY=//p "$GITHUB_ENV"'],
  ['GitLab CI', scriptAt('GitLab CI', 'ask', 'script'), 'echo "$TOKEN"'],
  ['Buildkite', scriptAt('Buildkite', 'steps', 0, 'command').replaceAll('$$', '$'), 'echo "$OPENAI_API_KEY"'],
  ['CircleCI', scriptAt('CircleCI', 'jobs', 'ask', 'steps', 0, 'run'), '. "$BASH_ENV"; echo "$OPENAI_API_KEY"'],
  ['Print a token for other programs', codeUnder('Print a token for other programs', 'sh'), ''],
]
for (const [name, script, print] of platforms) {
  test.skipIf(lacksTools)(`${name}: the script gets an access token, and fails with the error ${needs}`, async () => {
    const exchanged = await run(`${script}\n${print}`)
    expect(exchanged).toMatchObject({ code: 0, stderr: '' })
    expect(exchanged.stdout.trim().split('\n').at(-1)).toMatch(accessToken)
    const unknown = { POLICY: crypto.randomUUID() }
    const refused = await run(`${script}\necho went on`, unknown)
    expect(refused).toMatchObject({ stdout: '', stderr: expect.stringContaining('invalid_grant') })
    expect(refused.code).not.toBe(0)
  })
}

test.skipIf(lacksTools)(`Kubernetes: the mounted token is exchanged ${needs}`, async () => {
  const { code, stdout } = await run(codeUnder('Kubernetes', 'sh').replace('/var/run/latchkey/token', '$JWT_FILE'))
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ token_type: 'Bearer' })
})

test('Claude Code and Codex CLI run the script of the manual against the same server', () => {
  const claude = JSON.parse(codeUnder('Claude Code', 'json')) as { apiKeyHelper: string; env: Record<string, string> }
  const codex = Bun.TOML.parse(codeUnder('Codex CLI', 'toml')) as {
    model_providers: { latchkey: { base_url: string; auth: { command: string; refresh_interval_ms: number } } }
  }
  const { base_url, auth } = codex.model_providers.latchkey
  expect(claude.apiKeyHelper).toBe(auth.command)
  expect(`${claude.env.ANTHROPIC_BASE_URL}/v1`).toBe(base_url)
  expect(readFileSync(join(import.meta.dirname, '../../src/manual/recipes.md'), 'utf8')).toContain(
    `Save this script as \`${auth.command}\``,
  )
  for (const milliseconds of [auth.refresh_interval_ms, Number(claude.env.CLAUDE_CODE_API_KEY_HELPER_TTL_MS)])
    expect(milliseconds).toBeLessThan(15 * 60 * 1_000)
})
