// How long one request body holds the event loop: `bun test/bench/holds.ts [FILTER]` sends the worst bodies that we could think of to each
// kind of endpoint. It prints the longest hold, what JSON.parse alone takes for the same text, the difference, and the second longest hold.
// All are milliseconds of CPU of the main thread. Linux only.
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { atEnd } from '../support/at-end.ts'
import { bodies } from './holds-bodies.ts'
import { benchFolder, median, repository } from './measure.ts'

const upstream = createServer((request, reply) => {
  request.resume()
  request.on('end', () => reply.setHeader('content-type', 'application/json').end('{"model":"m","choices":[]}'))
})
await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))

const replies: ((value: unknown) => void)[] = []
const child = Bun.spawn(
  [
    process.execPath,
    join(repository, 'test/bench/holds-server.ts'),
    `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`,
  ],
  { ipc: (message) => replies.shift()?.(message), stdout: 'inherit', stderr: 'inherit' },
)
atEnd(() => child.kill())
const next = <Value>() => new Promise<Value>((resolve) => replies.push(resolve as (value: unknown) => void))
const baseUrl = await next<string>()

function ask<Value>(message: object): Promise<Value> {
  const answer = next<Value>()
  child.send(message)
  return answer
}
async function resetHold(): Promise<[number, number]> {
  const longest = ask<[number, number]>({ longest: true })
  const done = next<number>()
  await done
  return longest
}

const create = (input: object) => ask<{ id: string; key: string }>({ admin: ['keys.create', input] })
const credentials = {
  key: (await create({ name: 'caller' })).key,
  bounded: (await create({ name: 'bounded', allowed_models: ['m', 'm-*'] })).key,
  management: (await create({ name: 'admin', kind: 'management' })).key,
  none: '',
}
const send = (path: string, credential: string, method: string, type: string, body: string) =>
  fetch(baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${credential}`, 'content-type': type },
    body,
  })
const tool = (name: string) => ({ type: 'function', function: { name, parameters: {} } })
const preset = {
  model: 'm',
  tools: Array.from({ length: 1_000 }, (_, at) => tool(`f${at}`)),
  tool_choice: { type: 'function', function: { name: 'f1' } },
  messages: [{ role: 'system', content: 'Be brief.' }],
}
await send('/presets/p/chat/completions', credentials.management, 'POST', 'application/json', JSON.stringify(preset))

const file = join(benchFolder(), 'body')
const filter = process.argv[2] ?? ''
const runs = Number(process.env.BENCH_ROUNDS ?? 3)
console.log(
  `${'body'.padEnd(64)} ${'status'.padStart(6)} ${'hold'.padStart(7)} ${'parse'.padStart(7)} ${'beyond'.padStart(7)} ${'next'.padStart(7)}`,
)
for (const { name, path, as, method = 'POST', type = 'application/json', text } of bodies) {
  if (!`${path} ${name}`.includes(filter)) continue
  const body = text()
  writeFileSync(file, body)
  const parse = type === 'application/json' ? await ask<number>({ parse: file }) : 0
  const holds: [number, number][] = []
  let status = 0
  for (let run = 0; run < runs; run++) {
    await resetHold()
    const response = await send(path, credentials[as], method, type, body)
    await response.bytes()
    status = response.status
    holds.push(await resetHold())
  }
  const [hold = 0, next = 0] = [0, 1].map((at) => median(holds.map((both) => both[at] ?? 0)))
  const figures = [hold, parse, hold - parse, next].map((value) => value.toFixed(0).padStart(7)).join(' ')
  console.log(`${`${method} ${path} ${name}`.padEnd(64)} ${String(status).padStart(6)} ${figures}`)
}
process.exit(0)
