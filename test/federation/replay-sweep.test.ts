// What replay protection remembers when it forgets: a sweep drops expired notes alone, and a full memory refuses rather than forgets.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { setImmediate as giveWay } from 'node:timers/promises'
import { dropSubjectTokens, listUsedSubjectTokens } from '../../db/tables/used-subject-tokens.ts'
import {
  createReplayGuard,
  hashTokenId,
  type ReplayGuard,
  type ReplayGuardOptions,
} from '../../src/federation/replay.ts'
import { usedSubjectTokensMax } from '../../src/limits.ts'
import { auditOf } from '../support/exchange-outcome.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'
import { until } from '../support/until.ts'

let time = 0
const none: ReplayGuardOptions = {
  known: [],
  keep: async () => true,
  drop: async () => {},
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

test('after any number of sweeps a token that has not expired is still refused, to its very expiry', async () => {
  const dropped: string[] = []
  const drop: ReplayGuardOptions['drop'] = async (tokens) =>
    void dropped.push(...tokens.map(({ tokenIdSha256 }) => tokenIdSha256))
  const guard = createReplayGuard({ ...none, drop })
  const long = { issuerId: 'i', id: 'long', expiresAt: 1e9 }
  const swept = { issuerId: 'i', id: 'swept', expiresAt: 60_000 }
  expect([long, swept].map((token) => useAt(guard, token, 0))).toEqual(['taken', 'taken'])
  for (let index = 0; index < 10_000; index++) {
    const now = 10 * index
    expect(useAt(guard, { issuerId: 'i', id: `t${index}`, expiresAt: now + 50 }, now)).toBe('taken')
    expect(now === 59_990 ? useAt(guard, swept, now + 9) : 'replayed').toBe('replayed')
    if (index % 100 === 0) await giveWay()
  }
  expect(dropped.length).toBeGreaterThan(5_000)
  expect(dropped).toContain(hashTokenId('swept') ?? '')
  expect(dropped).not.toContain(hashTokenId('long') ?? '')
  expect(useAt(guard, long, 1e9 - 1)).toBe('replayed')
  // An expired token is refused by its times before it comes here.
  expect(useAt(guard, long, 1e9)).toBe('taken')
  expect(useAt(guard, swept, 1e9)).toBe('taken')
})

test('what was known at the start is refused, whatever is swept meanwhile', async () => {
  const known = { issuerId: 'i', tokenIdSha256: hashTokenId('known') ?? '', expiresAt: 1e9 }
  const guard = createReplayGuard({ ...none, known: [known, ...notes(2_000, 10)] })
  for (let index = 0; index < 10_000; index++) {
    useAt(guard, { issuerId: 'i', id: `t${index}`, expiresAt: index + 20 }, index)
    if (index % 100 === 0) await giveWay()
  }
  expect(useAt(guard, { issuerId: 'i', id: 'known', expiresAt: 1e9 }, 1e9 - 1)).toBe('replayed')
})

test('the last place is given, and then none until a note expires', async () => {
  const guard = createReplayGuard({ ...none, known: notes(usedSubjectTokensMax - 1, 10_000) })
  const use = (id: string, now: number) => useAt(guard, { issuerId: 'i', id, expiresAt: 1e9 }, now)
  expect(use('last', 0)).toBe('taken')
  expect([use('more', 0), use('more', 5_000)]).toEqual(['replay_memory_full', 'replay_memory_full'])
  expect(use('last', 5_000)).toBe('replayed')
  await until('a place', () => use('more', 10_000) === 'taken')
})

/** A guard with so many notes that expire at 10 ms that the next use, seconds later, sweeps them. */
function guardToSweep(drop: ReplayGuardOptions['drop']): ReplayGuard {
  const guard = createReplayGuard({ ...none, drop })
  for (let index = 0; index < 1_000; index++) useAt(guard, { issuerId: 'i', id: `t${index}`, expiresAt: 10 }, 0)
  return guard
}

test('a token that is used again while its expired note is dropped stays noted', async () => {
  const asked = Promise.withResolvers<void>()
  const dropped = Promise.withResolvers<void>()
  const guard = guardToSweep(() => {
    asked.resolve()
    return dropped.promise
  })
  const again = { issuerId: 'i', id: 't0', expiresAt: 1e9 }
  expect(useAt(guard, { issuerId: 'i', id: 'new', expiresAt: 1e9 }, 5_000)).toBe('taken')
  await asked.promise
  expect(useAt(guard, again, 5_000)).toBe('taken')
  dropped.resolve()
  for (let turn = 0; turn < 20; turn++) await giveWay()
  expect(useAt(guard, again, 5_000)).toBe('replayed')
})

test('notes that the database could not drop are kept, and dropped by the next sweep', async () => {
  const asked: string[][] = []
  const guard = guardToSweep(async (tokens) => {
    asked.push(tokens.map(({ tokenIdSha256 }) => tokenIdSha256))
    if (asked.length === 1) throw new Error('disk full')
  })
  useAt(guard, { issuerId: 'i', id: 'new', expiresAt: 1e9 }, 5_000)
  await until('the first sweep', () => asked.length > 0)
  for (let turn = 0; turn < 20; turn++) await giveWay()
  for (let index = 0; index < 1_500; index++) useAt(guard, { issuerId: 'j', id: `u${index}`, expiresAt: 1e9 }, 10_000)
  await until('the second sweep', () => asked.length > 1)
  expect(asked[1]).toEqual(asked[0] ?? [])
})

test('a full memory is not searched at every use', () => {
  const full = createReplayGuard({ ...none, known: notes(usedSubjectTokensMax, 1e9) })
  const use = (guard: ReplayGuard, index: number) => useAt(guard, { issuerId: 'i', id: `t${index}`, expiresAt: 1e9 }, 0)
  const millisecondsOf = (guard: ReplayGuard, uses: number) => {
    const startedAt = performance.now()
    for (let index = 0; index < uses; index++) use(guard, index)
    return performance.now() - startedAt
  }
  // So many that a search at each of them would take a hundred times as long.
  expect(millisecondsOf(full, 50)).toBeLessThan(10 * millisecondsOf(createReplayGuard(none), 5_000))
})

test('what a sweep drops is found by its key in the database, and a token noted meanwhile stays', async () => {
  const { orm, writer } = latchkey.server.context
  const issuerId = latchkey.issuer.id
  const rows = ['a', 'b', 'c'].map((tokenIdSha256) => ({ issuerId, tokenIdSha256, expiresAt: 1e15 }))
  await Promise.all(rows.map((row) => writer.appendUsedToken(row)))
  await writer.write(dropSubjectTokens(rows.slice(0, 2)))
  const left = (await listUsedSubjectTokens(orm, 0)).map(({ tokenIdSha256 }) => tokenIdSha256)
  expect(left).toContain('c')
  expect(left).not.toContain('a')
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
