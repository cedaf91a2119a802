// `bun test/bench/agent.ts`, by hand: what the agent of a workload adds to each event of 200 streams at once, and what it
// holds in memory beyond its runtime. Linux only. It takes about a minute.
import { createServer, get } from 'node:http'
import { join } from 'node:path'
import { buildPortableFiles } from '../../scripts/build/release/portable-files.ts'
import { createJitter } from '../support/chance.ts'
import { runtimes } from '../support/runtimes.ts'
import { benchFolder, median, residentMegabytes, rounds, spawnServer } from './measure.ts'

const chance = createJitter()

const streams = Number(process.env.BENCH_CONCURRENCY ?? 200)
const events = 40
const eventMilliseconds = 100

/** Microseconds since 1970. */
const now = () => Math.round((performance.timeOrigin + performance.now()) * 1_000)
const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** A server that issues tokens and streams events, each with the time at which it was sent. */
function serveUpstream(): void {
  const server = createServer((request, response) => {
    if (request.method === 'POST') {
      const token = { access_token: 'e30.e30.c2ln', token_type: 'Bearer', expires_in: 900 }
      return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(token))
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    let sent = 0
    const send = () => {
      response.write(`data: ${now()} ${'x'.repeat(180)}\n\n`)
      if (++sent === events) response.end()
      else setTimeout(send, eventMilliseconds)
    }
    // Streams of real clients do not beat together.
    setTimeout(send, chance() * eventMilliseconds)
  })
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    console.log(typeof address === 'object' ? address?.port : '')
  })
}

/** Reads one stream, and returns how many microseconds each event was on its way. */
function readStream(url: string): Promise<number[]> {
  return new Promise((resolve, reject) => {
    const delays: number[] = []
    const asking = get(url, { agent: false }, (response) => {
      response.on('data', (chunk: Buffer) => {
        const at = now()
        for (const [, sentAt] of chunk.toString('latin1').matchAll(/data: (\d+)/g)) delays.push(at - Number(sentAt))
      })
      response.on('end', () => resolve(delays))
    })
    asking.on('error', reject)
  })
}

type Arm = {
  name: string
  url: string
  pid?: number
  idleMegabytes?: number
  p50: number[]
  p99: number[]
  held: number[]
}

async function measure(arm: Arm): Promise<void> {
  const reading = Promise.all(Array.from({ length: streams }, () => readStream(arm.url)))
  await sleep((events * eventMilliseconds) / 2)
  if (arm.pid !== undefined) arm.held.push(residentMegabytes(arm.pid) - (arm.idleMegabytes ?? 0))
  const delays = (await reading).flat().toSorted((one, other) => one - other)
  if (delays.length !== streams * events) throw new Error(`${arm.name}: ${delays.length} events arrived`)
  arm.p50.push(delays[Math.floor(delays.length * 0.5)] ?? 0)
  arm.p99.push(delays[Math.floor(delays.length * 0.99)] ?? 0)
}

const relay = `import { connect, createServer } from 'node:net'
const server = createServer((client) => client.pipe(connect(Number(process.argv[2]), '127.0.0.1')).pipe(client))
server.listen(0, '127.0.0.1', () => console.log(server.address().port))`

async function startArms(): Promise<Arm[]> {
  const folder = benchFolder()
  await buildPortableFiles(folder, 'bench')
  await Bun.write(join(folder, 'idle.mjs'), 'setInterval(() => {}, 1000)')
  await Bun.write(join(folder, 'jwt'), 'e30.e30.c2ln')
  const upstream = await spawnServer([process.execPath, import.meta.path, 'upstream'])
  const url = `http://127.0.0.1:${upstream.port}/v1`
  // What any process in between adds on this machine.
  await Bun.write(join(folder, 'relay.mjs'), relay)
  const bare = await spawnServer([process.execPath, join(folder, 'relay.mjs'), String(upstream.port)])
  const bareUrl = `http://127.0.0.1:${bare.port}/v1/models`
  const arms: Arm[] = [
    { name: 'direct', url: `${url}/models`, p50: [], p99: [], held: [] },
    { name: 'bare relay of bytes on Bun', url: bareUrl, pid: bare.pid, p50: [], p99: [], held: [] },
  ]
  for (const [name, command] of runtimes) {
    if (command === undefined) continue
    const idle = Bun.spawn([...command, join(folder, 'idle.mjs')], { stdin: 'ignore' })
    await sleep(1_000)
    const idleMegabytes = residentMegabytes(idle.pid)
    idle.kill()
    const port = 18_800 + arms.length
    const source = ['--url', url, '--policy', 'p', '--identity', `file:${join(folder, 'jwt')}`]
    const args = [...command, join(folder, 'latchkey-agent.mjs'), 'agent', '--listen', `127.0.0.1:${port}`, ...source]
    const agent = await spawnServer(args, { port, env: { BUN_CONFIG_MAX_HTTP_REQUESTS: '65535' } })
    const local = `http://127.0.0.1:${port}/v1/models`
    arms.push({ name: `agent on ${name}`, url: local, pid: agent.pid, idleMegabytes, p50: [], p99: [], held: [] })
  }
  return arms
}

if (process.argv[2] === 'upstream') serveUpstream()
else {
  const arms = await startArms()
  for (const arm of arms) await measure(arm)
  for (const arm of arms) arm.p50.length = arm.p99.length = arm.held.length = 0
  for (let round = 0; round < rounds; round++)
    for (const arm of round % 2 === 0 ? arms : arms.toReversed()) await measure(arm)
  const [direct] = arms
  for (const { name, p50, p99, held, idleMegabytes } of arms) {
    const added = (figures: number[], of: number[]) => median(figures.map((figure, round) => figure - (of[round] ?? 0)))
    const memory =
      held.length === 0 ? '' : `, ${median(held).toFixed(0)} MB beyond ${(idleMegabytes ?? 0).toFixed(0)} MB`
    const more = held.length === 0 ? '' : `; adds ${(added(p50, direct?.p50 ?? []) / 1000).toFixed(3)} ms p50`
    console.log(
      `${name}: ${(median(p50) / 1000).toFixed(3)} ms p50, ${(median(p99) / 1000).toFixed(3)} ms p99${more}${memory}`,
    )
  }
  process.exit(0)
}
