// Roles of management keys: every operation with every role, over HTTP, as a session of the page, in the runner and on the local socket;
// and that nobody raises themselves.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { operations } from '../../src/admin/operations.ts'
import { askServer } from '../../src/admin/transport/client.ts'
import { actOf, actsOf, isAtLeast, mayDo, neededRolesOf, roleOfNew, weakestRoles } from '../../src/keys/roles.ts'
import { listEndpoints } from '../../src/server/all-endpoints.ts'
import { socketPathFor } from '../../src/settings/config.ts'

import { call, fromPage, signIn } from '../support/admin-page.ts'
import { onFile } from '../support/file-only.ts'
import { type Federation, type Row, startFederation } from '../support/latchkey.ts'
import { namesIn, rowsOf, sectionOf } from '../support/manual.ts'

const roles = ['viewer', 'auditor', 'operator', 'admin'] as const
type Role = (typeof roles)[number]
type MadeKey = Row & { key: string; hash: string }

let latchkey: Federation
let keys: Record<Role, MadeKey>
let cookies: Record<Role, string>
beforeAll(async () => {
  latchkey = await startFederation()
  const made: [Role, MadeKey][] = []
  for (const role of roles) made.push([role, await latchkey.admin<MadeKey>('keys.create', { name: role, role })])
  keys = Object.fromEntries(made) as Record<Role, MadeKey>
  const signedIn: [Role, string][] = []
  for (const role of roles) signedIn.push([role, await signIn(latchkey, { api_key: keys[role].key })])
  cookies = Object.fromEntries(signedIn) as Record<Role, string>
})
afterAll(() => latchkey.stop())

const actorOf = (role: Role) => ({ kind: 'key' as const, keyId: keys[role].id, requestId: crypto.randomUUID() })

/** Calls a route so that it changes nothing: no field is valid, and nothing has the name. */
function send(role: Role, method: string, path: string, as: 'key' | 'session', body?: object): Promise<Response> {
  const filled = path.replaceAll(/\{\w+\+?\}/g, '00000000-0000-4000-8000-000000000000')
  const asKey = { authorization: `Bearer ${keys[role].key}` }
  return fetch(latchkey.server.baseUrl + filled, {
    method,
    headers: {
      ...(as === 'key' ? asKey : { ...fromPage(latchkey), cookie: cookies[role] }),
      ...(method === 'GET' ? {} : { 'content-type': 'application/json' }),
    },
    body: method === 'GET' ? null : JSON.stringify(body ?? { no_such_field: true }),
  })
}

const managed = () =>
  listEndpoints(latchkey.server.runByName)
    .filter(({ openapi }) => openapi.access.startsWith('admin:'))
    .map(({ method, path, openapi }) => ({ method, path, weakest: openapi.access.slice('admin:'.length) as Role }))
    .filter(({ method, path }) => `${method} ${path}` !== 'DELETE /admin/session')

describe('every operation with every role', () => {
  test('is in the table, and the table has nothing else', () => {
    const acts = Object.keys(weakestRoles).filter((act) => act !== 'policies.draft')
    expect(acts.toSorted()).toEqual(Object.keys(operations).toSorted())
  })

  test('is in the manual', () => {
    const rows = rowsOf(sectionOf('roles', 'Roles of each operation'))
    const told = rows.flatMap(([role = '', cell]) => namesIn(cell).map((act) => [act, namesIn(role)[0] ?? null]))
    expect(Object.fromEntries(told)).toEqual(weakestRoles)
    expect(told).toHaveLength(Object.keys(weakestRoles).length)
  })

  for (const as of ['key', 'session'] as const)
    for (const role of roles)
      test(`over HTTP, a ${as} with the role ${role} reaches what the table gives it and nothing else`, async () => {
        const routes = managed()
        expect(routes.length).toBeGreaterThan(50)
        const wrong: string[] = []
        for (const { method, path, weakest } of routes) {
          const { status } = await send(role, method, path, as)
          // The body decides whether it is a dry run, which a viewer may do; without dry_run, it is not one.
          const isAllowed = isAtLeast(role, weakest)
          if (isAllowed ? [401, 403].includes(status) : status !== 403) wrong.push(`${method} ${path}: ${status}`)
        }
        expect(wrong).toEqual([])
      })

  test('in the runner, is refused before its input is looked at', async () => {
    const wrong: string[] = []
    for (const role of roles)
      for (const name of Object.keys(operations)) {
        const asked = latchkey.server.runByName(name, { no_such_field: true }, actorOf(role))
        const code = await asked.then(
          () => 'done',
          (error: { code?: string }) => error.code,
        )
        if (code !== (mayDo(role, name) ? 'invalid' : 'forbidden')) wrong.push(`${role} ${name}: ${code}`)
      }
    expect(wrong).toEqual([])
  })

  onFile('local socket').test('on the local socket, has no roles', async () => {
    for (const name of Object.keys(operations)) {
      const asked = askServer(socketPathFor(latchkey.config), name, { no_such_field: true })
      await expect(asked).rejects.toMatchObject({ code: 'invalid' })
    }
  })

  test('differs as the manual says in words', () => {
    const gained = roles.map((role, index) => {
      const before = roles[index - 1]
      return actsOf(role).filter((act) => before === undefined || !mayDo(before, act))
    })
    const [viewer = [], auditor, operator = [], admin = []] = gained
    expect(viewer.filter((act) => Object.hasOwn(operations, act) && mutates(act))).toEqual([])
    expect(auditor).toEqual(['audit.log', 'audit.prove'])
    expect([...new Set(operator.map(groupOf))]).toEqual(['keys', 'budgets', 'presets', 'upstreams'])
    expect([...new Set(admin.map(groupOf))].toSorted()).toEqual(
      [
        ...['backup', 'bundle_signers', 'config', 'issuers', 'organizations', 'policies', 'prices', 'sessions'],
        ...['signing_keys', 'upstreams', 'webhooks', 'workspaces'],
      ].toSorted(),
    )
  })
})

