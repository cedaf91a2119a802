// What the gateway is measured against: the upstream with nothing between, and others that stand between as Latchkey does.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTestIssuer } from '../../scripts/dev/test-issuer.ts'
import { freePort } from '../support/free-port.ts'
import { audience, listenLocally, mintAt, postExchange, subject } from '../support/latchkey.ts'
import { installGateway } from '../support/real-parts.ts'
import { benchFolder, type Contestant, installLatchkey, spawnServer } from './measure.ts'

export type Gateway = Contestant & {
  url: string
  headers: Record<string, string>
  /** New ones, good for a quarter of an hour; requests use them in turn. */
  credentials: () => Promise<string[]>
}

const bun = process.execPath
const path = '/v1/chat/completions'
const callers = 50
const tokenSecondsMax = 900

export async function startUpstream(env: Record<string, string> = {}): Promise<Gateway & { origin: string }> {
  const { pid, port, stop } = await spawnServer([bun, 'test/bench/upstream.ts'], { env })
  const origin = `http://127.0.0.1:${port}`
  return { name: 'upstream', origin, url: origin + path, headers: {}, credentials: anybody, pid, stop }
}

export async function startBareProxy(origin: string): Promise<Gateway> {
  const { pid, port, stop } = await spawnServer([bun, 'test/bench/bare-proxy.ts', origin])
  return passingOn('bare proxy', pid, port, stop)
}

export async function startBareGuard(origin: string, env: Record<string, string> = {}): Promise<Gateway> {
  const { pid, port, stop } = await spawnServer([bun, 'test/bench/bare-guard.ts', origin], { env })
  const credentials = async () => (await fetch(`http://127.0.0.1:${port}/tokens?count=${callers}`)).json()
  return { ...passingOn('bare guard', pid, port, stop), credentials }
}

/** What is not installed and left out. */
type Missing = { missing: string }

/** nginx as its manual has it for a stream: kept connections, nothing buffered, no log. */
export async function startNginx(origin: string): Promise<Gateway | Missing> {
  if (Bun.which('nginx') === null) return { missing: 'nginx is not installed' }
  const folder = benchFolder()
  const port = await freePort()
  const passing =
    'proxy_pass http://upstream; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;'
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder};`)
  const configuration = `daemon off; worker_processes 1; pid ${folder}/nginx.pid; ${process.getuid?.() === 0 ? 'user root;' : ''}
    events {}
    http { access_log off; keepalive_requests 1000000; ${temporary.join(' ')}
      upstream upstream { server ${new URL(origin).host}; keepalive 64; keepalive_requests 1000000; }
      server { listen 127.0.0.1:${port}; location / { ${passing} } } }`
  writeFileSync(join(folder, 'nginx.conf'), configuration)
  const command = ['nginx', '-p', folder, '-c', 'nginx.conf', '-e', 'stderr']
  const { pid, stop } = await spawnServer(command, { port })
  return passingOn('nginx', pid, port, stop)
}

export async function startPortkey(runtime: 'Bun' | 'Node', origin: string): Promise<Gateway | Missing> {
  if (runtime === 'Node' && Bun.which('node') === null) return { missing: 'Node is not installed' }
  const port = await freePort()
  const command = [runtime === 'Bun' ? bun : 'node', installGateway(), '--headless', `--port=${port}`]
  const { pid, stop } = await spawnServer(command, { port, env: { NODE_ENV: 'production' } })
  const headers = { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${origin}/v1` }
  return { ...passingOn(`Portkey on ${runtime}`, pid, port, stop), headers }
}

/** One server, called with access tokens and with an API key. */
export async function startLatchkey(
  origin: string,
  more: Record<string, string> = {},
): Promise<{ withTokens: Gateway; withKey: Gateway }> {
  let issuerUrl = ''
  const { url: given } = await listenLocally(await createTestIssuer(() => issuerUrl))
  issuerUrl = given
  const { run, serve } = await installLatchkey({
    LATCHKEY_UPSTREAM_URL: `${origin}/v1`,
    LATCHKEY_UPSTREAM_API_KEY: 'upstream-secret',
    ...more,
  })
  const { key } = await run('keys', 'create', '--name', 'key')
  await run('issuers', 'add', '--name', 'idp', '--issuer-url', issuerUrl)
  const matching = ['--audience', audience, '--subject', subject]
  const { id } = await run('policies', 'create', '--name', 'bench', '--issuer', 'idp', '--key', 'key', ...matching)
  const { baseUrl, pid, stop } = await serve()
  const exchange = async () => {
    const subject_token = await mintAt(issuerUrl)
    const reply = await postExchange(baseUrl, { federation_policy_id: id, subject_token })
    const { access_token, expires_in } = (await reply.json()) as { access_token: string; expires_in: number }
    if (expires_in !== tokenSecondsMax) throw new Error(`The token lives for ${expires_in} seconds`)
    return access_token
  }
  const common = { url: `${baseUrl}/chat/completions`, headers: {}, pid, stop }
  const credentials = () => Promise.all(Array.from({ length: callers }, exchange))
  return {
    withTokens: { ...common, name: 'latchkey', credentials },
    withKey: { ...common, name: 'latchkey with an API key', credentials: async () => [key] },
  }
}

const anybody = async () => ['anybody']

function passingOn(name: string, pid: number, port: number, stop: Gateway['stop']): Gateway {
  return { name, url: `http://127.0.0.1:${port}${path}`, headers: {}, credentials: anybody, pid, stop }
}
