// Files for the programs around a server: each says what this program offers, and the programs that read them accept them.
import { afterAll, describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Ajv from 'ajv'
import { serverUrlProblem } from '../../db/remote/kinds.ts'
import { originsOf } from '../../db/remote/rqlite/rqlite-urls.ts'
import packageJson from '../../package.json' with { type: 'json' }
import { chartFiles, packChart } from '../../scripts/shared/helm-chart.ts'
import { renderTemplate } from '../../scripts/shared/helm-template.ts'
import availability from '../../src/manual/availability.md' with { type: 'text' }
import { settings } from '../../src/settings/settings.ts'
import { runCommand, temporaryFolder } from '../support/latchkey.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())
const run = (args: string[], env: Record<string, string> = {}) => runCommand(args, { cwd: folder.path, env })
const printed = async (file: string) => {
  const { code, stdout } = await run(['service', 'print', file])
  expect(code).toBe(0)
  return stdout
}
const has = (program: string) => Bun.which(program) !== null
const knownSettings = settings.map(({ env }) => env as string)
const settingsIn = (text: string) => [...text.matchAll(/\bLATCHKEY_[A-Z_]+\b/g)].map(([name]) => name)

function write(name: string, text: string): string {
  const path = join(folder.path, name)
  writeFileSync(path, text)
  return path
}

function runProgram(program: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    env: { ...process.env, HOME: folder.path },
  })
  return { status, text: `${stdout}${stderr}` }
}

type Container = { args: string[]; env: { name: string }[]; securityContext: object; volumeMounts: { name: string }[] }
type PodSpec = {
  containers: Container[]
  volumes: { name: string }[]
  terminationGracePeriodSeconds: number
  topologySpreadConstraints: object[]
}
type Manifest = { kind: string; metadata: { name: string }; spec: Record<string, unknown> }
function findKind(text: string, kind: string): Manifest {
  const found = parse(text).find((each) => each.kind === kind)
  if (found === undefined) throw new Error(`There is no ${kind}`)
  return found
}

const parse = (text: string) => (Bun.YAML.parse(text) as (Manifest | null)[]).filter((each) => each !== null)

test('every file names only settings that exist', async () => {
  for (const file of [
    'systemd',
    'container',
    'kubernetes',
    'kubernetes-nodes',
    'kubernetes-rqlite',
    'nginx',
    'nginx-nodes',
    'haproxy',
    'caddy',
    'logrotate',
  ]) {
    const named = settingsIn(await printed(file))
    expect(named.length).toBeGreaterThan(0)
    expect({ file, unknown: named.filter((name) => !knownSettings.includes(name)) }).toEqual({ file, unknown: [] })
  }
  expect(settingsIn(Object.values(chartFiles).join()).filter((name) => !knownSettings.includes(name))).toEqual([])
})

describe('the unit', () => {
  test('starts, checks and reloads this program with commands that exist', async () => {
    const lines = [...(await printed('systemd')).matchAll(/^Exec\w+=\/usr\/local\/bin\/latchkey ([a-z ]+) --config/gm)]
    expect(lines.map(([, line]) => line)).toEqual(['config check', 'migrate', 'serve', 'health', 'reload'])
    for (const [, line = ''] of lines) expect((await run([...line.split(' '), '--help'])).code).toBe(0)
  })

  test('gives a migration all the time it needs', async () => {
    expect(await printed('systemd')).toContain('\nTimeoutStartSec=infinity\n')
  })

  test.skipIf(!has('systemd-analyze'))('is accepted by systemd, with an exposure below 1.5', async () => {
    const path = write(
      'latchkey.service',
      (await printed('systemd')).replaceAll('/usr/local/bin/latchkey', '/bin/true'),
    )
    expect(runProgram('systemd-analyze', 'verify', path)).toEqual({ status: 0, text: '' })
    const { status, text } = runProgram('systemd-analyze', 'security', '--offline=true', '--threshold=15', path)
    expect(status, text).toBe(0)
    const open = write('open.service', '[Service]\nExecStart=/bin/true\n')
    expect(runProgram('systemd-analyze', 'security', '--offline=true', '--threshold=15', open).status).not.toBe(0)
  })
})

