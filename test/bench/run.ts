// `bun run bench`: what an exchange costs, as ratios measured side by side in one run. CPU time of the serving process per exchange, on
// warm keys, with policy look-up, condition and committed audit record, at concurrency 32, against the bare limit of the runtime and
// against oidc-provider with a token-exchange grant. Linux only: CPU times come from /proc.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { insertPolicy } from '../../db/policies.ts'
import { loadConfig } from '../../src/config.ts'
import { openContext } from '../../src/context.ts'
import { createTestIssuer } from '../../src/dev/test-issuer.ts'
import { outboundFetch, resolveHost } from '../../src/runtime.ts'
import {
  audience,
  exchangeFields,
  listenLocally,
  mintAt,
  runCommand,
  startServing,
  subject,
  temporaryFolder,
} from '../support/latchkey.ts'

const concurrency = 32
const rounds = Number(process.env.BENCH_ROUNDS ?? 7)
const exchangesPerRound = Number(process.env.BENCH_EXCHANGES ?? 3_000)
const warmUps = 12
const tokensEach = 200
const algorithms = ['RS256', 'ES256'] as const
const condition = 'claims.environment == "production" && subject.startsWith("workload")'

type Contestant = {
  name: string
  url: string
  pid: number
  bodies: Record<string, string[]>
  stop: () => Promise<unknown>
}

let issuerUrl = ''
const issuer = await listenLocally(await createTestIssuer(() => issuerUrl))
issuerUrl = issuer.url
const tokens = Object.fromEntries(
  await Promise.all(
    algorithms.map(async (algorithm) => {
      const minting = Array.from({ length: tokensEach }, () =>
        mintAt(issuerUrl, { environment: 'production' }, algorithm),
      )
      return [algorithm, await Promise.all(minting)] as const
    }),
  ),
)

async function startLatchkey(name: string, morePolicies: number): Promise<Contestant> {
  const folder = temporaryFolder()
  const env = { LATCHKEY_INSECURE_ISSUERS: 'true', LATCHKEY_RATE_LIMIT: '0', LATCHKEY_LISTEN: '127.0.0.1:0' }
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCommand([...args, '--json'], { cwd: folder.path, env })
    if (code !== 0) throw new Error(stderr)
    return JSON.parse(stdout) as { id: string }
  }
  await run('init')
  await run('keys', 'create', '--name', 'key')
  await run('issuers', 'add', '--name', 'idp', '--url', issuerUrl)
  const common = ['--issuer', 'idp', '--key', 'key', '--audience', audience]
  const policy = await run(
    'policies',
    'create',
    '--name',
    'bench',
    ...common,
    '--subject',
    subject,
    '--condition',
    condition,
  )
  if (morePolicies > 0) await addPolicies(join(folder.path, 'latchkey-data/latchkey.db'), policy.id, morePolicies)
  const serving = await startServing(['serve'], { cwd: folder.path, env })
  const { base_url = '' } = serving.facts
  return {
    name,
    url: `${base_url}/oauth/token`,
    pid: serving.process.pid,
    bodies: bodiesWith({ federation_policy_id: policy.id }),
    stop: async () => {
      await serving.stop()
      folder.remove()
    },
  }
}

/** Copies of a policy under other names and ids, straight into the database. */
async function addPolicies(databasePath: string, id: string, count: number): Promise<void> {
  const context = await openContext(
    loadConfig({ flags: { LATCHKEY_DATABASE_URL: `file:${databasePath}` }, environment: {} }),
    { now: Date.now, fetch: outboundFetch, resolve: resolveHost, log: () => {}, onBroken: () => {} },
    { create: false },
  )
  const policy = context.registry.policies.get(id)
  if (policy === undefined) throw new Error('There is no policy to copy')
  for (let made = 0; made < count; made += 1_000) {
    const copies = Array.from({ length: Math.min(1_000, count - made) }, (_, index) =>
      insertPolicy(context.orm, { ...policy, id: crypto.randomUUID(), name: `copy-${made + index}` }),
    )
    await context.writer.write(copies)
  }
  await context.writer.close()
  await context.database.close()
}

