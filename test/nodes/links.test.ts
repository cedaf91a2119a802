// One-time links to the admin page on a server database: made by a command without a node, good at any node, once.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { tmpdir } from 'node:os'
import { findSignInLink, insertSignInLink, isLinkUsed, useSignInLink } from '../../db/tables/sign-in-links.ts'
import { runCommand, type TestServer } from '../support/latchkey.ts'
import { masterKey, type Nodes, startNodes } from '../support/nodes.ts'
import { rejectionOf } from '../support/rejection.ts'

const origin = 'https://latchkey.example'
let cluster: Nodes
let nodes: TestServer[]
beforeAll(async () => {
  cluster = await startNodes(0)
  const settings = { LATCHKEY_BASE_URL: `${origin}/v1` }
  nodes = [await cluster.add(settings), await cluster.add(settings)]
  await nodes[0]?.admin('keys.create', { name: 'boss', kind: 'management' })
})
afterAll(() => cluster.stop())

const signInAt = async ({ server }: TestServer, link: string) => {
  const headers = { 'sec-fetch-site': 'same-origin', origin, 'content-type': 'application/json' }
  const url = `http://127.0.0.1:${server.address.port}/v1/admin/session`
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ link }) })
  return { status: response.status, cookie: (response.headers.get('set-cookie') ?? '').replace(/;.*/, '') }
}
const run = (words: string[], settings: Record<string, string> = {}) =>
  runCommand([...words, '--json'], {
    cwd: tmpdir(),
    env: { LATCHKEY_DATABASE_URL: cluster.database.url, LATCHKEY_MASTER_KEY: masterKey, ...settings },
  })

test('a link of a command signs in at one of many attempts at two nodes, and its session is good at both', async () => {
  const { code, stdout, stderr } = await run(['admin', 'open', '--key', 'boss'], { LATCHKEY_BASE_URL: `${origin}/v1` })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const { url } = JSON.parse(stdout) as { url: string }
  expect(url).toStartWith(`${origin}/admin/#link=`)
  const link = url.slice(url.indexOf('=') + 1)
  const attempts = await Promise.all([0, 1, 0, 1, 0, 1].map((index) => signInAt(nodes[index] as TestServer, link)))
  const accepted = attempts.filter(({ status }) => status === 200)
  expect([accepted.length, attempts.filter(({ status }) => status === 401).length]).toEqual([1, 5])
  for (const { server } of nodes) {
    const headers = { 'sec-fetch-site': 'same-origin', cookie: accepted[0]?.cookie ?? '' }
    expect((await fetch(`http://127.0.0.1:${server.address.port}/v1/admin/session`, { headers })).status).toBe(200)
  }
  expect(await nodes[1]?.admin('sessions.list')).toMatchObject({ data: [{ key_name: 'boss' }] })
})

test('a link that expires or is removed before its commit signs nobody in', async () => {
  const { orm, writer, registry } = (nodes[0] as TestServer).server.context
  const [keyId = ''] = registry.keys.keys()
  const grant = { keyId, readOnly: false, openedBy: null }
  await writer.write(insertSignInLink('lasting', grant, 60_000))
  await writer.write(insertSignInLink('expired', grant, -1_000))
  expect(await findSignInLink(orm, 'lasting')).toEqual(grant)
  await writer.write(insertSignInLink('ahead', grant, 60_000))
  const later = "update sign_in_links set created_at = created_at + 50000 where code_sha256 = 'ahead'"
  await writer.write([{ toSQL: () => ({ sql: later, params: [] }) }])
  expect(await findSignInLink(orm, 'ahead')).toBeUndefined()
  for (const code of ['expired', 'removed'])
    expect([code, isLinkUsed(await rejectionOf(writer.write(useSignInLink(code))))]).toEqual([code, true])
  await writer.write(useSignInLink('lasting'))
  expect(isLinkUsed(await rejectionOf(writer.write(useSignInLink('lasting'))))).toBe(true)
})

test('a command without the base URL does not guess one', async () => {
  const { code, stderr } = await run(['admin', 'open', '--key', 'boss'])
  expect([code, stderr]).toEqual([3, expect.stringContaining('Set LATCHKEY_BASE_URL')])
})