describe('the timer of doctor', () => {
  const bin = join(folder.path, 'timer-bin')
  const units = join(folder.path, 'timer-units')
  mkdirSync(bin)
  mkdirSync(units)
  const calls = join(folder.path, 'timer-calls')
  writeFileSync(join(bin, 'systemctl'), `#!/bin/sh\necho "$@" >> ${calls}\n`, { mode: 0o755 })

  test('is written and enabled by a script, and runs a command that exists', async () => {
    const path = write('doctor-timer.sh', await printed('doctor-timer'))
    const env = { PATH: `${bin}:/usr/bin:/bin`, UNIT_DIR: units }
    expect(spawnSync('sh', [path], { encoding: 'utf8', env })).toMatchObject({ status: 0, stdout: '', stderr: '' })
    expect(readFileSync(calls, 'utf8')).toBe('daemon-reload\nenable --now latchkey-doctor.timer\n')
    const unit = readFileSync(join(units, 'latchkey-doctor.service'), 'utf8')
    expect(unit).toContain('\nUser=latchkey\n')
    const [, line = ''] = /^ExecStart=\/usr\/local\/bin\/latchkey (\w+) --config/m.exec(unit) ?? []
    expect((await run([line, '--help'])).code).toBe(0)
    writeFileSync(join(units, 'latchkey-doctor.service'), unit.replace('/usr/local/bin/latchkey', '/bin/true'))
  })

  test.skipIf(!has('systemd-analyze'))('is accepted by systemd', () => {
    const paths = ['service', 'timer'].map((kind) => join(units, `latchkey-doctor.${kind}`))
    expect(runProgram('systemd-analyze', 'verify', ...paths)).toEqual({ status: 0, text: '' })
  })
})

test.skipIf(!has('logrotate'))('logrotate accepts its file', async () => {
  const rules = (await printed('logrotate')).replace('su latchkey latchkey', 'su root root')
  const { text } = runProgram('logrotate', '--debug', write('logrotate.conf', `${rules}\n`))
  expect(text).toContain('Handling 1 logs')
  expect(text).not.toContain('error: /')
})

describe('service install', () => {
  const bin = join(folder.path, 'bin')
  const units = join(folder.path, 'units')
  mkdirSync(bin)
  mkdirSync(units)
  const fake = (name: string, script: string) =>
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  fake('systemctl', `echo "$@" >> ${join(folder.path, 'calls')}`)
  const env = { PATH: `${bin}:/usr/bin:/bin` }
  const install = (...args: string[]) => run(['service', 'install', '--unit-dir', units, ...args], env)

  test('says how to create the user, if it is missing', async () => {
    fake('id', 'exit 1')
    expect(await install('--yes')).toMatchObject({ code: 3, stderr: expect.stringContaining('useradd --system') })
  })

  test('shows the unit and writes nothing without a confirmation', async () => {
    fake('id', 'exit 0')
    const shown = await install()
    expect(shown).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
    expect(shown.stdout).toContain('ProtectSystem=strict')
    expect(await Bun.file(join(units, 'latchkey.service')).exists()).toBe(false)
  })

  test('writes and enables it with --yes, with the settings file that was given', async () => {
    write('site.conf', '')
    const { code, stdout } = await install('--yes', '--json', '--config', 'site.conf')
    const unit = join(units, 'latchkey.service')
    expect([code, JSON.parse(stdout)]).toEqual([0, { unit, changed: true }])
    expect(readFileSync(unit, 'utf8')).toContain(`latchkey serve --config ${join(folder.path, 'site.conf')}\n`)
    expect(statSync(unit).mode & 0o777).toBe(0o644)
    expect(readFileSync(join(folder.path, 'calls'), 'utf8')).toBe('daemon-reload\nenable latchkey.service\n')
    expect(JSON.parse((await install('--yes', '--json', '--config', 'site.conf')).stdout)).toMatchObject({
      changed: false,
    })
  })

  test('reports what systemctl refused', async () => {
    fake('systemctl', 'echo "no bus" >&2; exit 1')
    expect(await install('--yes')).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('daemon-reload failed: no bus'),
    })
  })
})

test('the image runs as 65532 with a temporary folder that it names', async () => {
  const text = await printed('container')
  expect(text).toMatch(/^USER 65532:65532$/m)
  expect(text).toMatch(/^ {4}TMPDIR=\/tmp$/m)
  expect(text).toMatch(/^HEALTHCHECK .*CMD \["\/usr\/local\/bin\/latchkey", "health"\]$/m)
})

