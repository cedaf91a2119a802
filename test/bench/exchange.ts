// What an exchange costs: CPU time of the serving process, on warm keys, with policy look-up, condition and committed audit record, at
// concurrency 32, against the bare limit of the runtime and against oidc-provider with a token-exchange grant.
import { join } from 'node:path'
import { createTestIssuer } from '../../src/dev/test-issuer.ts'
import { audience, exchangeFields, listenLocally, mintAt, subject } from '../support/latchkey.ts'
import {
  type Contestant,
  concurrency,
  installLatchkey,
  measureCpu,
  printFigures,
  printRatio,
  ratio,
  repeat,
  rounds,
  spawnServer,
} from './measure.ts'

const exchangesPerRound = Number(process.env.BENCH_EXCHANGES ?? 3_000)
const warmUps = 12
const tokensEach = 200
const algorithms = ['RS256', 'ES256'] as const
const condition = 'claims.environment == "production" && subject.startsWith("workload")'

type Tokens = Record<string, string[]>
type Exchanger = Contestant & { url: string; bodies: Record<string, string[]> }

export async function benchExchange(): Promise<void> {
  let issuerUrl = ''
  const issuer = await listenLocally(await createTestIssuer(() => issuerUrl))
  issuerUrl = issuer.url
  const tokens = await mintTokens(issuerUrl)

  const jwksUrl = `${issuerUrl}/jwks`
  const oidc = ['test/bench/oidc-exchange.mjs', jwksUrl, issuerUrl, audience, subject]
  const oidcBodies = bodiesWith(tokens, { client_id: 'workload' })
  const contestants: Exchanger[] = [
    await startLatchkey('latchkey', issuerUrl, tokens, 0),
    await startOther('bare limit', [process.execPath, 'test/bench/bare-limit.ts', jwksUrl], '/', bodiesWith(tokens)),
    await startOther('oidc-provider on Node', ['node', ...oidc], '/token', oidcBodies),
    await startOther('oidc-provider on Bun', [process.execPath, ...oidc], '/token', oidcBodies),
  ]
  for (const algorithm of algorithms) {
    const figures = await measure(contestants, algorithm)
    printFigures(`${algorithm}, CPU per exchange at concurrency ${concurrency} (median of ${rounds} rounds)`, figures)
    printRatio(figures, 'bare limit', 'latchkey', '0.65')
    printRatio(figures, 'oidc-provider on Node', 'latchkey', '2.5')
    printRatio(figures, 'oidc-provider on Bun', 'latchkey', '1.2')
  }
  await Promise.all(contestants.map(({ stop }) => stop()))

  const few = await startLatchkey('10 policies', issuerUrl, tokens, 9)
  const many = await startLatchkey('100,000 policies', issuerUrl, tokens, 99_999)
  const figures = await measure([few, many], 'ES256')
  const growth = ratio(figures, '100,000 policies', '10 policies').toFixed(2)
  console.log(`\n100,000 policies / 10 policies      ${growth}  (target at most 1.2)`)
  await Promise.all([few.stop(), many.stop()])
  await issuer.listener.drain()
}

async function mintTokens(issuerUrl: string): Promise<Tokens> {
  const minted = algorithms.map(async (algorithm) => {
    const minting = Array.from({ length: tokensEach }, () =>
      mintAt(issuerUrl, { environment: 'production' }, algorithm),
    )
    return [algorithm, await Promise.all(minting)] as const
  })
  return Object.fromEntries(await Promise.all(minted))
}

async function startLatchkey(
  name: string,
  issuerUrl: string,
  tokens: Tokens,
  morePolicies: number,
): Promise<Exchanger> {
  const { folder, run, serve } = await installLatchkey()
  await run('keys', 'create', '--name', 'key')
  await run('issuers', 'add', '--name', 'idp', '--url', issuerUrl)
  const common = ['--issuer', 'idp', '--key', 'key', '--audience', audience, '--subject', subject]
  const policy = await run('policies', 'create', '--name', 'bench', ...common, '--condition', condition)
  if (morePolicies > 0) await addPolicies(join(folder, 'latchkey-data/latchkey.db'), policy.id, morePolicies)
  const { baseUrl, pid, stop } = await serve()
  const bodies = bodiesWith(tokens, { federation_policy_id: policy.id })
  return { name, url: `${baseUrl}/oauth/token`, pid, bodies, stop }
}

/** The lock on a database lasts as long as the process that took it, so another one does the copying. */
async function addPolicies(databasePath: string, id: string, count: number): Promise<void> {
  const program = join(import.meta.dirname, 'copy-policies.ts')
  const child = Bun.spawn([process.execPath, program, databasePath, id, String(count)], { stdout: 'ignore' })
  if ((await child.exited) !== 0) throw new Error('The policies could not be copied')
}

async function startOther(
  name: string,
  command: string[],
  path: string,
  bodies: Exchanger['bodies'],
): Promise<Exchanger> {
  const { pid, port, stop } = await spawnServer(command)
  return { name, url: `http://127.0.0.1:${port}${path}`, pid, bodies, stop }
}

function bodiesWith(tokens: Tokens, fields: Record<string, string> = {}): Exchanger['bodies'] {
  return Object.fromEntries(
    Object.entries(tokens).map(([algorithm, texts]) => [
      algorithm,
      texts.map((subject_token) => String(exchangeFields({ ...fields, subject_token }))),
    ]),
  )
}

function measure(contestants: Exchanger[], algorithm: string): Promise<Map<string, number[]>> {
  return measureCpu(contestants, {
    warmUp: warmUps * exchangesPerRound,
    count: exchangesPerRound,
    load: ({ url, bodies }, exchanges) => {
      const texts = bodies[algorithm] ?? []
      const headers = { 'content-type': 'application/x-www-form-urlencoded' }
      return repeat(exchanges, async (index) => {
        const response = await fetch(url, { method: 'POST', headers, body: texts[index % texts.length] ?? '' })
        const text = await response.text()
        if (response.status !== 200) throw new Error(`${url} answered ${response.status}: ${text}`)
      })
    },
  })
}
