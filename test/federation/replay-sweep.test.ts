// What replay protection remembers when it forgets: a sweep drops expired notes alone, and a full memory refuses rather than forgets.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import {
  createReplayGuard,
  hashTokenId,
  type ReplayGuard,
  type ReplayGuardOptions,
} from '../../src/federation/replay.ts'
import { usedSubjectTokensMax } from '../../src/limits.ts'
import { auditOf } from '../support/exchange-outcome.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'

let time = 0
const none: ReplayGuardOptions = {
  known: [],
  keep: async () => {},
  dropExpired: async () => {},
  now: 0,
  monotonic: () => time,
}
/** The outcome of a use at a time, on both clocks. */
function useAt(guard: ReplayGuard, token: Parameters<ReplayGuard['use']>[0], now: number): string {
  time = now
  const outcome = guard.use(token, now)
  return 'refused' in outcome ? outcome.refused : 'taken'
}
beforeEach(() => {
  time = 0
})
/** Notes of that many tokens, which expire at a time. */
const notes = (count: number, expiresAt: number) =>
  Array.from({ length: count }, (_, index) => ({ issuerId: 'other', tokenIdSha256: String(index), expiresAt }))

test('after any number of sweeps a token that has not expired is still refused, to its very expiry', () => {
  let sweeps = 0
  const guard = createReplayGuard({
    ...none,
    dropExpired: async () => {
      sweeps += 1
    },
  })
  const long = { issuerId: 'i', id: 'long', expiresAt: 1e9 }
  const swept = { issuerId: 'i', id: 'swept', expiresAt: 60_000 }
  expect([long, swept].map((token) => useAt(guard, token, 0))).toEqual(['taken', 'taken'])
  for (let index = 0; index < 10_000; index++) {
    const now = 10 * index
    expect(useAt(guard, { issuerId: 'i', id: `t${index}`, expiresAt: now + 50 }, now)).toBe('taken')
    if (now === 59_990) expect(useAt(guard, swept, now + 9)).toBe('replayed')
  }
  expect(sweeps).toBeGreaterThan(2)
  expect(useAt(guard, long, 1e9 - 1)).toBe('replayed')
  // An expired token is refused by its times before it comes here.
  expect(useAt(guard, long, 1e9)).toBe('taken')
  expect(useAt(guard, swept, 1e9)).toBe('taken')
})

test('what was known at the start is refused, whatever is swept meanwhile', () => {
  const known = { issuerId: 'i', tokenIdSha256: hashTokenId('known') ?? '', expiresAt: 1e9 }
  const guard = createReplayGuard({ ...none, known: [known, ...notes(2_000, 10)] })
  for (let index = 0; index < 10_000; index++)
    useAt(guard, { issuerId: 'i', id: `t${index}`, expiresAt: index + 20 }, index)
  expect(useAt(guard, { issuerId: 'i', id: 'known', expiresAt: 1e9 }, 1e9 - 1)).toBe('replayed')
})

test('the last place is given, and then none until a note expires', () => {
  const guard = createReplayGuard({ ...none, known: notes(usedSubjectTokensMax - 1, 10_000) })
  const use = (id: string, now: number) => useAt(guard, { issuerId: 'i', id, expiresAt: 1e9 }, now)
  expect(use('last', 0)).toBe('taken')
  expect([use('more', 0), use('more', 5_000)]).toEqual(['replay_memory_full', 'replay_memory_full'])
  expect(use('last', 5_000)).toBe('replayed')
  expect(use('more', 10_000)).toBe('taken')
})

let latchkey: PastedIssuer
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
  await latchkey.admin('policies.update', { policy: 'policy', replay_protection: true })
})
afterAll(() => latchkey.stop())

test('a full memory answers 503 with a time to come again, and the audit says why', async () => {
  const { context } = latchkey.server
  const { replayGuard } = context
  context.replayGuard = createReplayGuard({ ...none, known: notes(usedSubjectTokensMax, Number.POSITIVE_INFINITY) })
  const token = await latchkey.sign()
  const full = await latchkey.exchange(token)
  context.replayGuard = replayGuard
  expect(full.status).toBe(503)
  expect(Number(full.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(await full.json()).toMatchObject({ error: 'temporarily_unavailable' })
  expect(await auditOf(latchkey, full)).toMatchObject([{ reason: 'replay_memory_full', access_token_id: null }])
  expect((await latchkey.exchange(token)).status).toBe(200)
})
