// When a server is ready, degraded or not ready, and how it knows whether the database takes commits.
import { describe, expect, test } from 'bun:test'
import { writeCheckMilliseconds } from '../../src/limits.ts'
import { type HealthFacts, judgeHealth } from '../../src/monitoring/health.ts'
import { createWriteCheck, requireWritable, writeRetryMilliseconds } from '../../src/observe/write-check.ts'
import { rejectionOf } from '../support/rejection.ts'

const good: HealthFacts = {
  isStopping: false,
  isDatabaseReached: true,
  isWritable: true,
  isInGrace: false,
  isUsageWaiting: false,
  hasSigningKey: true,
  isRegistryLoaded: true,
  unreachableUpstreams: 0,
  failingIssuers: 0,
  isBackupFailing: false,
  isRetentionFailing: false,
}

describe('a server is', () => {
  const rows: [facts: Partial<HealthFacts>, expected: ReturnType<typeof judgeHealth>][] = [
    [{}, { status: 'ready', failing: [], degraded: [] }],
    [{ isStopping: true }, { status: 'not_ready', failing: ['stopping'], degraded: [] }],
    [{ isDatabaseReached: false }, { status: 'not_ready', failing: ['database'], degraded: [] }],
    [{ isWritable: false }, { status: 'not_ready', failing: ['writer'], degraded: [] }],
    [
      { isDatabaseReached: false, isInGrace: true },
      { status: 'degraded', failing: [], degraded: ['database'] },
    ],
    [
      { isWritable: false, isInGrace: true },
      { status: 'degraded', failing: [], degraded: ['writer'] },
    ],
    [{ isUsageWaiting: true }, { status: 'degraded', failing: [], degraded: ['usage'] }],
    [
      { isDatabaseReached: false, isUsageWaiting: true },
      { status: 'not_ready', failing: ['database'], degraded: ['usage'] },
    ],
    [{ hasSigningKey: false }, { status: 'not_ready', failing: ['signing_key'], degraded: [] }],
    [{ isRegistryLoaded: false }, { status: 'not_ready', failing: ['registry'], degraded: [] }],
    [{ unreachableUpstreams: 1 }, { status: 'degraded', failing: [], degraded: ['upstreams'] }],
    [{ failingIssuers: 2 }, { status: 'degraded', failing: [], degraded: ['issuers'] }],
    [{ isBackupFailing: true }, { status: 'degraded', failing: [], degraded: ['backup'] }],
    [
      { isWritable: false, isStopping: true, failingIssuers: 1 },
      { status: 'not_ready', failing: ['stopping', 'writer'], degraded: ['issuers'] },
    ],
  ]
  for (const [facts, expected] of rows)
    test(`${expected.status} with ${JSON.stringify(facts)}`, () => {
      expect(judgeHealth({ ...good, ...facts })).toEqual(expected)
    })
})

describe('the write check', () => {
  function start() {
    const clock = { now: 1_000_000 }
    const disk = { isFull: false, commits: 0 }
    const check = createWriteCheck(() => clock.now)
    const probe = async () => {
      disk.commits += 1
      check.note(!disk.isFull)
      if (disk.isFull) throw new Error('full')
    }
    return { clock, disk, check, ask: () => check.isWritable(probe) }
  }

  test('commits once in five seconds, however often it is asked', async () => {
    const { clock, disk, ask } = start()
    expect(await Promise.all([ask(), ask(), ask()])).toEqual([true, true, true])
    clock.now += writeCheckMilliseconds - 1
    expect(await ask()).toBe(true)
    expect(disk.commits).toBe(1)
    clock.now += 1
    expect(await ask()).toBe(true)
    expect(disk.commits).toBe(2)
  })

  test('commits nothing while other commits succeed', async () => {
    const { clock, disk, check, ask } = start()
    for (let times = 0; times < 10; times++) {
      clock.now += writeCheckMilliseconds - 1
      check.note(true)
      expect(await ask()).toBe(true)
    }
    expect(disk.commits).toBe(0)
  })

  test('probes at once after a commit that failed', async () => {
    const { disk, check, ask } = start()
    check.note(true)
    check.note(false)
    expect(await ask()).toBe(true)
    expect(disk.commits).toBe(1)
    disk.isFull = true
    check.note(false)
    expect(await ask()).toBe(false)
  })

  test('repeats a failed probe once a second, and only a probe ends it: a smaller commit says nothing', async () => {
    const { clock, disk, check, ask } = start()
    disk.isFull = true
    expect(await ask()).toBe(false)
    expect(check.isFailing()).toBe(true)
    check.note(true)
    clock.now += writeRetryMilliseconds - 1
    expect([await ask(), check.isFailing()]).toEqual([false, true])
    expect(disk.commits).toBe(1)
    clock.now += 1
    expect(await ask()).toBe(false)
    expect(disk.commits).toBe(2)
    disk.isFull = false
    clock.now += writeRetryMilliseconds
    expect(await Promise.all([ask(), ask()])).toEqual([true, true])
    expect([disk.commits, check.isFailing()]).toEqual([3, false])
  })

  test('does not probe more often because more commits fail', async () => {
    const { disk, check, ask } = start()
    disk.isFull = true
    for (let times = 0; times < 10; times++) {
      check.note(false)
      expect(await ask()).toBe(false)
    }
    expect(disk.commits).toBe(1)
  })

  test('after a failure, quiet counts as endless until a commit succeeds', () => {
    const { clock, check } = start()
    check.note(true)
    clock.now += 5
    expect(check.quietFor()).toBe(5)
    check.note(false)
    expect(check.quietFor()).toBe(Number.POSITIVE_INFINITY)
  })
})

describe('what must be recorded', () => {
  const write = (isFailing: boolean, isWritable: boolean) => ({
    isWriteFailing: () => isFailing,
    isWritable: async () => isWritable,
  })

  test('waits for nothing while commits succeed', () => {
    expect(requireWritable(write(false, false))).toBeUndefined()
  })

  test('waits for the probe after a failure, and goes on if it succeeds', async () => {
    expect(await requireWritable(write(true, true))).toBeUndefined()
  })

  test('is refused while it fails, and the caller learns when to come back', async () => {
    const fault = await rejectionOf(requireWritable(write(true, false)) as Promise<void>)
    expect(fault).toMatchObject({ code: 'unavailable', headers: { 'retry-after': '5' } })
    expect((fault as Error).message).not.toMatch(/disk|database/)
  })
})
