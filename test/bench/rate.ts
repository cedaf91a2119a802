// What a request takes at a fixed rate, as many users feel it: requests are sent when they are due, however many are on their way, and
// each counts from the moment when it was due. Rates are shares of what Latchkey serves at most; every arm gets the same.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Contest, drive, orderOf } from './contest.ts'
import { type Exchanger, exchange, installTrusting, startIssuer, startOther } from './exchange.ts'
import { askWhole } from './gateway.ts'
import { benchFolder, type Contestant, median, quantile, repository, rounds } from './measure.ts'
import { type Gateway, startBareGuard, startLatchkey, startUpstream } from './proxies.ts'
import { addRound, type Figures, type Result } from './report.ts'

const shares = [25, 50, 80]
const cellMilliseconds = Number(process.env.BENCH_RATE_CELL ?? 4_000)
const warmUpMilliseconds = Number(process.env.BENCH_WARM_UP ?? 4_000)
/** Twice as many as the busiest cell of the other benches: what is served at most. */
const concurrencyMax = 64
/** An arm with so many requests on their way no longer follows, and gets none after that. */
const unansweredMax = 5_000

/** A server with the probe for holds in it. */
type Probed<Arm extends Contestant> = { arm: Arm; probe: string }
type Load<Arm extends Contestant> = { load: string; arms: Probed<Arm>[]; act: Contest<Arm>['act'] }

export async function benchRate(note: (text: string) => void): Promise<Result[]> {
  const results = await compare(await exchangeLoad(), note)
  return [...results, ...(await compare(await jsonLoad(), note))]
}

/** Starts a server whose environment loads the probe. */
async function probed<Arm extends Contestant>(
  name: string,
  start: (env: Record<string, string>) => Promise<Arm>,
): Promise<Probed<Arm>> {
  const probe = join(benchFolder(), 'hold')
  const preload = join(repository, 'test/bench/hold-probe.ts')
  const arm = await start({ HOLD_PROBE: probe, BUN_OPTIONS: `--preload=${preload}` })
  return { arm: { ...arm, name }, probe }
}

async function exchangeLoad(): Promise<Load<Exchanger>> {
  const issuer = await startIssuer()
  const serve = async (env: Record<string, string>) => {
    const { installed, policyId } = await installTrusting(issuer.url, env)
    const { baseUrl, ...serving } = await installed.serve()
    const url = `${baseUrl}/oauth/token`
    return { ...serving, name: 'latchkey', url, fields: { federation_policy_id: policyId } }
  }
  const limit = (env: Record<string, string>) =>
    startOther('bare limit', [process.execPath, 'test/bench/bare-limit.ts', `${issuer.url}/jwks`], '/', {}, env)
  const arms = [await probed('latchkey', serve), await probed('bare limit', limit)]
  return { load: 'exchange ES256', arms, act: (arm, _, index) => exchange(arm, issuer.tokens.ES256 ?? [], index) }
}

async function jsonLoad(): Promise<Load<Gateway>> {
  let origin = ''
  const upstream = await probed('direct', async (env) => {
    const started = await startUpstream(env)
    origin = started.origin
    const arm: Gateway = started
    return arm
  })
  const latchkey = await probed('latchkey', async (env) => (await startLatchkey(origin, env)).withTokens)
  const arms = [latchkey, upstream, await probed('bare guard', (env) => startBareGuard(origin, env))]
  const credentials = new Map(
    await Promise.all(arms.map(async ({ arm }) => [arm.name, await arm.credentials()] as const)),
  )
  return {
    load: 'JSON',
    arms,
    act: (arm, _, index) => {
      const known = credentials.get(arm.name) ?? []
      return askWhole(arm, known[index % known.length] ?? '')
    },
  }
}

async function compare<Arm extends Contestant>(
  { load, arms, act }: Load<Arm>,
  note: (text: string) => void,
): Promise<Result[]> {
  const busiest = { load, concurrency: concurrencyMax, milliseconds: warmUpMilliseconds }
  for (const { arm } of arms) await drive(arm, busiest, act)
  const [first] = arms
  if (first === undefined) return []
  const capacities: number[] = []
  for (let round = 0; round < rounds; round++) {
    const { latencies, seconds } = await drive(first.arm, { ...busiest, milliseconds: 1_000 }, act)
    capacities.push(latencies.length / seconds)
  }
  const capacity = median(capacities)
  note(`${load}: 100 % are ${Math.round(capacity)} a second`)
  const results = new Map<string, Result>()
  for (let round = 0; round < rounds; round++)
    for (const share of shares)
      for (const { arm, probe } of orderOf(arms, round)) {
        const name = `${load} at ${share} %`
        const result = results.get(name + arm.name) ?? newResult(name, arm.name)
        results.set(name + arm.name, result)
        addRound(result, await measureAt((capacity * share) / 100, arm, probe, (index) => act(arm, busiest, index)))
      }
  for (const { arm } of arms) await arm.stop()
  return [...results.values()]
}

const newResult = (load: string, arm: string): Result => ({ bench: 'rate', load, concurrency: 0, arm, figures: {} })

async function measureAt(
  rate: number,
  { pid, name }: Contestant,
  probe: string,
  act: (index: number) => Promise<unknown>,
): Promise<Figures> {
  Bun.gc(true)
  await readHold(pid, probe)
  const latencies: number[] = []
  let sent = 0
  let failure: unknown
  const startedAt = performance.now()
  const send = async (index: number) => {
    const dueAt = startedAt + (index * 1_000) / rate
    await act(index)
    latencies.push(performance.now() - dueAt)
  }
  for (let now = startedAt; now - startedAt < cellMilliseconds && failure === undefined; now = performance.now()) {
    const due = Math.floor(((now - startedAt) * rate) / 1_000)
    for (; sent < due && sent - latencies.length < unansweredMax; sent++)
      send(sent).catch((error: unknown) => {
        failure = error
      })
    await Bun.sleep(1)
  }
  while (latencies.length < sent && failure === undefined) await Bun.sleep(1)
  if (failure !== undefined) throw new Error(`${name} failed`, { cause: failure })
  return {
    perSecond: latencies.length / ((performance.now() - startedAt) / 1_000),
    p50Milliseconds: median(latencies),
    p99Milliseconds: quantile(latencies, 0.99),
    p999Milliseconds: quantile(latencies, 0.999),
    longestMilliseconds: await readHold(pid, probe),
  }
}

/** The longest hold since the last call. */
async function readHold(pid: number, probe: string): Promise<number> {
  rmSync(probe, { force: true })
  process.kill(pid, 'SIGUSR2')
  while (!existsSync(probe)) await Bun.sleep(1)
  return Number(readFileSync(probe, 'utf8'))
}
