// Sessions of the admin page over HTTP: how they begin and end, what they may do, and which requests they count for.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { call, fromPage, signIn } from '../support/admin-page.ts'
import { type Federation, type Row, startFederation, startTestServer } from '../support/latchkey.ts'

const minute = 60_000
let now = Date.now()
let latchkey: Federation
let managementKey: Row & { key: string }
let readOnlyKey: Row & { key: string }
let accessToken: string
beforeAll(async () => {
  latchkey = await startFederation({ dependencies: { now: () => now } })
  managementKey = await latchkey.admin('keys.create', { name: 'boss', kind: 'management' })
  readOnlyKey = await latchkey.admin('keys.create', { name: 'reader', kind: 'management_read_only' })
  const exchanged = await latchkey.exchange(await latchkey.mint())
  accessToken = ((await exchanged.json()) as { access_token: string }).access_token
})
afterAll(() => latchkey.stop())
// Every sign-in finds a full bucket.
beforeEach(() => {
  now += 2 * minute
})

const list = '/workload-identity/policies'
const signInWith = (body: object, headers?: Record<string, string>) =>
  call(latchkey, '/admin/session', { method: 'POST', body, ...(headers && { headers }) })
const newKey = (name: string) => latchkey.admin<Row & { key: string }>('keys.create', { name, kind: 'management' })
const newLink = async (input: object = {}) => {
  const { url } = await latchkey.admin<{ url: string } & Row>('sessions.link', { key: 'boss', ...input })
  return url.slice(url.indexOf('#link=') + '#link='.length)
}
const statusWith = async (cookie: string, headers?: Record<string, string>) =>
  (await call(latchkey, list, { cookie, ...(headers && { headers }) })).status

test('a link is made for a management key alone', async () => {
  await expect(newLink({ key: 'target' })).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringContaining('is an inference key: choose a management key'),
  })
})

test('a session that was made two minutes ahead of the clock has ended', async () => {
  const cookie = await signIn(latchkey, { api_key: managementKey.key })
  expect(await statusWith(cookie)).toBe(200)
  now -= 2 * minute
  expect(await statusWith(cookie)).toBe(401)
  now += 2 * minute
})

