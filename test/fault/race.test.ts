// Five hundred exchanges race with an admin's change, half of them waiting for their issuer's key set. An exchange that
// reaches minting after the change was acknowledged gets no token if the change forbids it.
import { expect, test } from 'bun:test'
import { createTestIssuer } from '../../scripts/dev/test-issuer.ts'
import type { OperationName } from '../../src/admin/operations.ts'
import { takeKeyPair } from '../support/key-pairs.ts'
import {
  audience,
  exchangeFields,
  listenLocally,
  mintAt,
  type Row,
  startFederation,
  subject,
} from '../support/latchkey.ts'
import { openRawRequest } from '../support/raw-request.ts'

const changes: [name: string, operation: OperationName, input: Record<string, unknown>, reason: RegExp][] = [
  ['a pause', 'policies.pause', { policy: 'slow' }, /^policy_paused$/],
  ['a deletion', 'policies.delete', { policy: 'slow' }, /^policy_deleted$/],
  ['another subject', 'policies.update', { policy: 'slow', subject: 'other' }, /^subject_mismatch$/],
  ['a condition', 'policies.update', { policy: 'slow', condition: 'claims.no == 1' }, /^condition_error$/],
  ['a disabled key', 'keys.disable', { key: 'target' }, /^key_disabled$/],
  ['a deleted key', 'keys.delete', { key: 'target' }, /^key_deleted$/],
  [
    'a lost entitlement',
    'organizations.plan',
    { organization: 'default', plan: 'free' },
    /^organization_not_entitled$/,
  ],
  ['a deleted issuer', 'issuers.delete', { issuer: 'slow' }, /^issuer_deleted$/],
  [
    'an issuer of another URL',
    'issuers.update',
    { issuer: 'slow', issuer_url: 'https://moved.example' },
    /^issuer_mismatch$/,
  ],
]

/**
 * Returns the status of an exchange on its own connection: fetch in this process sends at most 256 requests at once.
 */
async function exchangeOverSocket(baseUrl: string, fields: Record<string, string>): Promise<number> {
  const body = String(exchangeFields(fields))
  const headers = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': String(body.length) }
  const { socket, answer } = openRawRequest(`${baseUrl}/oauth/token`, 'POST', headers)
  socket.write(body)
  const { status } = await answer
  socket.destroy()
  return status
}

for (const [name, operation, input, reason] of changes) {
  test(`${name} that is acknowledged stops every exchange that has not been minted`, async () => {
    const federation = await startFederation()
    const gate = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    let slowUrl = ''
    const issuer = await createTestIssuer(() => slowUrl, takeKeyPair)
    const { url, listener } = await listenLocally(async (request, peer) => {
      if (new URL(request.url).pathname === '/jwks') {
        reached.resolve()
        await gate.promise
      }
      return issuer(request, peer)
    })
    slowUrl = url
    await federation.admin('issuers.add', { name: 'slow', issuer_url: slowUrl })
    const rules = { issuer: 'slow', key: 'target', audience, subject }
    const { id } = await federation.admin<Row>('policies.create', { name: 'slow', ...rules })
    const [held, quick] = await Promise.all([mintAt(slowUrl), federation.mint()])
    const { baseUrl } = federation.server
    const exchangeHeld = () => exchangeOverSocket(baseUrl, { federation_policy_id: id, subject_token: held })
    const exchangeQuick = () =>
      exchangeOverSocket(baseUrl, { federation_policy_id: federation.policy.id, subject_token: quick })
    const many = (exchange: () => Promise<number>) => Promise.all(Array.from({ length: 250 }, exchange))

    const waiting = many(exchangeHeld)
    const running = many(exchangeQuick)
    await reached.promise
    await federation.admin(operation, input)
    gate.resolve()
    const statuses = [...(await waiting), ...(await many(exchangeHeld))]
    expect(new Set(statuses)).toEqual(new Set([400]))
    for (const status of await running) expect([200, 400]).toContain(status)

    const { data } = await federation.admin<{ data: Row[] }>('audit.list', { limit: 10_000 })
    expect(data).toHaveLength(750)
    const ofHeld = data.filter((row) => row.policy_id === id)
    expect(ofHeld).toHaveLength(500)
    for (const row of ofHeld) expect(String(row.reason)).toMatch(reason)
    await federation.stop()
    await listener.drain()
  })
}
