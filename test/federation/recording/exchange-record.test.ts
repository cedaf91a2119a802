// What an exchange has written before it answers, and what of a token it never writes.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { auditOf } from '../../support/exchange-outcome.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'

let latchkey: PastedIssuer
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
})
afterAll(() => latchkey.stop())

test('an exchange under replay protection is answered once its note is kept, and not before', async () => {
  const { context } = latchkey.server
  const { replayGuard } = context
  await latchkey.admin('policies.update', { policy: 'policy', replay_protection: true })
  const asked = Promise.withResolvers<void>()
  const kept = Promise.withResolvers<void>()
  context.replayGuard = {
    use: (...use) => {
      const outcome = replayGuard.use(...use)
      asked.resolve()
      return 'refused' in outcome
        ? outcome
        : { kept: Promise.all([outcome.kept, kept.promise]).then(([found]) => found) }
    },
  }
  let isAnswered = false
  const answer = latchkey.exchange(await latchkey.sign({ jti: 'held' })).then((response) => {
    isAnswered = true
    return response
  })
  await asked.promise
  // Ten whole exchanges under another policy: time enough for an answer that does not wait.
  const open = await latchkey.admin('policies.create', {
    name: 'open',
    issuer: 'idp',
    key: 'target',
    audience: 'latchkey-tests',
    subject: 'workload-1',
  })
  const token = await latchkey.sign()
  for (let index = 0; index < 10; index++)
    expect((await latchkey.exchange(token, { federation_policy_id: open.id })).status).toBe(200)
  expect(isAnswered).toBe(false)
  kept.resolve()
  expect((await answer).status).toBe(200)
  context.replayGuard = replayGuard
  await latchkey.admin('policies.update', { policy: 'policy', replay_protection: false })
})

test.each([
  ['issued', {}, 200],
  ['refused', { sub: 'stranger' }, 400],
])(
  'an exchange that is %s is answered once its audit row is committed, and not before',
  async (outcome, claims, status) => {
    const { context } = latchkey.server
    const { writer } = context
    const written = Promise.withResolvers<string>()
    const committed = Promise.withResolvers<void>()
    context.writer = {
      ...writer,
      appendAudit: async (row) => {
        written.resolve(row.outcome)
        await committed.promise
        await writer.appendAudit(row)
      },
    }
    let isAnswered = false
    const answer = latchkey.exchange(await latchkey.sign(claims)).then((response) => {
      isAnswered = true
      return response
    })
    expect(await written.promise).toBe(outcome)
    context.writer = writer
    // Ten whole exchanges: time enough for an answer that does not wait.
    const token = await latchkey.sign()
    for (let index = 0; index < 10; index++) expect((await latchkey.exchange(token)).status).toBe(200)
    expect(isAnswered).toBe(false)
    committed.resolve()
    const response = await answer
    expect(response.status).toBe(status)
    expect(await auditOf(latchkey, response)).toMatchObject([{ outcome }])
  },
)

test('an exchange whose note cannot be kept gives no token', async () => {
  const { context } = latchkey.server
  const { replayGuard } = context
  await latchkey.admin('policies.update', { policy: 'policy', replay_protection: true })
  context.replayGuard = { use: () => ({ kept: Promise.reject(new Error('disk full')) }) }
  const response = await latchkey.exchange(await latchkey.sign({ jti: 'lost' }))
  context.replayGuard = replayGuard
  await latchkey.admin('policies.update', { policy: 'policy', replay_protection: false })
  expect({ status: response.status, body: await response.json() }).toMatchObject({
    status: 500,
    body: { error: 'server_error' },
  })
})

describe('the audit keeps of a token', () => {
  const jwt = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl'
  const key = `sk-lk-v1-${'0123456789abcdef'.repeat(4)}`
  const recordOf = async (claims: Record<string, unknown>) => {
    const response = await latchkey.exchange(await latchkey.sign(claims))
    expect(response.status).toBe(400)
    const [record] = await auditOf(latchkey, response)
    return record
  }

  for (const [name, secret] of [
    ['a token', jwt],
    ['a key', key],
  ] as const)
    test(`no ${name} that slipped into sub or jti`, async () => {
      const record = await recordOf({ sub: `x ${secret}`, jti: `y ${secret}` })
      expect(record?.subject).toStartWith('x ')
      expect(record?.subject_token_id).toStartWith('y ')
      expect(JSON.stringify(record)).not.toContain(secret.slice(12))
      expect(latchkey.logLines.join('')).not.toContain(secret.slice(12))
    })

  test('a sub and a jti of at most 512 characters, cut where they are longer', async () => {
    for (const character of ['s', '🔑']) {
      const record = await recordOf({ sub: character.repeat(2_000), jti: character.repeat(513) })
      expect(record).toMatchObject({
        subject: `${character.repeat(512)}…`,
        subject_token_id: `${character.repeat(512)}…`,
      })
      const whole = await recordOf({ sub: character.repeat(512), jti: character.repeat(512) })
      expect(whole).toMatchObject({ subject: character.repeat(512), subject_token_id: character.repeat(512) })
    }
  })
})
