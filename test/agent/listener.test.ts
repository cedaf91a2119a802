// Where the agent listens: this machine alone, and nothing that another program uses.
import { afterAll, expect, test } from 'bun:test'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { listenAt, parseListenAddress } from '../../src/agent/listener.ts'
import { askReadiness } from '../../src/agent/readiness.ts'
import { temporaryFolder } from '../support/latchkey.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())
const respond =
  (status: number) => () => (_request: unknown, response: { writeHead: (status: number) => { end: () => void } }) =>
    void response.writeHead(status).end()

test('an address is one of this machine', () => {
  expect(parseListenAddress('127.0.0.1:8790')).toEqual({ hostname: '127.0.0.1', port: 8790 })
  expect(parseListenAddress('localhost:0')).toEqual({ hostname: '127.0.0.1', port: 0 })
  expect(parseListenAddress('[::1]:1')).toEqual({ hostname: '::1', port: 1 })
  expect(parseListenAddress('unix:/run/a.sock')).toEqual({ path: '/run/a.sock' })
  for (const foreign of ['0.0.0.0:1', '[::]:1', '10.0.0.1:1', 'example.com:1', '127.0.0.1.evil.com:1', '*:1'])
    expect(() => parseListenAddress(foreign)).toThrow('because other machines could use the token')
  for (const wrong of ['', '8790', ':8790', '127.0.0.1', '127.0.0.1:99999', 'unix:', 'http://127.0.0.1:1'])
    expect(() => parseListenAddress(wrong)).toThrow()
})

test('a port or socket that is in use, and a file in the place of a socket, are left alone', async () => {
  const path = join(folder.path, 'used.sock')
  const first = await listenAt({ path }, respond(200))
  await expect(listenAt({ path }, respond(200))).rejects.toThrow(`Another program listens on ${path}`)
  await first.stop(0)
  const file = join(folder.path, 'file')
  writeFileSync(file, 'kept')
  await expect(listenAt({ path: file }, respond(200))).rejects.toThrow('another file is in the way')
  const other = await listenAt({ hostname: '127.0.0.1', port: 0 }, respond(200))
  const again = listenAt({ hostname: '127.0.0.1', port: other.port ?? 0 }, respond(200))
  await expect(again).rejects.toThrow('Another program listens on 127.0.0.1')
  await other.stop(0)
})

test('the socket that a killed agent left is replaced', async () => {
  const path = join(folder.path, 'left.sock')
  const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`
  await Bun.spawn([process.execPath, '-e', script]).exited
  expect(statSync(path).isSocket()).toBe(true)
  const listener = await listenAt({ path }, respond(200))
  expect(await askReadiness({ path })).toBe('ready')
  await listener.stop(0)
  expect(existsSync(path)).toBe(false)
})

test('the check distinguishes an agent that is ready, one that is not, and none', async () => {
  const listener = await listenAt({ hostname: '127.0.0.1', port: 0 }, respond(503))
  const address = { hostname: '127.0.0.1', port: listener.port ?? 0 }
  expect(await askReadiness(address)).toBe('not_ready')
  await listener.stop(0)
  expect(await askReadiness(address)).toBe('unreachable')
})
