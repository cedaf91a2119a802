// A local socket among other programs: it takes no path that is in use, and removes nothing that it did not create.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { listenOnSocket } from '../../src/runtime/local-socket.ts'
import { startTestServer, temporaryFolder } from '../support/latchkey.ts'

let folder: ReturnType<typeof temporaryFolder>
let path: string
let others: Server[]
beforeEach(() => {
  folder = temporaryFolder()
  path = join(folder.path, 'metrics.sock')
  others = []
})
afterEach(() => {
  for (const other of others) other.close()
  folder.remove()
})

const listenHere = () =>
  listenOnSocket({ path, mode: 0o660, setting: 'LATCHKEY_METRICS_LISTEN' }, async () => new Response('ours'))
const ask = async () => (await fetch('http://localhost/', { unix: path })).text()

/** Another program that listens on the path. */
async function listenAsAnother(): Promise<void> {
  const other = createServer((socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\ntheirs'))
  others.push(other)
  await new Promise<void>((resolve) => other.listen(path, resolve))
}

test('has the mode that it was given, and leaves nothing behind', async () => {
  const listener = await listenHere()
  expect(statSync(path).mode & 0o777).toBe(0o660)
  expect(await ask()).toBe('ours')
  await listener.drain()
  expect(readdirSync(folder.path)).toEqual([])
})

test('a path on which another program listens is refused, and that program keeps it', async () => {
  await listenAsAnother()
  await expect(listenHere()).rejects.toMatchObject({
    code: 'configuration',
    message: expect.stringContaining('another program listens on it'),
  })
  expect(await ask()).toBe('theirs')
})

test('a server whose metrics socket is in use does not start, and the other program keeps it', async () => {
  await listenAsAnother()
  const settings = { LATCHKEY_METRICS_LISTEN: `unix:${path}` }
  await expect(startTestServer({ settings })).rejects.toThrow('choose another path with LATCHKEY_METRICS_LISTEN')
  expect(await ask()).toBe('theirs')
})

test('another file in the way is refused and kept', async () => {
  writeFileSync(path, 'text')
  await expect(listenHere()).rejects.toThrow('another file is in the way')
  expect(readFileSync(path, 'utf8')).toBe('text')
})

test('the socket of a dead program is replaced', async () => {
  const program = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 9))`
  await Bun.spawn([process.execPath, '-e', program]).exited
  expect(statSync(path).isSocket()).toBe(true)
  const listener = await listenHere()
  expect(await ask()).toBe('ours')
  await listener.drain()
})

test('a path that another program has taken since is left to it', async () => {
  const listener = await listenHere()
  rmSync(path)
  await listenAsAnother()
  await listener.drain()
  expect(existsSync(path)).toBe(true)
  expect(await ask()).toBe('theirs')
})