describe('a sign-in', () => {
  test('with a management key says who is signed in and sets a cookie that no script reads', async () => {
    const response = await signInWith({ api_key: managementKey.key })
    expect(await response.json()).toMatchObject({
      data: {
        session_id: expect.any(String),
        organization: { name: 'default', workload_identity: true },
        workspace: { name: 'default' },
        key: { id: managementKey.id, name: 'boss' },
        read_only: false,
        expires_at: new Date(now + 30 * minute).toISOString(),
      },
    })
    const { port } = new URL(latchkey.server.baseUrl)
    expect(response.headers.get('set-cookie')).toMatch(
      new RegExp(`^latchkey-${port}=[\\w-]{43}; Max-Age=28800; Path=/; HttpOnly; SameSite=Strict$`),
    )
  })

  test('over HTTPS sets a cookie that only this host can set', async () => {
    const secure = await startTestServer({ settings: { LATCHKEY_BASE_URL: 'https://latchkey.example.com/v1' } })
    const { key } = await secure.admin<Row & { key: string }>('keys.create', { name: 'boss', kind: 'management' })
    const headers = { ...fromPage(secure), 'content-type': 'application/json' }
    const address = `http://127.0.0.1:${secure.server.address.port}/v1`
    const response = await fetch(`${address}/admin/session`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ api_key: key }),
    })
    const cookie = response.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(/^__Host-latchkey=[\w-]{43}; Max-Age=28800; Path=\/; HttpOnly; SameSite=Strict; Secure$/)
    const whoAmI = await fetch(`${address}/admin/session`, {
      headers: { 'sec-fetch-site': 'same-origin', cookie: cookie.replace(/;.*/, '') },
    })
    expect(whoAmI.status).toBe(200)
    await secure.stop()
  })

  test('with a link works once, as the key that the link names', async () => {
    const link = await newLink({ read_only: true })
    const first = await signInWith({ link })
    expect(await first.json()).toMatchObject({ data: { key: { name: 'boss' }, read_only: true } })
    expect((await signInWith({ link })).status).toBe(401)
  })

  test('has one text for every failure', async () => {
    const disabled = await newKey('disabled')
    await latchkey.admin('keys.disable', { key: 'disabled' })
    const deleted = await newKey('deleted')
    await latchkey.admin('keys.delete', { key: 'deleted' })
    const expired = await latchkey.admin<Row & { key: string }>('keys.create', {
      name: 'expired',
      kind: 'management',
      expires_at: new Date(now + minute).toISOString(),
    })
    const execute = (sql: string) => latchkey.server.context.writer.write([{ toSQL: () => ({ sql, params: [] }) }])
    // The clock of the database decides, and one that was set back ends a link.
    const early = await newLink()
    await execute('update sign_in_links set created_at = created_at + 3600000, expires_at = expires_at + 3600000')
    const late = await newLink()
    await execute(
      'update sign_in_links set expires_at = created_at where created_at < (select max(created_at) from sign_in_links)',
    )
    now += 2 * minute
    const failures = [
      { api_key: 'x' },
      { api_key: `sk-lk-v1-${'0'.repeat(64)}` },
      { api_key: latchkey.key.key },
      { api_key: accessToken.slice(0, 512) },
      { api_key: disabled.key },
      { api_key: deleted.key },
      { api_key: expired.key },
      { link: 'x' },
      { link: late },
      { link: early },
    ]
    const texts = new Set<string>()
    for (const body of failures) {
      const response = await signInWith(body)
      texts.add(`${response.status} ${await response.text()} ${response.headers.get('set-cookie')}`)
    }
    expect([...texts]).toEqual([
      '401 {"error":{"code":401,"message":"This does not sign in: use a management key that is in use, or a new link","metadata":{"error_type":"authentication"}}} null',
    ])
  })

  test('needs the evidence of the page', async () => {
    const body = { api_key: managementKey.key }
    const { origin } = new URL(latchkey.server.baseUrl)
    const strange: Record<string, string>[] = [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'none' },
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: origin.replace('http:', 'https:') },
      // Another port of this machine, and no port at all.
      { origin: origin.replace(/\d+$/, '1') },
      { origin: `${origin}11` },
    ]
    for (const headers of strange) expect((await signInWith(body, headers)).status).toBe(403)
    expect((await signInWith(body, { origin: origin.replace('127.0.0.1', 'localhost') })).status).toBe(200)
  })

  test('takes a key or a link, and nothing else', async () => {
    for (const body of [{}, { api_key: managementKey.key, link: 'x' }, { key: 'x' }, { link: 1 }])
      expect((await signInWith(body)).status).toBe(400)
  })

  test('ends the session that the browser had', async () => {
    const cookie = await signIn(latchkey, { api_key: managementKey.key })
    await call(latchkey, '/admin/session', { method: 'POST', body: { api_key: managementKey.key }, cookie })
    expect(await statusWith(cookie)).toBe(401)
  })

  test('ends the session of another organization without naming the new key there', async () => {
    await latchkey.admin('organizations.create', { name: 'second' })
    const stranger = await latchkey.admin<Row & { key: string }>('keys.create', {
      organization: 'second',
      name: 'stranger',
      kind: 'management',
    })
    const cookie = await signIn(latchkey, { api_key: managementKey.key })
    await call(latchkey, '/admin/session', { method: 'POST', body: { api_key: stranger.key }, cookie })
    expect(await statusWith(cookie)).toBe(401)
    const { data } = await latchkey.admin<{ data: Row[] }>('audit.changes', { organization: 'default', limit: 1 })
    expect(data).toMatchObject([{ operation: 'sessions.end', actor_key_name: 'boss' }])
  })

  describe('is slowed down', () => {
    const statusesOf = async (count: number, body: (index: number) => object) => {
      const statuses: number[] = []
      for (let index = 0; index < count; index++) statuses.push((await signInWith(body(index))).status)
      return statuses
    }
    const ten = (status: number) => Array<number>(10).fill(status)
    const wrongKey = (index: number) => ({ api_key: `sk-lk-v1-${String(index).repeat(64).slice(0, 64)}` })

    test('after ten wrong keys and links from an address, and right ones from there are not', async () => {
      const wrong = (index: number) => (index % 2 === 0 ? wrongKey(index) : { link: `${index}` })
      expect(await statusesOf(12, wrong)).toEqual([...ten(401), 429, 429])
      const refused = await signInWith({ link: 'x' })
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '6'])
      expect(await refused.text()).toContain('This does not sign in')
      const accepted = [{ api_key: managementKey.key }, { api_key: readOnlyKey.key }, { link: await newLink() }]
      expect(await statusesOf(3, (index) => accepted[index] ?? {})).toEqual([200, 200, 200])
      now += 6_000
      expect(await statusesOf(2, wrongKey)).toEqual([401, 429])
    })

    test('after ten sessions of a key, which begin no other, and other keys are not', async () => {
      const { key } = await newKey('busy')
      expect(await statusesOf(11, () => ({ api_key: key }))).toEqual([...ten(200), 429])
      const { data } = await latchkey.admin<{ data: Row[] }>('sessions.list')
      expect(data.filter(({ key_name }) => key_name === 'busy')).toHaveLength(10)
      expect((await signInWith({ api_key: managementKey.key })).status).toBe(200)
      expect((await signInWith({ api_key: 'x' })).status).toBe(401)
    })
  })
})

