// What an exchange costs: CPU time of the serving process, on warm keys, with policy look-up, condition and committed audit record, against
// the bare limit of the runtime and against oidc-provider with a token-exchange grant.
import { createTestIssuer } from '../../scripts/dev/test-issuer.ts'
import { audience, exchangeFields, listenLocally, mintAt, subject } from '../support/latchkey.ts'
import { contest } from './contest.ts'
import { type Contestant, concurrencies, type Installed, installLatchkey, spawnServer } from './measure.ts'
import type { Result } from './report.ts'

const cellMilliseconds = 700
const warmUpMilliseconds = Number(process.env.BENCH_WARM_UP ?? 4_000)
const tokensEach = 200
const algorithms = ['RS256', 'ES256'] as const
const condition = 'claims.environment == "production" && subject.startsWith("workload")'

export type Exchanger = Contestant & { url: string; fields: Record<string, string> }

/** A test issuer with tokens that every exchanger accepts, by algorithm. */
export type TokenSource = { url: string; tokens: Record<string, string[]>; stop: () => Promise<void> }

export async function benchExchange(note: (text: string) => void): Promise<Result[]> {
  const issuer = await startIssuer()
  const latchkey = await installTrusting(issuer.url)
  const { baseUrl, ...serving } = await latchkey.installed.serve()
  const jwksUrl = `${issuer.url}/jwks`
  const oidc = ['test/bench/oidc-exchange.mjs', jwksUrl, issuer.url, audience, subject]
  const arms: Exchanger[] = [
    {
      name: 'latchkey',
      ...serving,
      url: `${baseUrl}/oauth/token`,
      fields: { federation_policy_id: latchkey.policyId },
    },
    await startOther('bare limit', [process.execPath, 'test/bench/bare-limit.ts', jwksUrl], '/'),
    await startOther('oidc-provider on Bun', [process.execPath, ...oidc], '/token', { client_id: 'workload' }),
  ]
  if (Bun.which('node') === null) note('left out: Node is not installed')
  else arms.push(await startOther('oidc-provider on Node', ['node', ...oidc], '/token', { client_id: 'workload' }))
  const cells = algorithms.flatMap((load) =>
    (concurrencies ?? [1, 32]).map((concurrency) => ({ load, concurrency, milliseconds: cellMilliseconds })),
  )
  const results = await contest({
    ...{ bench: 'exchange', arms, cells, warmUpMilliseconds },
    act: (arm, { load }, index) => exchange(arm, issuer.tokens[load] ?? [], index),
    onFailure: (arm, error) => note(`left out: ${arm} failed: ${error}`),
  })
  for (const { stop } of arms) await stop()
  await issuer.stop()
  return results
}

export async function startIssuer(): Promise<TokenSource> {
  let issuerUrl = ''
  const { url, listener } = await listenLocally(await createTestIssuer(() => issuerUrl))
  issuerUrl = url
  const minted = algorithms.map(async (algorithm) => {
    const minting = Array.from({ length: tokensEach }, () => mintAt(url, { environment: 'production' }, algorithm))
    return [algorithm, await Promise.all(minting)] as const
  })
  return { url, tokens: Object.fromEntries(await Promise.all(minted)), stop: () => listener.drain() }
}

/** An installation with one key, one issuer and one policy with a condition. */
export async function installTrusting(
  issuerUrl: string,
  settings: Record<string, string> = {},
): Promise<{ installed: Installed; policyId: string }> {
  const installed = await installLatchkey(settings)
  const { run } = installed
  await run('keys', 'create', '--name', 'key')
  await run('issuers', 'add', '--name', 'idp', '--issuer-url', issuerUrl)
  const common = ['--issuer', 'idp', '--key', 'key', '--audience', audience, '--subject', subject]
  const { id } = await run('policies', 'create', '--name', 'bench', ...common, '--condition', condition)
  return { installed, policyId: id }
}

export async function startOther(
  name: string,
  command: string[],
  path: string,
  fields: Record<string, string> = {},
  env: Record<string, string> = {},
): Promise<Exchanger> {
  const { pid, port, stop } = await spawnServer(command, { env })
  return { name, url: `http://127.0.0.1:${port}${path}`, pid, fields, stop }
}

export async function exchange({ url, fields }: Exchanger, tokens: string[], index: number): Promise<undefined> {
  const subject_token = tokens[index % tokens.length] ?? ''
  const body = String(exchangeFields({ ...fields, subject_token }))
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const response = await fetch(url, { method: 'POST', headers, body })
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${url} responded ${response.status}: ${text}`)
}