test('the manifests of a cluster have three databases, each on another machine, of which two always run', async () => {
  const text = await printed('kubernetes-rqlite')
  const database = findKind(text, 'StatefulSet')
  const { spec } = database.spec.template as {
    spec: { affinity: object; containers: (Container & { args: string[] })[] }
  }
  expect(JSON.stringify(spec.affinity)).toContain('requiredDuringSchedulingIgnoredDuringExecution')
  expect([database.spec.replicas, spec.containers[0]?.args.includes('-fk')]).toEqual([3, true])
  // An update goes on when the last one has all that was committed, which users.json of the manual lets everybody ask.
  expect(text).toContain('path: /readyz?sync&timeout=3s')
  expect(availability).toContain('{ "username": "*", "perms": ["ready"] }')
  const budgets = parse(text).filter(({ kind }) => kind === 'PodDisruptionBudget')
  expect(budgets.map(({ metadata, spec }) => [metadata.name, spec.maxUnavailable])).toEqual([
    ['latchkey', 1],
    ['latchkey-database', 1],
  ])
  const url = /rqlite:\/\/\S+/.exec(text)?.[0] ?? ''
  expect(serverUrlProblem(url)).toBeUndefined()
  expect(originsOf(url)).toHaveLength(3)
})

test('the manifests of several nodes share one database, and a new node is ready before an old one stops', async () => {
  const text = await printed('kubernetes-nodes')
  const nodes = findKind(text, 'Deployment')
  expect(nodes.spec).toMatchObject({ replicas: 3, strategy: { rollingUpdate: { maxUnavailable: 0 } } })
  const { spec } = nodes.spec.template as { spec: PodSpec & { initContainers: Container[] } }
  expect(spec.terminationGracePeriodSeconds).toBe(30)
  expect(spec.topologySpreadConstraints).toMatchObject([{ topologyKey: 'kubernetes.io/hostname', maxSkew: 1 }])
  expect(findKind(text, 'PodDisruptionBudget').spec).toMatchObject({ maxUnavailable: 1 })
  expect(text).not.toContain('volumeMounts: &mounts\n            - name: data')
  const [init, serve] = [...spec.initContainers, ...spec.containers]
  expect(serve?.env).toEqual(init?.env ?? [])
  const env = Object.fromEntries((serve?.env ?? []).map((each) => [each.name, (each as { value?: string }).value]))
  const service = parse(text).find(({ kind, metadata }) => kind === 'Service' && metadata.name === 'latchkey-database')
  expect(env.LATCHKEY_DATABASE_URL).toBe(`http://${service?.metadata.name}:8080`)
  for (const name of ['LATCHKEY_MASTER_KEY', 'LATCHKEY_DATABASE_TOKEN']) expect(Object.keys(env)).toContain(name)
})

