// Third-party programs from real installations: nginx, Prometheus and Portkey's gateway. A test that needs one is
// skipped if the machine lacks it, and says so in its name; .ci/run installs them.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { temporaryFolder } from './latchkey.ts'
import { until } from './until.ts'

export type RealPart = { url: string; stop: () => Promise<void> }

export const hasNginx = Bun.which('nginx') !== null

/** Starts an nginx with `servers` inside its `http` block. `{port}` is its port and `{folder}` a writable folder. */
export async function startNginx(servers: string): Promise<RealPart & { folder: string }> {
  const { path: folder, remove } = temporaryFolder()
  const port = await freePort()
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  // The default folders are writable only by root.
  for (const kind of kinds) mkdirSync(join(folder, kind))
  const temporary = kinds.map((kind) => `${kind}_temp_path ${join(folder, kind)};`).join(' ')
  const inside = servers.replaceAll('{port}', String(port)).replaceAll('{folder}', folder)
  const user = process.getuid?.() === 0 ? 'user root;' : ''
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; ${user} pid nginx.pid; error_log stderr;
    events {}
    http { access_log off; ${temporary} ${inside} }`,
  )
  const command = ['nginx', '-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr']
  const url = `http://127.0.0.1:${port}`
  const stop = await startChild(command, url)
  return {
    url,
    folder,
    stop: async () => {
      await stop()
      remove()
    },
  }
}

export const hasPrometheus = Bun.which('prometheus') !== null && Bun.which('promtool') !== null

/** A Prometheus that scrapes one job, named latchkey, twice a second, and evaluates the rules of a file. */
export async function startPrometheus(target: string, rulesFile: string): Promise<RealPart> {
  const { path: folder, remove } = temporaryFolder()
  const port = await freePort()
  const config = {
    global: { scrape_interval: '500ms', scrape_timeout: '500ms', evaluation_interval: '500ms' },
    rule_files: [rulesFile],
    scrape_configs: [{ job_name: 'latchkey', static_configs: [{ targets: [target] }] }],
  }
  // JSON is YAML.
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config))
  const command = [
    'prometheus',
    `--config.file=${join(folder, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ]
  const url = `http://127.0.0.1:${port}`
  const stop = await startChild(command, `${url}/-/ready`)
  return {
    url,
    stop: async () => {
      await stop()
      remove()
    },
  }
}

/**
 * About eighty packages that only this test needs. They are not dependencies of the project but installed separately,
 * on request.
 */
const gatewayFolder = join(import.meta.dirname, '../../node_modules/.cache/portkey')
const gatewayProgram = join(gatewayFolder, 'node_modules/@portkey-ai/gateway/build/start-server.js')

export const hasGateway = existsSync(gatewayProgram)

/**
 * Installs Portkey's gateway unless it is installed, and returns its program.
 * @throws if the package registry is unreachable
 */
export function installGateway(): string {
  if (existsSync(gatewayProgram)) return gatewayProgram
  mkdirSync(gatewayFolder, { recursive: true })
  // Its streams fail on Node 20 with newer server versions.
  const overrides = { '@hono/node-server': '1.14.0' }
  const wanted = { dependencies: { '@portkey-ai/gateway': '1.15.2' }, overrides }
  writeFileSync(join(gatewayFolder, 'package.json'), JSON.stringify(wanted))
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, 'install', '--ignore-scripts'], { cwd: gatewayFolder })
  if (exitCode !== 0) throw new Error(`Portkey's gateway cannot be installed: ${stderr}`)
  return gatewayProgram
}

export async function startGateway(): Promise<RealPart> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const command = [process.execPath, gatewayProgram, '--headless', `--port=${port}`]
  return { url, stop: await startChild(command, url, { NODE_ENV: 'production' }) }
}

/** Waits until a server responds at `url`. */
async function startChild(command: string[], url: string, env = {}): Promise<() => Promise<void>> {
  const child = Bun.spawn(command, {
    env: { ...process.env, ...env },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'ignore',
  })
  const isAnswered = async () => {
    if (child.exitCode !== null) throw new Error(`${command[0]} ended with ${child.exitCode}`)
    return fetch(url).then(
      () => true,
      () => false,
    )
  }
  await until(command.join(' '), isAnswered)
  return async () => {
    child.kill()
    await child.exited
  }
}

if (import.meta.main) installGateway()
