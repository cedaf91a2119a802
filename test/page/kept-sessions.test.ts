// What outlives a process: sessions in the database, and what a restart makes of them. And the page on its own address.
import { expect, spyOn, test } from 'bun:test'
import { createHmac, hash } from 'node:crypto'
import { listSessions } from '../../db/tables/sessions.ts'
import { configurationRevision, createRevisionKey } from '../../src/admin/sessions/configuration-revision.ts'
import { loadSessions, reloadSessions } from '../../src/page/session-rows.ts'
import { createSessions } from '../../src/page/sessions.ts'
import { loadRegistry } from '../../src/registry/registry.ts'
import { call, fromPage, signIn } from '../support/admin-page.ts'
import { type Row, startTestServer, type TestServer } from '../support/latchkey.ts'
import { startNodes, urlOf } from '../support/nodes.ts'

const newKey = ({ admin }: TestServer, name: string) =>
  admin<Row & { key: string }>('keys.create', { name, kind: 'management' })

test('a restart keeps sessions, without those that ended and those whose key was changed', async () => {
  let now = Date.now()
  const latchkey = await startTestServer({ dependencies: { now: () => now } })
  const { context } = latchkey.server
  const cookies = new Map<string, string>()
  for (const name of ['kept', 'signed out', 'disabled'])
    cookies.set(name, await signIn(latchkey, { api_key: (await newKey(latchkey, name)).key }))
  const cookieOf = (name: string) => ({ cookie: cookies.get(name) ?? '' })
  await call(latchkey, '/admin/session', { method: 'DELETE', ...cookieOf('signed out') })
  now += 60_000
  await latchkey.admin('keys.disable', { key: 'disabled' })
  await latchkey.admin('keys.enable', { key: 'disabled' })
  expect((await call(latchkey, '/keys', cookieOf('kept'))).status).toBe(200)

  const stored = await listSessions(context.orm)
  expect(JSON.stringify(stored)).not.toContain(cookieOf('kept').cookie.split('=')[1] ?? '')
  const organizationId = stored[0]?.organizationId ?? ''
  const namesAfterRestart = async () => {
    const sessions = createSessions({ ...context, registry: await loadRegistry(context.orm) })
    return sessions.list(organizationId).map(({ key, row }) => [key.name, row.usedAt])
  }
  expect(await namesAfterRestart()).toEqual([['kept', now - 60_000]])
  await context.page?.sessions.flush()
  expect(await namesAfterRestart()).toEqual([['kept', now]])
  now += 30 * 60_000
  await context.page?.sessions.flush()
  expect(await listSessions(context.orm)).toEqual([])
  expect((await call(latchkey, '/keys', cookieOf('kept'))).status).toBe(401)
  await latchkey.stop()
})

test('LATCHKEY_ADMIN_LISTEN moves the page and its sessions; the API stays on both addresses', async () => {
  const latchkey = await startTestServer({ settings: { LATCHKEY_ADMIN_LISTEN: '127.0.0.1:0' } })
  const { key } = await newKey(latchkey, 'boss')
  const main = new URL(latchkey.server.baseUrl).origin
  const { origin } = new URL(latchkey.server.pageUrl ?? '')
  expect(origin).not.toBe(main)
  expect((await fetch(`${origin}/admin/`)).status).toBe(200)
  expect((await fetch(`${main}/admin/`)).status).toBe(404)
  const signInAt = (address: string) =>
    fetch(`${address}/v1/admin/session`, {
      method: 'POST',
      headers: { ...fromPage(latchkey), 'content-type': 'application/json' },
      body: JSON.stringify({ api_key: key }),
    })
  expect((await signInAt(main)).status).toBe(404)
  const response = await signInAt(origin)
  const cookie = (response.headers.get('set-cookie') ?? '').replace(/;.*/, '')
  const statusAt = async (address: string, headers: Record<string, string>) =>
    (await fetch(`${address}/v1/keys`, { headers })).status
  expect(await statusAt(origin, { ...fromPage(latchkey), cookie })).toBe(200)
  expect(await statusAt(main, { ...fromPage(latchkey), cookie })).toBe(401)
  for (const address of [main, origin]) expect(await statusAt(address, { authorization: `Bearer ${key}` })).toBe(200)
  await latchkey.stop()
})

test('a second address that browsers reach over plain HTTP and a network is refused', async () => {
  const settings = { LATCHKEY_ADMIN_LISTEN: '0.0.0.0:0' }
  await expect(startTestServer({ settings })).rejects.toThrow('set LATCHKEY_ADMIN_ORIGIN to the https:// origin')
  const proxied = await startTestServer({
    settings: { ...settings, LATCHKEY_ADMIN_ORIGIN: 'https://admin.example.com' },
  })
  expect(proxied.server.pageUrl).toBe('https://admin.example.com/admin/')
  await proxied.stop()
})