const groupOf = (act: string) => act.split('.')[0]
const mutates = (act: string) => operations[act as keyof typeof operations].mutates

test('nobody may do what the table does not have, and no key may what it leaves to the machine', () => {
  for (const act of ['toString', '__proto__', 'keys.burn', 'init', 'sessions.link'])
    expect(mayDo('admin', act)).toBe(false)
  expect(mayDo(null, 'keys.list')).toBe(false)
})

test('only dry_run true makes a creation of a policy a draft', async () => {
  for (const dry_run of [false, 'true', 1, null, undefined])
    expect(actOf('policies.create', { dry_run })).toBe('policies.create')
  expect(actOf('policies.create', { dry_run: true })).toBe('policies.draft')
  expect(actOf('issuers.import', { dry_run: true })).toBe('issuers.import')
  const policy = { name: 'draft', issuer: 'idp', key: 'target', audience: 'a', subject: 's' }
  const path = '/workload-identity/policies'
  expect((await send('operator', 'POST', path, 'key', { ...policy, dry_run: true })).status).toBe(200)
  const refused = await send('operator', 'POST', path, 'key', policy)
  expect({ status: refused.status, body: await refused.text() }).toEqual({
    status: 403,
    body: expect.stringContaining('with the role operator may not do this: use one with the role admin'),
  })
})

describe('a role never raises itself', () => {
  const run = (role: Role, name: string, input: object) => latchkey.server.runByName(name, input, actorOf(role))

  test('a key makes no key above it, and makes one of its own role', async () => {
    const above = { name: 'above', role: 'admin' }
    await expect(run('operator', 'keys.create', above)).rejects.toMatchObject({
      code: 'forbidden',
      message:
        'The key "above" has the role admin, which may do more than yours (operator): use a key with the role admin',
    })
    await expect(run('operator', 'keys.create', { name: 'above', kind: 'management' })).rejects.toMatchObject({
      code: 'forbidden',
    })
    expect(await run('operator', 'keys.create', { name: 'peer', role: 'operator' })).toMatchObject({ role: 'operator' })
    expect(await run('admin', 'keys.create', { name: 'second admin', role: 'admin' })).toMatchObject({ role: 'admin' })
  })

  test.each(['keys.disable', 'keys.enable', 'keys.delete'])(
    '%s refuses a key above, also among others',
    async (name) => {
      const before = await latchkey.admin('keys.show', { key: 'admin' })
      await expect(run('operator', name, { key: 'admin' })).rejects.toMatchObject({ code: 'forbidden' })
      await expect(run('operator', name, { keys: ['viewer', 'admin'] })).rejects.toMatchObject({ code: 'forbidden' })
      expect(await latchkey.admin('keys.show', { key: 'admin' })).toEqual(before)
      expect(await latchkey.admin('keys.show', { key: 'viewer' })).toMatchObject({ disabled: false })
    },
  )

  test('a key does not learn the text of a key above it', async () => {
    await expect(run('operator', 'keys.rotate', { key: 'admin' })).rejects.toMatchObject({ code: 'forbidden' })
    expect((await send('operator', 'POST', `/keys/${keys.admin.hash}/rotate`, 'session', {})).status).toBe(403)
    expect((await send('admin', 'GET', '/admin/session', 'key')).status).toBe(200)
  })

  test('over HTTP, an operator changes no admin, and no key gets another role', async () => {
    const path = `/keys/${keys.admin.hash}`
    expect((await send('operator', 'PATCH', path, 'key', { name: 'mine' })).status).toBe(403)
    expect((await send('operator', 'DELETE', path, 'session', {})).status).toBe(403)
    const own = `/keys/${keys.operator.hash}`
    expect((await send('operator', 'PATCH', own, 'key', { role: 'admin' })).status).toBe(400)
    expect((await send('operator', 'POST', '/keys', 'key', { name: 'new', role: 'admin' })).status).toBe(403)
    expect((await send('viewer', 'POST', '/keys', 'session', { name: 'new', role: 'viewer' })).status).toBe(403)
    const made = await send('operator', 'POST', '/keys', 'key', { name: 'new', role: 'viewer' })
    expect(await made.json()).toMatchObject({ data: { kind: 'management_read_only', role: 'viewer', limit: null } })
    await expect(latchkey.admin('keys.update', { key: 'operator', role: 'admin' })).rejects.toMatchObject({
      code: 'invalid',
    })
  })

  test('a session that only reads is a viewer, whatever its key may do', async () => {
    const { url } = await latchkey.admin<{ url: string } & Row>('sessions.link', { key: 'admin', read_only: true })
    const cookie = await signIn(latchkey, { link: url.slice(url.indexOf('#link=') + '#link='.length) })
    const shown = (await (await call(latchkey, '/admin/session', { cookie })).json()) as { data: { may: string[] } }
    expect(shown.data).toMatchObject({ role: 'viewer', read_only: true, may: actsOf('viewer') })
    expect((await call(latchkey, '/installation/audit-log', { cookie })).status).toBe(403)
    const rotated = await call(latchkey, '/installation/signing-keys/rotate', { method: 'POST', cookie, body: {} })
    expect(rotated.status).toBe(403)
  })
})