describe('a session', () => {
  let cookie: string
  beforeAll(async () => {
    now += 2 * minute
    cookie = await signIn(latchkey, { api_key: managementKey.key })
  })

  test('does what its key may do', async () => {
    const made = await call(latchkey, '/presets/by-session/chat/completions', {
      method: 'POST',
      body: { model: 'm', messages: [{ role: 'user', content: 'x' }] },
      cookie,
    })
    expect(made.status).toBe(200)
    for (const path of [list, '/keys', '/presets', '/metrics', '/admin/sessions'])
      expect({ path, status: (await call(latchkey, path, { cookie })).status }).toEqual({ path, status: 200 })
  })

  test('is no credential for inference and exchanges', async () => {
    const body = { model: 'echo', messages: [{ role: 'user', content: 'x' }] }
    for (const path of ['/chat/completions', '/responses'])
      expect((await call(latchkey, path, { method: 'POST', body, cookie })).status).toBe(401)
    for (const path of ['/models', '/key']) expect((await call(latchkey, path, { cookie })).status).toBe(401)
  })

  test('counts only with the evidence of the page, for reading too', async () => {
    const { origin, port } = new URL(latchkey.server.baseUrl)
    const strange: Record<string, string>[] = [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'none' },
      { 'sec-fetch-site': '' },
      { origin: 'https://evil.example' },
      { host: `latchkey.example.com:${port}` },
    ]
    for (const headers of strange)
      expect({ headers, status: await statusWith(cookie, headers) }).toEqual({ headers, status: 401 })
    const sent = await fetch(`${origin}/v1/presets/by-session`, {
      method: 'DELETE',
      headers: { cookie, 'sec-fetch-site': 'same-origin' },
    })
    expect(sent.status).toBe(401)
    expect(await statusWith(cookie)).toBe(200)
  })

  test('of a cookie that somebody made up, or sent twice, does not exist', async () => {
    const [name] = cookie.split('=')
    expect(await statusWith(`${name}=${'a'.repeat(43)}`)).toBe(401)
    expect(await statusWith(`${cookie}; ${name}=${'a'.repeat(43)}`)).toBe(401)
    expect(await statusWith(`__Host-${cookie}`)).toBe(401)
    expect(await statusWith(`other=1; ${cookie}; more=2`)).toBe(200)
  })

  test('yields to a credential in a header', async () => {
    const authorization = `Bearer ${latchkey.key.key}`
    expect(await statusWith(cookie, { authorization })).toBe(403)
    expect(await statusWith(cookie, { authorization: 'Bearer x' })).toBe(401)
  })

  test('of a link does not name the user of the machine to callers over HTTP', async () => {
    const actor = { kind: 'local', osUser: 'alice' } as const
    const made = await latchkey.server.runByName('sessions.link', { key: 'boss' }, actor)
    const { url } = made as { url: string }
    const linked = await signIn(latchkey, { link: url.slice(url.indexOf('#link=') + '#link='.length) })
    const local = await latchkey.admin<{ data: Row[] }>('audit.changes', { limit: 1 })
    expect(local.data).toMatchObject([{ operation: 'sessions.begin', after: { opened_by: 'alice' } }])
    const changes = await call(latchkey, '/workload-identity/audit/changes', { cookie: linked })
    expect(await changes.text()).not.toContain('alice')
  })

  test('is named in the record of its changes', async () => {
    const own = (await (await call(latchkey, '/admin/session', { cookie })).json()) as { data: { session_id: string } }
    await call(latchkey, '/presets/by-session', { method: 'PATCH', body: { name: 'Named' }, cookie })
    const { data } = await latchkey.admin<{ data: Row[] }>('audit.changes', { limit: 1 })
    expect(data).toMatchObject([
      { operation: 'presets.update', actor: 'key', actor_key_id: managementKey.id, session_id: own.data.session_id },
    ])
  })
})

