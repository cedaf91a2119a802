// 200 callers in four processes that ask for a token at once cause one exchange.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { listenLocally, temporaryFolder } from '../support/latchkey.ts'

const [processes, callers] = [4, 50]
const jwt = 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ3In0.c2ln'
const room = join(import.meta.dirname, '../../src/agent')
/** Asks when its standard input ends, so that all processes ask together. Prints the tokens that it got. */
const asker = `
  const { findAccessToken, tokenSource } = await import(${JSON.stringify(join(room, 'access-token.ts'))})
  const { thisMachine } = await import(${JSON.stringify(join(room, 'this-machine.ts'))})
  const dependencies = { platform: thisMachine, now: Date.now, userAgent: 'test' }
  const identity = { kind: 'env', name: 'JWT' }
  const source = tokenSource({ url: process.env.URL, policy: 'p', identity, allowsHttp: false })
  process.stdout.write('ready ')
  await Bun.stdin.text()
  const ask = () => findAccessToken(source, { force: false }, dependencies)
  const tokens = await Promise.all(Array.from({ length: ${callers} }, ask))
  process.stdout.write([...new Set(tokens.map(({ text }) => text))].join() + ' ' + tokens.length)
`

test('200 callers in four processes cause one exchange', async () => {
  const folder = temporaryFolder()
  let exchanges = 0
  const server = await listenLocally(async () => {
    exchanges += 1
    return Response.json({ access_token: `token-${exchanges}`, token_type: 'Bearer', expires_in: 900 })
  })
  const env = { PATH: process.env.PATH ?? '', XDG_RUNTIME_DIR: folder.path, JWT: jwt, URL: `${server.url}/v1` }
  const children = Array.from({ length: processes }, () =>
    Bun.spawn([process.execPath, '-e', asker], { env, stdin: 'pipe', stdout: 'pipe' }),
  )
  const readers = children.map(({ stdout }) => stdout.getReader())
  const readAll = () =>
    Promise.all(readers.map(async (reader) => new TextDecoder().decode((await reader.read()).value)))
  expect(await readAll()).toEqual(Array(processes).fill('ready '))
  for (const { stdin } of children) stdin.end()
  expect(await readAll()).toEqual(Array(processes).fill(`token-1 ${callers}`))
  expect(exchanges).toBe(1)
  await server.listener.drain()
  folder.remove()
})
