// Filters on lists: by owner and state, by key and issuer, for commands and over HTTP alike.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createCommandRunner } from '../../support/command-runner.ts'
import type { Row } from '../../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'

const hourMilliseconds = 3_600_000

type Named = Row & { name: string }
let latchkey: PastedIssuer
let commands: ReturnType<typeof createCommandRunner>
let managementKey: string
let gone: Record<'key' | 'issuer', string>

beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  commands = createCommandRunner(latchkey.folder)
  const { admin, pairs, clock } = latchkey
  // On a server database, commands ask with the real clock.
  clock.now -= hourMilliseconds
  const create = (name: string, input: object = {}) => admin<Named & { key: string }>('keys.create', { name, ...input })
  managementKey = (await create('manager', { kind: 'management' })).key
  await create('of-ada', { owner: 'ada' })
  await create('off', { owner: 'ada' })
  await create('late', { expires_at: new Date(clock.now + 1_000).toISOString() })
  const { id: key } = await create('gone')
  const jwks = { keys: [pairs.es.publicJwk] }
  const { id: issuer } = await admin('issuers.add', { name: 'other', issuer_url: 'https://other.example.com', jwks })
  const policy = { issuer: 'idp', key: 'of-ada', audience: 'a', subject: 's' }
  for (const [name, input] of Object.entries({
    paused: {},
    'without-key': { key: 'gone' },
    'without-issuer': { issuer: 'other' },
    'with-late-key': { key: 'late' },
    'with-off-key': { key: 'off' },
  }))
    await admin('policies.create', { name, ...policy, ...input })
  await admin('policies.pause', { policy: 'paused' })
  await admin('keys.disable', { key: 'off' })
  await admin('keys.delete', { key: 'gone' })
  await admin('issuers.delete', { issuer: 'other' })
  gone = { key, issuer }
  clock.now += hourMilliseconds
})
afterAll(() => latchkey.stop())

const namesOf = ({ data }: { data: Named[] }) => data.map(({ name }) => name).toSorted()

async function overHttp(path: string): Promise<{ status: number; body: { data: Named[] } }> {
  const response = await fetch(`${latchkey.server.baseUrl}${path}`, {
    headers: { authorization: `Bearer ${managementKey}` },
  })
  return { status: response.status, body: (await response.json()) as { data: Named[] } }
}

describe('keys are listed', () => {
  const rows: [filter: string[], names: string[]][] = [
    [
      ['--owner', 'ada'],
      ['of-ada', 'off'],
    ],
    [['--state', 'disabled'], ['off']],
    [['--state', 'expired'], ['late']],
    [['--state', 'enabled', '--owner', 'ada'], ['of-ada']],
  ]
  for (const [filter, names] of rows) {
    test(`with ${filter.join(' ')}`, async () => {
      expect(namesOf((await commands.json('keys', 'list', ...filter)) as { data: Named[] })).toEqual(names)
    })
  }

  test('with the state that each has', async () => {
    const { data } = await latchkey.admin<{ data: (Named & { state: string })[] }>('keys.list')
    const states = Object.fromEntries(data.map(({ name, state }) => [name, state]))
    expect(states).toMatchObject({ 'of-ada': 'enabled', off: 'disabled', late: 'expired' })
  })

  test('but not for an owner whom nobody knows', async () => {
    const { error } = await commands.failure('keys', 'list', '--owner', 'nobody')
    expect(error).toEqual({ code: 'not_found', message: expect.stringContaining('"nobody"') })
  })

  test('but not in a state that there is not', async () => {
    expect(await commands.failure('keys', 'list', '--state', 'odd')).toMatchObject({ code: 2 })
  })
})

describe('policies are listed', () => {
  const rows: [filter: Record<string, string>, names: string[]][] = [
    [{ key: 'target' }, ['policy']],
    [{ issuer: 'idp', state: 'enabled' }, ['policy']],
    [{ state: 'paused' }, ['paused']],
    [{ state: 'inactive' }, ['with-late-key', 'with-off-key', 'without-issuer', 'without-key']],
  ]
  for (const [filter, names] of rows) {
    const pairs = Object.entries(filter)
    test(`with ${pairs.map((pair) => pair.join(' ')).join(', ')}, by command and over HTTP`, async () => {
      const options = pairs.flatMap(([name, value]) => [`--${name}`, value])
      expect(namesOf((await commands.json('policies', 'list', ...options)) as { data: Named[] })).toEqual(names)
      const { status, body } = await overHttp(`/workload-identity/policies?${new URLSearchParams(filter)}`)
      expect({ status, names: namesOf(body) }).toEqual({ status: 200, names })
    })
  }

  test('of a deleted key or issuer, by id', async () => {
    const { admin } = latchkey
    expect(namesOf(await admin('policies.list', { key: gone.key }))).toEqual(['without-key'])
    expect(namesOf(await admin('policies.list', { issuer: gone.issuer }))).toEqual(['without-issuer'])
  })

  test('but not for what is not there', async () => {
    for (const query of ['key=none', 'issuer=none'])
      expect((await overHttp(`/workload-identity/policies?${query}`)).status).toBe(404)
    expect((await overHttp('/workload-identity/policies?state=odd')).status).toBe(400)
  })
})

describe('a policy that cannot exchange says why, in JSON and in the table:', () => {
  const rows: [policy: string, state: string, reason: string | null, shown: string][] = [
    ['policy', 'enabled', null, 'enabled'],
    ['paused', 'paused', 'policy_paused', 'paused'],
    ['without-key', 'inactive', 'key_deleted', 'inactive: key deleted'],
    ['without-issuer', 'inactive', 'issuer_deleted', 'inactive: issuer deleted'],
    ['with-late-key', 'inactive', 'key_expired', 'inactive: key expired'],
    ['with-off-key', 'inactive', 'key_disabled', 'inactive: key disabled'],
  ]
  for (const [policy, state, inactive_reason, shown] of rows) {
    test(`${policy} is ${shown}`, async () => {
      expect(await latchkey.admin('policies.show', { policy })).toMatchObject({ state, inactive_reason })
      const { body } = await overHttp(`/workload-identity/policies/${policy}`)
      expect(body.data).toMatchObject({ state, inactive_reason })
      const { stdout } = await commands.run('policies', 'list')
      expect(
        stdout
          .split('\n')
          .find((line) => line.startsWith(`${policy} `))
          ?.split(/ {2,}/)[1],
      ).toBe(shown)
    })
  }

  test('and with a plan that lacks federation all of them', async () => {
    await latchkey.admin('organizations.plan', { organization: 'default', plan: 'free' })
    const shown = await latchkey.admin('policies.show', { policy: 'policy' })
    expect(shown).toMatchObject({ state: 'inactive', inactive_reason: 'organization_not_entitled' })
    await latchkey.admin('organizations.plan', { organization: 'default', plan: 'enterprise' })
  })
})