test('a read-only key sees everything and changes nothing', async () => {
  const cookie = await signIn(latchkey, { api_key: readOnlyKey.key })
  const linked = await signIn(latchkey, { link: await newLink({ read_only: true }) })
  for (const each of [cookie, linked]) {
    expect(await statusWith(each)).toBe(200)
    expect((await call(latchkey, '/presets/x', { method: 'DELETE', cookie: each })).status).toBe(403)
    const body = { name: 'x', issuer_url: 'https://idp.example.com' }
    expect((await call(latchkey, '/workload-identity/issuers', { method: 'POST', body, cookie: each })).status).toBe(
      403,
    )
    expect((await call(latchkey, '/admin/session', { method: 'DELETE', cookie: each })).status).toBe(200)
  }
})

describe('a session ends', () => {
  let signedIn = 0
  const begin = async () => {
    signedIn += 1
    const name = `ending ${signedIn}`
    const { key } = await newKey(name)
    const cookie = await signIn(latchkey, { api_key: key })
    expect(await statusWith(cookie)).toBe(200)
    return { name, cookie }
  }

  test('at sign-out, and a copy of its cookie with it', async () => {
    const { cookie } = await begin()
    const response = await call(latchkey, '/admin/session', { method: 'DELETE', cookie })
    expect(response.headers.get('set-cookie')).toMatch(/^latchkey-\d+=; Max-Age=0; /)
    expect(await statusWith(cookie)).toBe(401)
    const { data } = await latchkey.admin<{ data: Row[] }>('audit.changes', { limit: 2 })
    expect(data).toMatchObject([
      { operation: 'sessions.end', kind: 'session', session_id: expect.any(String) },
      { operation: 'sessions.begin', kind: 'session', before: null, after: { ended_at: null } },
    ])
    expect(JSON.stringify(data)).not.toContain('sha256')
  })

  test('when its key is disabled, and stays ended', async () => {
    const { name, cookie } = await begin()
    await latchkey.admin('keys.disable', { key: name })
    expect(await statusWith(cookie)).toBe(401)
    await latchkey.admin('keys.enable', { key: name })
    expect(await statusWith(cookie)).toBe(401)
  })

  test('when its key is changed, deleted or expires', async () => {
    const changed = await begin()
    await latchkey.admin('keys.update', { key: changed.name, name: 'changed' })
    const deleted = await begin()
    await latchkey.admin('keys.delete', { key: deleted.name })
    for (const { cookie } of [changed, deleted]) expect(await statusWith(cookie)).toBe(401)
    const expires = await latchkey.admin<Row & { key: string }>('keys.create', {
      name: 'expires',
      kind: 'management',
      expires_at: new Date(now + minute).toISOString(),
    })
    const cookie = await signIn(latchkey, { api_key: expires.key })
    expect(await statusWith(cookie)).toBe(200)
    now += minute
    expect(await statusWith(cookie)).toBe(401)
  })

  test('after 30 minutes without use; what the page sends on its own is no use', async () => {
    const { cookie } = await begin()
    now += 29 * minute
    expect(await statusWith(cookie)).toBe(200)
    now += 29 * minute
    expect(await statusWith(cookie, { 'x-latchkey-background': '1' })).toBe(200)
    now += minute
    expect(await statusWith(cookie)).toBe(401)
  })

  test('after 8 hours, however much it is used', async () => {
    const { cookie } = await begin()
    for (let minutes = 0; minutes < 8 * 60 - 20; minutes += 20) {
      now += 20 * minute
      expect(await statusWith(cookie)).toBe(200)
    }
    now += 20 * minute
    expect(await statusWith(cookie)).toBe(401)
  })

  test('when somebody else ends it', async () => {
    const { name, cookie } = await begin()
    const boss = await signIn(latchkey, { api_key: managementKey.key })
    const { data } = (await (await call(latchkey, '/admin/sessions', { cookie: boss })).json()) as { data: Row[] }
    const found = data.find(({ key_name }) => key_name === name)
    expect(found).toMatchObject({ read_only: false, client_address: '127.0.0.1', current: false })
    expect(data.filter(({ current }) => current)).toHaveLength(1)
    const path = `/admin/sessions/${found?.id}`
    expect((await call(latchkey, path, { method: 'DELETE', cookie: boss })).status).toBe(200)
    expect(await statusWith(cookie)).toBe(401)
    expect((await call(latchkey, path, { method: 'DELETE', cookie: boss })).status).toBe(404)
  })

  test('when its key begins the twentieth after it', async () => {
    const { name, cookie } = await begin()
    for (let count = 0; count < 20; count++) {
      expect(await statusWith(cookie)).toBe(200)
      now += minute
      await signIn(latchkey, { link: await newLink({ key: name }) })
    }
    expect(await statusWith(cookie)).toBe(401)
  })
})