async function startOther(name: string, command: string[], fields: Record<string, string> = {}): Promise<Contestant> {
  const child = Bun.spawn(command, {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
    cwd: join(import.meta.dirname, '../..'),
  })
  const { value } = await child.stdout.getReader().read()
  const port = Number(new TextDecoder().decode(value).trim().split('\n').at(-1))
  const stop = async () => {
    child.kill()
    await child.exited
  }
  const path = name.startsWith('oidc') ? '/token' : '/'
  return { name, url: `http://127.0.0.1:${port}${path}`, pid: child.pid, bodies: bodiesWith(fields), stop }
}

function bodiesWith(fields: Record<string, string>): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(tokens).map(([algorithm, texts]) => [
      algorithm,
      texts.map((subject_token) => String(exchangeFields({ ...fields, subject_token }))),
    ]),
  )
}

async function load({ url, bodies }: Contestant, algorithm: string, exchanges: number): Promise<void> {
  const texts = bodies[algorithm] ?? []
  let next = 0
  const worker = async () => {
    while (next < exchanges) {
      const body = texts[next++ % texts.length] ?? ''
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      const response = await fetch(url, { method: 'POST', headers, body })
      const text = await response.text()
      if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${text}`)
    }
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
}

/** User and system time of a process in milliseconds. */
function cpuMilliseconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

const median = (values: number[]) =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN

/** Microseconds of CPU per exchange, by round; the contestants take turns within each. */
async function measure(contestants: Contestant[], algorithm: string): Promise<Map<string, number[]>> {
  const figures = new Map(contestants.map(({ name }) => [name, [] as number[]]))
  // Until the compilers of the runtimes have done their work, whose time would count as well.
  for (const each of contestants) await load(each, algorithm, warmUps * exchangesPerRound)
  for (let round = 0; round < rounds; round++) {
    for (const each of contestants) {
      const before = cpuMilliseconds(each.pid)
      await load(each, algorithm, exchangesPerRound)
      figures.get(each.name)?.push(((cpuMilliseconds(each.pid) - before) * 1_000) / exchangesPerRound)
    }
  }
  return figures
}

function ratio(figures: Map<string, number[]>, of: string, to: string): string {
  const mine = figures.get(to) ?? []
  return median((figures.get(of) ?? []).map((figure, round) => figure / (mine[round] ?? Number.NaN))).toFixed(2)
}

const [bun, oidc] = [process.execPath, join(import.meta.dirname, 'oidc-exchange.mjs')]
const jwksUrl = `${issuerUrl}/jwks`
const oidcFields = { client_id: 'workload' }
const contestants = [
  await startLatchkey('latchkey', 0),
  await startOther('bare limit', [bun, join(import.meta.dirname, 'bare-limit.ts'), jwksUrl]),
  await startOther('oidc-provider on Node', ['node', oidc, jwksUrl, issuerUrl, audience, subject], oidcFields),
  await startOther('oidc-provider on Bun', [bun, oidc, jwksUrl, issuerUrl, audience, subject], oidcFields),
]
for (const algorithm of algorithms) {
  const figures = await measure(contestants, algorithm)
  console.log(`\n${algorithm}, CPU per exchange at concurrency ${concurrency} (median of ${rounds} rounds)`)
  for (const [name, values] of figures) console.log(`  ${name.padEnd(24)} ${median(values).toFixed(0).padStart(6)} µs`)
  console.log(`  bare limit / latchkey             ${ratio(figures, 'bare limit', 'latchkey')}  (target 0.65)`)
  console.log(
    `  oidc-provider on Node / latchkey  ${ratio(figures, 'oidc-provider on Node', 'latchkey')}  (target 2.5)`,
  )
  console.log(`  oidc-provider on Bun / latchkey   ${ratio(figures, 'oidc-provider on Bun', 'latchkey')}  (target 1.2)`)
}
await Promise.all(contestants.map(({ stop }) => stop()))

const [few, many] = [await startLatchkey('10 policies', 9), await startLatchkey('100,000 policies', 99_999)]
const figures = await measure([few, many], 'ES256')
console.log(
  `\n100,000 policies / 10 policies      ${ratio(figures, '100,000 policies', '10 policies')}  (target at most 1.2)`,
)
await Promise.all([few.stop(), many.stop()])
await issuer.listener.drain()
process.exit(0)
