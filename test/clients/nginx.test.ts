// nginx in front, configured as the README says: the audit has the client's address and not the proxy's.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  type Federation,
  listenLocally,
  type Row,
  runCommand,
  startFederation,
  temporaryFolder,
} from '../support/latchkey.ts'
import { until } from '../support/until.ts'

const readme = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')
/** Elsewhere 127.0.0.2 is not an address of the machine. */
const lacks = process.platform !== 'linux' || ['nginx', 'curl'].some((tool) => !Bun.which(tool))
const folder = temporaryFolder()
let federation: Federation
let nginx: Bun.Subprocess
let proxyUrl: string
beforeAll(async () => {
  if (lacks) return
  federation = await startFederation({ settings: { LATCHKEY_TRUSTED_PROXIES: '127.0.0.1' } })
  const port = await freePort()
  proxyUrl = `http://127.0.0.1:${port}`
  const location = /```nginx\n([\s\S]*?)```/.exec(readme)?.[1]?.replace('127.0.0.1:8787', addressOf(federation)) ?? ''
  writeFileSync(
    join(folder.path, 'nginx.conf'),
    `daemon off; master_process off; pid nginx.pid; error_log stderr;
    events {}
    http { access_log off; ${temporaryPaths()} server { listen 127.0.0.1:${port}; ${location} } }`,
  )
  const command = ['nginx', '-p', folder.path, '-c', join(folder.path, 'nginx.conf'), '-e', 'stderr']
  nginx = Bun.spawn(command, { stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' })
  await until('nginx', () =>
    fetch(`${proxyUrl}/v1/oauth/jwks`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
})
afterAll(async () => {
  nginx?.kill('SIGTERM')
  await nginx?.exited
  await federation?.stop()
  folder.remove()
})

function addressOf({ server }: Federation): string {
  return `${server.address.hostname}:${server.address.port}`
}

async function freePort(): Promise<number> {
  const { listener } = await listenLocally(async () => new Response())
  await listener.drain()
  return listener.port
}

/** nginx keeps request bodies in files, by default where only root may write. */
function temporaryPaths(): string {
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  for (const kind of kinds) mkdirSync(join(folder.path, kind))
  return kinds.map((kind) => `${kind}_temp_path ${join(folder.path, kind)};`).join(' ')
}

test.skipIf(lacks)('the audit has the address of the client (needs Linux, nginx and curl)', async () => {
  const args = ['-sS', '--interface', '127.0.0.2', `${proxyUrl}/v1/oauth/token`, '-d', 'grant_type=none']
  const { code, stdout } = await runCommand(args, { cwd: folder.path, program: [Bun.which('curl') ?? ''] })
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('unsupported_grant_type') })
  const { data } = await federation.admin<{ data: Row[] }>('audit.list', { limit: 1 })
  expect(data).toMatchObject([{ client_address: '127.0.0.2' }])
})