test('a session that ends while its row is read stays ended', async () => {
  const latchkey = await startTestServer()
  const { registry, orm } = latchkey.server.context
  await signIn(latchkey, { api_key: (await newKey(latchkey, 'leaving')).key })
  const ids = [...registry.sessions.values()].map(({ row }) => row.id)
  const reading = reloadSessions(registry, orm, ids)
  registry.sessions.clear()
  await reading
  expect([ids.length, registry.sessions.size]).toEqual([1, 0])
  await loadSessions(registry, orm, ids)
  expect(registry.sessions.size).toBe(1)
  await latchkey.stop()
})

test('many sessions are read in parts, so that requests do not wait for them', async () => {
  const latchkey = await startTestServer()
  const { context } = latchkey.server
  await signIn(latchkey, { api_key: (await newKey(latchkey, 'boss')).key })
  const copies = `insert into sessions (id, organization_id, key_id, key_updated_at, token_sha256, client_address, created_at, used_at)
    select sessions.id || value, organization_id, key_id, key_updated_at, token_sha256 || value, client_address, created_at, used_at
    from sessions, json_each(?)`
  const numbers = JSON.stringify(Array.from({ length: 1_000 }, (_, number) => number))
  await context.writer.write([{ toSQL: () => ({ sql: copies, params: [numbers] }) }])
  await loadSessions(context.registry, context.orm)
  const { client } = context.database
  const execute = spyOn(client, 'execute')
  await context.page?.sessions.flush()
  const sizes = execute.mock.calls.map(([statement]) => JSON.stringify(statement).length)
  expect(sizes.filter((size) => size > 20_000)).toEqual([])
  expect(context.registry.sessions.size).toBe(1_001)
  await latchkey.stop()
})

test('the revision changes with every change, and is a 304 while nothing changed', async () => {
  const latchkey = await startTestServer()
  const { key } = await newKey(latchkey, 'boss')
  const read = (headers: Record<string, string> = {}) =>
    fetch(`${latchkey.server.baseUrl}/admin/revision`, { headers: { authorization: `Bearer ${key}`, ...headers } })
  const first = await read()
  const etag = first.headers.get('etag') ?? ''
  expect(await first.json()).toEqual({ data: { revision: etag.slice(1, -1) } })
  expect((await read({ 'if-none-match': etag })).status).toBe(304)
  await newKey(latchkey, 'another')
  const second = await read({ 'if-none-match': etag })
  expect([second.status, second.headers.get('etag') === etag]).toEqual([200, false])
  await latchkey.stop()
})

test('the revision says nothing about the number of changes, and differs between organizations', async () => {
  const latchkey = await startTestServer()
  const { orm, registry, revisionKey } = latchkey.server.context
  const [organization] = registry.organizations.keys()
  const id = organization ?? ''
  const shown = await configurationRevision({ orm, revisionKey }, id)
  for (let count = 0; count < 50; count++)
    for (const text of [`${id} ${count}`, `${count}`])
      for (const found of [
        hash('sha256', text, 'base64url'),
        createHmac('sha256', id).update(text).digest('base64url'),
      ])
        expect(found.slice(0, shown.length)).not.toBe(shown)
  expect(await configurationRevision({ orm, revisionKey }, 'another')).not.toBe(shown)
  expect(await configurationRevision({ orm, revisionKey: createRevisionKey('00'.repeat(32)) }, id)).not.toBe(shown)
  await latchkey.stop()
})

test('a session counts on every node, and ends on all of them, with its key too', async () => {
  const origin = 'https://admin.example.com'
  const nodes = await startNodes(0)
  const first = await nodes.add({ LATCHKEY_ADMIN_ORIGIN: origin })
  const second = await nodes.add({ LATCHKEY_ADMIN_ORIGIN: origin })
  const { key } = await newKey(first, 'boss')
  const send = (node: TestServer, path: string, init: RequestInit & { headers?: Record<string, string> } = {}) =>
    fetch(urlOf(node) + path, { ...init, headers: { ...fromPage(node), ...init.headers } })
  const signInAtSecond = async () => {
    const response = await send(second, '/admin/session', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ api_key: key }),
    })
    return (response.headers.get('set-cookie') ?? '').replace(/;.*/, '')
  }
  let cookie = await signInAtSecond()
  const statuses = async () => {
    const each = [first, second].map((node) => send(node, '/keys', { headers: { cookie } }))
    return (await Promise.all(each)).map(({ status }) => status)
  }
  expect(await statuses()).toEqual([200, 200])
  await second.server.context.page?.sessions.flush()
  expect(await statuses()).toEqual([200, 200])
  expect((await send(first, '/admin/session', { method: 'DELETE', headers: { cookie } })).status).toBe(200)
  expect(await statuses()).toEqual([401, 401])
  cookie = await signInAtSecond()
  expect(await statuses()).toEqual([200, 200])
  await first.admin('keys.disable', { key: 'boss' })
  expect(await statuses()).toEqual([401, 401])
  await nodes.stop()
})