describe('the manifests', () => {
  test('have a server, who may reach it, what Prometheus reads and a sample workload', async () => {
    const manifests = parse(await printed('kubernetes'))
    const names = manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    expect(names).toEqual([
      'ServiceAccount latchkey',
      'Service latchkey',
      'StatefulSet latchkey',
      'NetworkPolicy latchkey',
      'ServiceMonitor latchkey',
      'ServiceAccount latchkey-sample',
      'Job latchkey-sample',
    ])
    expect(manifests[3]?.spec).toMatchObject({
      ingress: [{ from: [{ namespaceSelector: { matchLabels: { 'latchkey/client': 'true' } } }] }],
      egress: [{ ports: [{ port: 53 }, { port: 53 }, { port: 443 }, { port: 6443 }, { port: 8000 }] }],
    })
  })

  test('run one process at a time, without rights, on a read-only root', async () => {
    const set = findKind(await printed('kubernetes'), 'StatefulSet')
    expect(set.spec.replicas).toBe(1)
    const { spec } = set.spec.template as {
      spec: Record<string, unknown> & { containers: Container[]; initContainers: Container[] }
    }
    expect(spec.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 65_532,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    expect([...spec.initContainers, ...spec.containers].map(({ args }) => args[0])).toEqual(['init', 'serve'])
    for (const container of [...spec.initContainers, ...spec.containers]) {
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
      expect(container.volumeMounts.map(({ name }) => name)).toEqual(['data', 'tmp'])
      expect(container.env.map(({ name }) => name)).toContain('LATCHKEY_MASTER_KEY')
    }
  })

  test('give the sample workload a token for Latchkey, and no other', async () => {
    const job = findKind(await printed('kubernetes'), 'Job')
    const { spec } = job.spec.template as { spec: { automountServiceAccountToken: boolean; volumes: object[] } }
    expect(spec.automountServiceAccountToken).toBe(false)
    const token = { serviceAccountToken: { audience: 'latchkey', expirationSeconds: 600, path: 'token' } }
    expect(spec.volumes).toEqual([{ name: 'token', projected: { sources: [token] } }])
  })
})

describe('the chart', () => {
  const ajv = new Ajv({ strict: false })
  const validate = ajv.compile(JSON.parse(chartFiles['values.schema.json'] ?? '') as object)
  const values = Bun.YAML.parse(chartFiles['values.yaml'] ?? '') as Record<string, unknown>

  test('has the version of the program', () => {
    const chart = Bun.YAML.parse(chartFiles['Chart.yaml'] ?? '')
    expect(chart).toMatchObject({ version: packageJson.version, appVersion: packageJson.version })
  })

  test('has values that its schema accepts, and the schema refuses wrong ones', () => {
    expect(validate(values), ajv.errorsText(validate.errors)).toBe(true)
    const wrong = [
      { baseUrl: 'https://llm.example.com' },
      { replicas: 2 },
      { existingSecret: '' },
      { settings: { PORT: '1' } },
    ]
    for (const each of wrong)
      expect({ each, accepted: validate({ ...values, ...each }) }).toEqual({ each, accepted: false })
  })

  test('reads only values that exist', () => {
    const read = [
      ...Object.values(chartFiles)
        .join()
        .matchAll(/\.Values\.([\w.]+)/g),
    ].map(([, path = '']) => path)
    expect(read.length).toBeGreaterThan(15)
    const missing = read.filter(
      (path) =>
        path.split('.').reduce<unknown>((at, name) => (at as Record<string, unknown>)?.[name], values) === undefined,
    )
    expect(missing).toEqual([])
  })

  const render = (more: object) =>
    parse(
      renderTemplate(
        chartFiles['templates/server.yaml'] ?? '',
        { ...values, ...more },
        { AppVersion: packageJson.version },
      ),
    )
  const kinds = (manifests: Manifest[]) => manifests.map(({ kind }) => kind)

  test('has nodes instead of a volume for a server database, and trusts its certificates', () => {
    const secrets = { tokenSecret: 'token', caSecret: 'db-ca', clientSecret: 'node' }
    const database = { url: 'rqlites://db-0:4001,db-1:4001', replicas: 5, ...secrets }
    expect(validate({ ...values, database }), ajv.errorsText(validate.errors)).toBe(true)
    const rendered = render({ database })
    expect(kinds(rendered)).toEqual(['ServiceAccount', 'Service', 'Deployment', 'PodDisruptionBudget'])
    const deployment = JSON.stringify(rendered[2])
    for (const absent of ['volumeClaimTemplates', 'serviceName', '/var/lib/latchkey', 'fsGroup'])
      expect({ absent, has: deployment.includes(absent) }).toEqual({ absent, has: false })
    const spec = rendered[2]?.spec as { replicas: number; template: { spec: PodSpec } }
    expect(spec.replicas).toBe(5)
    const [node] = spec.template.spec.containers
    const files = ['LATCHKEY_DATABASE_CA_FILE', 'LATCHKEY_DATABASE_CERT_FILE', 'LATCHKEY_DATABASE_KEY_FILE']
    expect(node?.env.map(({ name }) => name)).toEqual(expect.arrayContaining(files))
    expect(node?.volumeMounts.map(({ name }) => name)).toEqual(['database-ca', 'database-client', 'tmp'])
    expect(spec.template.spec.volumes.map(({ name }) => name)).toEqual(['tmp', 'database-ca', 'database-client'])
  })

  test('has the settings, and quotes their values', () => {
    const rendered = JSON.stringify(render({ settings: { LATCHKEY_DRAIN_SECONDS: 30, LATCHKEY_ACCESS_LOG: 'a: b' } }))
    expect(rendered).toContain('{"name":"LATCHKEY_DRAIN_SECONDS","value":"30"}')
    expect(rendered).toContain('{"name":"LATCHKEY_ACCESS_LOG","value":"a: b"}')
    expect(JSON.stringify(render({}))).not.toContain('LATCHKEY_DRAIN_SECONDS')
  })

  test.skipIf(!has('helm'))('renders the manifests that service print kubernetes prints', async () => {
    await Bun.write(join(folder.path, 'chart.tgz'), await packChart())
    const switches = ['serviceMonitor.enabled=true', 'sample.enabled=true', 'sample.policyId=the-id-of-the-policy']
    const set = switches.flatMap((each) => ['--set', each])
    const { status, stdout, stderr } = spawnSync(
      'helm',
      ['template', 'latchkey', join(folder.path, 'chart.tgz'), '--kube-version', '1.30.0', ...set],
      { encoding: 'utf8' },
    )
    expect(status, stderr).toBe(0)
    const byName = (manifests: Manifest[]) =>
      Object.fromEntries(
        manifests.map((each) => [`${each.kind} ${each.metadata.name}`, JSON.parse(JSON.stringify(each))]),
      )
    expect(byName(parse(stdout))).toEqual(byName(parse(await printed('kubernetes'))))
  })

  test.skipIf(!has('helm'))('lets nodes reach the port of the database server (needs helm)', async () => {
    await Bun.write(join(folder.path, 'nodes.tgz'), await packChart())
    const reached = (url: string) => {
      const args = ['template', 'latchkey', join(folder.path, 'nodes.tgz'), '--kube-version', '1.30.0']
      const { stdout } = spawnSync('helm', [...args, '--set', `database.url=${url}`], { encoding: 'utf8' })
      const { egress } = findKind(stdout, 'NetworkPolicy').spec as { egress: { ports: { port: number }[] }[] }
      return egress[0]?.ports.at(-1)?.port
    }
    expect(reached('https://db.example.com:8080')).toBe(8080)
    expect([reached('libsql://db.example.com'), reached('http://db')]).toEqual([443, 80])
    expect([reached('rqlite://a:4003\\,b:4003'), reached('rqlites://a\\,b')]).toEqual([4003, 4001])
  })

  test('goes to a file, not to a terminal', async () => {
    const { code, stdout } = await run(['service', 'print', 'helm', '--json'])
    expect([code, Object.keys(JSON.parse(stdout).files)]).toEqual([0, Object.keys(chartFiles)])
    const entries = await new Bun.Archive(await packChart()).files()
    expect([...entries.keys()].toSorted()).toEqual(
      Object.keys(chartFiles)
        .map((path) => `latchkey/${path}`)
        .toSorted(),
    )
  })
})

describe('proxies', () => {
  const certificate = join(import.meta.dirname, '../fixtures/tls/server')
  const withCertificate = (text: string) =>
    text
      .replaceAll('/etc/latchkey/tls.pem', `${certificate}.pem`)
      .replaceAll('/etc/latchkey/tls.key', `${certificate}.key`)

  test.skipIf(!has('nginx'))('nginx accepts its file', async () => {
    const path = write('latchkey.conf', withCertificate(await printed('nginx')))
    const main = write(
      'nginx.conf',
      `events {}\npid ${folder.path}/nginx.pid;\nhttp { access_log off; include ${path}; }\n`,
    )
    const { status, text } = runProgram('nginx', '-t', '-e', 'stderr', '-c', main)
    expect(status, text).toBe(0)
  })

  test('HAProxy gets a file that passes /v1/ alone, streams at once and sends nothing twice', async () => {
    const text = await printed('haproxy')
    for (const line of ['status 404 unless { path_beg /v1/ }', 'retry-on conn-failure', 'option http-no-delay'])
      expect(text).toContain(line)
    expect(text).not.toContain('http-buffer-request')
  })

  test.skipIf(!has('haproxy'))('HAProxy accepts its file', async () => {
    const both = readFileSync(`${certificate}.pem`, 'utf8') + readFileSync(`${certificate}.key`, 'utf8')
    const text = (await printed('haproxy')).replaceAll('/etc/latchkey/tls-both.pem', write('both.pem', both))
    const { status, text: said } = runProgram('haproxy', '-c', '-f', write('haproxy.cfg', `${text}\n`))
    expect(status, said).toBe(0)
  })

  test.skipIf(!has('caddy'))('Caddy accepts its file', async () => {
    const path = write('Caddyfile', withCertificate(await printed('caddy')))
    const { status, text } = runProgram('caddy', 'validate', '--adapter', 'caddyfile', '--config', path)
    expect(status, text).toBe(0)
  })
})
