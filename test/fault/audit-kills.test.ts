// Nodes that add exchanges and cover them are killed at any moment, on a file and three on a server database: no row is left without a leaf, and
// no leaf without its row. LATCHKEY_TEST_KILLS makes it larger, and prints what it counted.
import { afterEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { DatabaseCheck } from '../../src/audit-log/verify-database.ts'
import { killsOr } from '../support/chance.ts'
import { freePort } from '../support/free-port.ts'
import { temporaryFolder } from '../support/latchkey.ts'

const kills = killsOr(2)
const program = (name: string, ...words: string[]) => [
  process.execPath,
  join(import.meta.dirname, '../support', name),
  ...words,
]

let folder: ReturnType<typeof temporaryFolder>
const started: Bun.Subprocess[] = []
afterEach(async () => {
  for (const each of started.splice(0)) each.kill('SIGKILL')
  folder.remove()
})

/** Resolves once it has printed some lines: the last one is when it is killed. */
async function runUntil(command: string[], lines: number): Promise<Bun.Subprocess> {
  const child = Bun.spawn(command, { stdout: 'pipe', stderr: 'ignore' })
  started.push(child)
  let seen = 0
  for await (const piece of child.stdout) {
    seen += new TextDecoder().decode(piece).split('\n').length - 1
    if (seen >= lines) break
  }
  return child
}

async function verify(url: string): Promise<DatabaseCheck> {
  const child = Bun.spawn(program('audit-node.ts', url, 'verify'), { stdout: 'pipe', stderr: 'inherit' })
  return JSON.parse(await new Response(child.stdout).text()) as DatabaseCheck
}

/** Each node is killed while it is somewhere between its last checkpoint and the next one. */
async function killNodes(url: string, nodes: number): Promise<DatabaseCheck> {
  const start = (kill: number, node: number) =>
    runUntil(program('audit-node.ts', url, `${kill} ${node}`), 1 + (kill % 3))
  for (let done = 0; done < kills; done += nodes) {
    const running = await Promise.all(Array.from({ length: nodes }, (_, node) => start(done, node)))
    for (const child of running) child.kill('SIGKILL')
    await Promise.all(running.map(({ exited }) => exited))
  }
  const found = await verify(url)
  if (kills > 2) console.log(`${kills} kills of ${nodes} nodes: ${found.size} leaves, ${found.rows} rows`)
  return found
}

const whole = { problems: [], uncovered: 0, archived: 0, erased: 0 }

test('on a file, no row is left without a leaf', async () => {
  folder = temporaryFolder()
  const found = await killNodes(`file:${join(folder.path, 'latchkey.db')}`, 1)
  expect(found).toMatchObject({ ...whole, rows: found.size })
  expect(found.rows).toBeGreaterThan(40)
})

test('on a server database, no row of three nodes is left without a leaf', async () => {
  folder = temporaryFolder()
  const port = await freePort()
  await runUntil(program('hrana-server.ts', join(folder.path, 'server.db'), String(port)), 1)
  const found = await killNodes(`http://127.0.0.1:${port}`, 3)
  expect(found).toMatchObject({ ...whole, rows: found.size })
  expect(found.rows).toBeGreaterThan(60)
})
