// Back-tests read much, so those of one organization run one after the other, few wait, and nobody's end.
import { afterAll, beforeAll, beforeEach, expect, spyOn, test } from 'bun:test'
import type { Row } from '../../support/latchkey.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'
import { letNotice } from '../../support/raw-request.ts'
import { auditRow } from '../../support/rows.ts'
import { until } from '../../support/until.ts'

let latchkey: PastedIssuer
let key: string
/** Slices read of the audit log. A slice waits for `gate`. */
let slices: number
let gate: PromiseWithResolvers<void>
/** Slices of a back-test that runs to its end. */
let whole: number
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  await createPolicy('default')
  key = String((await latchkey.admin('keys.create', { name: 'boss', kind: 'management' })).key)
  const iss = 'https://default.example.com'
  const { id } = await latchkey.admin('policies.show', { policy: 'ci' })
  const token = await latchkey.sign({ iss, sub: 'me', aud: 'llm' })
  await (await latchkey.exchange(token, { federation_policy_id: id })).text()
  const { reader, writer, now } = latchkey.server.context
  // A slice has at most 1,000 rows.
  const rows = Array.from({ length: 1_200 }, () => ({ ...auditRow(crypto.randomUUID()), at: now() }))
  await Promise.all(rows.map(writer.appendAudit))
  const all = reader.all.bind(reader)
  gate = Promise.withResolvers()
  spyOn(reader, 'all').mockImplementation((async (...query: Parameters<typeof all>) => {
    slices += 1
    await gate.promise
    return all(...query)
  }) as unknown as typeof reader.all)
})
beforeEach(async () => {
  slices = 0
  gate.resolve()
  expect(await backtest()).toMatchObject({ exchanges: 1, accepted_before: 1 })
  whole = slices
  expect(whole).toBeGreaterThan(1)
  slices = 0
  gate = Promise.withResolvers()
})
afterAll(() => latchkey.stop())

async function createPolicy(organization: string): Promise<void> {
  const iss = `https://${organization}.example.com`
  const jwks = { keys: [latchkey.pairs.es.publicJwk] }
  await latchkey.admin('issuers.add', { organization, name: 'past', issuer_url: iss, jwks, shared: false })
  const target = organization === 'default' ? 'target' : 'theirs'
  const rules = { key: target, audience: 'llm', subject: 'me' }
  await latchkey.admin('policies.create', { organization, name: 'ci', issuer: 'past', ...rules })
}

const backtest = (organization = 'default') => latchkey.admin<Row>('policies.backtest', { organization, policy: 'ci' })
const post = (signal?: AbortSignal) =>
  fetch(`${latchkey.server.baseUrl}/workload-identity/policies/ci/backtest`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: '{}',
    ...(signal && { signal }),
  })
const running = () => latchkey.server.context.work.list().filter(({ name }) => name === 'policies.backtest').length

test('the second of an organization waits for the first, the sixth is refused, and another organization does not wait', async () => {
  const first = Array.from({ length: 5 }, () => post())
  await until('all of them', () => running() === 5)
  const refused = await post()
  expect([refused.status, await refused.text()]).toEqual([
    409,
    expect.stringContaining('try again when they have ended'),
  ])
  await until('the first slice', () => slices > 0)
  await letNotice(latchkey.server.baseUrl)
  expect(slices).toBe(1)
  await latchkey.admin('organizations.create', { name: 'other' })
  await latchkey.admin('keys.create', { organization: 'other', name: 'theirs', owner: 'somebody' })
  await createPolicy('other')
  const theirs = backtest('other')
  await until('their slice', () => slices === 2)
  gate.resolve()
  expect(await theirs).toMatchObject({ exchanges: 0 })
  expect((await Promise.all(first)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  expect((await post()).status).toBe(200)
})

test('one whose client leaves ends at its next slice, and one that waited does not begin', async () => {
  const leaving = new AbortController()
  const left = Promise.allSettled([post(leaving.signal), post(leaving.signal)])
  await until('both', () => running() === 2 && slices === 1)
  const last = post()
  await until('the third', () => running() === 3)
  leaving.abort()
  expect((await left).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  await letNotice(latchkey.server.baseUrl)
  gate.resolve()
  expect((await last).status).toBe(200)
  expect(slices).toBe(1 + whole)
})
