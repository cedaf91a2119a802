// When a server is ready, degraded or not ready, and how it knows whether the database takes commits.
import { describe, expect, test } from 'bun:test'
import { writeCheckMilliseconds } from '../../src/limits.ts'
import { type HealthFacts, judgeHealth } from '../../src/observe/health.ts'
import { createWriteCheck } from '../../src/observe/write-check.ts'

const good: HealthFacts = {
  isStopping: false,
  isDatabaseReached: true,
  isWritable: true,
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

  test('keeps a failed probe for five seconds, unless a commit succeeds', async () => {
    const { clock, disk, check, ask } = start()
    disk.isFull = true
    expect(await ask()).toBe(false)
    disk.isFull = false
    expect(await ask()).toBe(false)
    check.note(true)
    expect(await ask()).toBe(true)
    disk.isFull = true
    clock.now += writeCheckMilliseconds
    expect(await ask()).toBe(false)
    disk.isFull = false
    clock.now += writeCheckMilliseconds
    expect(await ask()).toBe(true)
  })
})