describe('kind and role of a new key', () => {
  test.each([
    [{}, 'inference', null],
    [{ kind: 'management' }, 'management', 'admin'],
    [{ kind: 'management_read_only' }, 'management_read_only', 'viewer'],
    [{ role: 'operator' }, 'management', 'operator'],
    [{ role: 'auditor' }, 'management_read_only', 'auditor'],
    [{ kind: 'management', role: 'operator' }, 'management', 'operator'],
  ] as const)('%p', (input, kind, role) => {
    expect(roleOfNew(input)).toEqual({ kind, role })
  })

  test.each([
    { kind: 'inference', role: 'viewer' },
    { kind: 'management', role: 'viewer' },
    { kind: 'management_read_only', role: 'admin' },
  ] as const)('%p contradicts itself', (input) => {
    expect(() => roleOfNew(input)).toThrow('does not fit the kind')
  })
})

describe('an auditor', () => {
  test('gets the state of the audit log, and a proof of an exchange of the own organization alone', async () => {
    const requestId = (await latchkey.exchange(await latchkey.mint())).headers.get('x-request-id') ?? ''
    const path = `/workload-identity/audit/proof?request_id=${requestId}`
    const proven = (await (await send('auditor', 'GET', path, 'key')).json()) as { data: { proof: string } }
    expect(proven.data.proof).toStartWith('c2sp.org/tlog-proof@v1')
    const log = (await (await send('auditor', 'GET', '/installation/audit-log', 'key')).json()) as { data: Row }
    expect(log.data).toMatchObject({ mode: expect.any(String), entries: expect.any(Number) })

    await latchkey.admin('organizations.create', { name: 'other' })
    const input = { name: 'foreign', role: 'auditor', organization: 'other' }
    const { key } = await latchkey.admin<MadeKey>('keys.create', input)
    const foreign = await fetch(latchkey.server.baseUrl + path, { headers: { authorization: `Bearer ${key}` } })
    expect({ status: foreign.status, body: await foreign.text() }).toEqual({
      status: 404,
      body: expect.not.stringContaining('tlog-proof'),
    })
  })
})

test('what a role may not do names the weakest role that may, unless no management key may', () => {
  for (const role of roles) {
    const needed = neededRolesOf(role)
    const others = Object.entries(weakestRoles).filter(([act, weakest]) => weakest !== null && !mayDo(role, act))
    expect(Object.entries(needed)).toEqual(others as [string, Role][])
    for (const [act, other] of Object.entries(needed)) expect(mayDo(other, act)).toBe(true)
  }
  expect(neededRolesOf('viewer')).toMatchObject({ 'policies.create': weakestRoles['policies.create'] })
  expect(neededRolesOf('admin')).toEqual({})
})
