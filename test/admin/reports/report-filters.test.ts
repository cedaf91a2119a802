// Reports narrowed by key, policy, issuer and subject, and a request found by its id, whether it exchanged a token or called inference.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createCommandRunner } from '../../support/command-runner.ts'
import { type Inference, startInference, type UsageRow } from '../../support/inference.ts'
import { mintAt, postExchange, type Row, subject } from '../../support/latchkey.ts'

type Listed = { data: UsageRow[] }
let latchkey: Inference
let commands: ReturnType<typeof createCommandRunner>
/** The request ids of three calls: with the target key itself, with its access token, and with a token under a policy that is deleted now. */
let calls: Record<'byKey' | 'byToken' | 'byGone', string>
let exchangeId: string
let gone: string
let otherKey: string

const idOf = (response: Response) => response.headers.get('x-request-id') ?? ''
const audience = 'gone-audience'

beforeAll(async () => {
  latchkey = await startInference()
  commands = createCommandRunner(latchkey.folder)
  const { admin, complete, accessToken } = latchkey
  await admin('keys.create', { name: 'second' })
  const policy = { name: 'gone', issuer: 'idp', key: 'second', audience, subject: 'workload-2' }
  gone = (await admin('policies.create', policy)).id
  const subjectToken = await mintAt(latchkey.issuerUrl, { sub: 'workload-2', aud: audience })
  const fields = { federation_policy_id: gone, subject_token: subjectToken }
  const exchanged = await postExchange(latchkey.server.baseUrl, fields)
  exchangeId = idOf(exchanged)
  const { access_token } = (await exchanged.json()) as { access_token: string }
  const withToken = (token: string) => complete(undefined, { authorization: `Bearer ${token}` })
  calls = {
    byKey: idOf(await complete()),
    byToken: idOf(await withToken(accessToken)),
    byGone: idOf(await withToken(access_token)),
  }
  await admin('policies.delete', { policy: 'gone' })
  await admin('organizations.create', { name: 'other' })
  const manager = { name: 'manager', kind: 'management' }
  otherKey = (await admin<Row & { key: string }>('keys.create', { ...manager, organization: 'other' })).key
})
afterAll(() => latchkey.stop())

const rows: [name: string, filter: () => Record<string, string>, found: (keyof typeof calls)[]][] = [
  ['nothing', () => ({}), ['byGone', 'byToken', 'byKey']],
  ['a policy by name', () => ({ policy: 'policy' }), ['byToken']],
  ['a deleted policy by id', () => ({ policy: gone }), ['byGone']],
  ['a subject', () => ({ subject }), ['byToken']],
  ['an issuer', () => ({ issuer: 'idp' }), ['byGone', 'byToken']],
  ['an issuer and a key', () => ({ issuer: 'idp', key: 'second' }), ['byGone']],
  ['a policy and another subject', () => ({ policy: 'policy', subject: 'workload-2' }), []],
  ['a time to come', () => ({ since: '2200-01-01T00:00:00Z', policy: 'policy' }), []],
]
describe('requests and their sums are narrowed by', () => {
  for (const [name, filter, found] of rows) {
    test(name, async () => {
      const options = Object.entries(filter()).flatMap(([option, value]) => [`--${option}`, value])
      const { data } = (await commands.json('usage', '--requests', ...options)) as Listed
      expect(data.map(({ request_id }) => request_id)).toEqual(found.map((call) => calls[call]))
      const sums = await latchkey.admin<{ data: { requests: number }[] }>('usage.sum', filter())
      expect(sums.data.reduce((sum, { requests }) => sum + requests, 0)).toBe(found.length)
    })
  }

  for (const option of ['policy', 'issuer', 'key'])
    test(`but not by a ${option} that is not there`, async () => {
      const { code, error } = await commands.failure('usage', '--requests', `--${option}`, 'none')
      expect({ code, error }).toMatchObject({ code: 1, error: { code: 'not_found' } })
    })

  test('and the table has the request id, with a sentence where nothing is left', async () => {
    const { stdout } = await commands.run('usage', '--requests', '--policy', 'policy')
    const [heading = '', row = ''] = stdout.split('\n')
    expect(heading).toEndWith('REQUEST ID')
    expect(row).toEndWith(calls.byToken)
    const none = await commands.run('usage', '--requests', '--subject', 'none')
    expect(none.stdout).toBe('No matches\n')
  })
})

describe('exchanges are narrowed by', () => {
  const narrowed: [filter: Record<string, string>, count: number][] = [
    [{ key: 'second' }, 1],
    [{ key: 'target' }, 1],
    [{ issuer: 'idp' }, 2],
    [{ subject: 'workload-2' }, 1],
    [{ subject: 'workload-3' }, 0],
    [{ grant: 'token-exchange' }, 2],
    [{ grant: 'jwt-bearer' }, 0],
  ]
  for (const [filter, count] of narrowed) {
    test(`${Object.entries(filter).join(', ')}, by command and over HTTP`, async () => {
      const options = Object.entries(filter).flatMap(([option, value]) => [`--${option}`, value])
      expect((await commands.json('audit', ...options)).data).toHaveLength(count)
      const { key } = await latchkey.admin<Row & { key: string }>('keys.create', {
        name: `manager-${Object.values(filter)}-${Object.keys(filter)}`,
        kind: 'management_read_only',
      })
      const response = await fetch(
        `${latchkey.server.baseUrl}/workload-identity/audit?${new URLSearchParams(filter)}`,
        { headers: { authorization: `Bearer ${key}` } },
      )
      expect(response.status).toBe(200)
      expect(((await response.json()) as { data: object[] }).data).toHaveLength(count)
    })
  }
})

describe('audit show finds', () => {
  test('an exchange', async () => {
    const shown = await commands.json('audit', 'show', exchangeId)
    expect(shown).toMatchObject({ kind: 'exchange', request_id: exchangeId, outcome: 'issued', subject: 'workload-2' })
  })

  test('an inference request, as the ledger has it', async () => {
    const { data } = await latchkey.admin<Listed>('usage.requests', { policy: 'policy' })
    expect(await commands.json('audit', 'show', calls.byToken)).toEqual({ kind: 'inference', ...data[0] })
    expect((await commands.run('audit', 'show', calls.byToken.toUpperCase())).stdout).toContain('workload-1')
  })

  test('both over HTTP, and for nobody of another organization', async () => {
    const { key } = await latchkey.admin<Row & { key: string }>('keys.create', { name: 'own', kind: 'management' })
    for (const [id, kind] of [
      [exchangeId, 'exchange'],
      [calls.byKey, 'inference'],
    ] as const) {
      const show = (token: string) =>
        fetch(`${latchkey.server.baseUrl}/workload-identity/audit/${id}`, {
          headers: { authorization: `Bearer ${token}` },
        })
      const own = await show(key)
      expect(own.status).toBe(200)
      expect(await own.json()).toMatchObject({ data: { kind, request_id: id } })
      expect((await show(otherKey)).status).toBe(404)
    }
  })

  test('nothing under an id that nobody got, and says where else to look', async () => {
    const { code, error } = await commands.failure('audit', 'show', '01a1feb6-0bde-7947-b3a3-0ae6b3f500f6')
    expect(code).toBe(1)
    expect(error).toEqual({ code: 'not_found', message: expect.stringContaining('the log') })
  })
})