test('a session of another organization is neither listed nor ended', async () => {
  await latchkey.admin('organizations.create', { name: 'other' })
  const other = await latchkey.admin<Row & { key: string }>('keys.create', {
    organization: 'other',
    name: 'boss',
    kind: 'management',
  })
  const theirs = await signIn(latchkey, { api_key: other.key })
  await signIn(latchkey, { api_key: managementKey.key })
  const { data } = (await (await call(latchkey, '/admin/sessions', { cookie: theirs })).json()) as { data: Row[] }
  expect(data.map(({ key_id }) => key_id)).toEqual([other.id])
  const all = await latchkey.admin<{ data: Row[] }>('sessions.list', { organization: 'default' })
  const path = `/admin/sessions/${all.data[0]?.id}`
  expect((await call(latchkey, path, { method: 'DELETE', cookie: theirs })).status).toBe(404)
})

test('a session over plain HTTP and a network does not begin', async () => {
  const plain = await startTestServer({ settings: { LATCHKEY_BASE_URL: 'http://latchkey.example.com/v1' } })
  const { key } = await plain.admin<Row & { key: string }>('keys.create', { name: 'boss', kind: 'management' })
  const response = await fetch(`http://127.0.0.1:${plain.server.address.port}/v1/admin/session`, {
    method: 'POST',
    headers: { ...fromPage(plain), 'content-type': 'application/json', host: 'latchkey.example.com' },
    body: JSON.stringify({ api_key: key }),
  })
  expect([response.status, await response.text()]).toEqual([403, expect.stringContaining('Sign-in needs HTTPS')])
  await plain.stop()
})
