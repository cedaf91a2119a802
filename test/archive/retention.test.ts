// Retention in a server: what is due by the clock, when a run starts, what operators see of it, and that requests go on meanwhile.
import { afterEach, describe, expect, test } from 'bun:test'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { dueTimes } from '../../src/archive/retention.ts'
import { createRetentionSchedule, type ScheduleContext } from '../../src/archive/schedule.ts'
import { Fault } from '../../src/fault.ts'
import { createRunningWork } from '../../src/scheduling/running-work.ts'
import { readArchives } from '../support/archives.ts'
import { type Federation, startFederation, temporaryFolder } from '../support/latchkey.ts'
import { keepBusy } from '../support/load.ts'
import { auditRow, organizationRows, usageRow } from '../support/rows.ts'

const day = 24 * 60 * 60 * 1_000
const hour = 60 * 60 * 1_000

test('whole days are due, counted back from midnight UTC', () => {
  const now = Date.UTC(2026, 10, 22, 17, 30)
  expect(dueTimes({ days: { exchanges: 30, usage: 365 }, folder: '/a' }, now)).toEqual({
    exchanges: Date.UTC(2026, 9, 23),
    usage: Date.UTC(2025, 10, 22),
  })
  expect(dueTimes({ days: { usage: 1 }, folder: '/a' }, now)).toEqual({ usage: Date.UTC(2026, 10, 21) })
  expect(dueTimes({ days: {}, folder: undefined }, now)).toEqual({})
})

describe('a run', () => {
  function start(more: Partial<ScheduleContext> = {}) {
    const state = { now: 100 * day, quiet: 60_000, runs: 0, fault: undefined as Fault | undefined }
    const schedule = createRetentionSchedule({
      archiving: {
        run: async () => {
          state.runs += 1
          if (state.fault !== undefined) throw state.fault
          return []
        },
        rowsArchived: () => new Map(),
      },
      settings: { days: { usage: 1 }, folder: '/archive' },
      work: createRunningWork(() => state.now),
      now: () => state.now,
      monotonic: () => state.now,
      quietFor: () => state.quiet,
      log: () => {},
      ...more,
    })
    const runsAfter = async (milliseconds: number) => {
      state.now += milliseconds
      await schedule.runWhenDue()
      return state.runs
    }
    return { state, schedule, runsAfter }
  }

  test('starts once a day', async () => {
    const { runsAfter } = start()
    expect(await runsAfter(0)).toBe(1)
    expect(await runsAfter(23 * hour)).toBe(1)
    expect(await runsAfter(hour)).toBe(2)
  })

  test('waits for a quiet moment, but no longer than an hour', async () => {
    const { state, runsAfter } = start()
    state.quiet = 100
    expect(await runsAfter(0)).toBe(0)
    expect(await runsAfter(59 * 60_000)).toBe(0)
    expect(await runsAfter(60_000)).toBe(1)
    expect(await runsAfter(day)).toBe(1)
    state.quiet = 1_000
    expect(await runsAfter(0)).toBe(2)
  })

  test('that failed is repeated after an hour, and degrades the server until it succeeds', async () => {
    const { state, schedule, runsAfter } = start()
    state.fault = new Fault('unavailable', 'The disk is full')
    expect(await runsAfter(0)).toBe(1)
    expect(schedule.isFailing()).toBe(true)
    expect(schedule.lastSuccessAt()).toBeUndefined()
    state.fault = undefined
    expect(await runsAfter(59 * 60_000)).toBe(1)
    expect(await runsAfter(60_000)).toBe(2)
    expect(schedule.isFailing()).toBe(false)
    expect(schedule.lastSuccessAt()).toBe(state.now)
  })

  test('does not start while retention is off', async () => {
    const { runsAfter } = start({ settings: { days: {}, folder: '/archive' } })
    expect(await runsAfter(10 * day)).toBe(0)
  })
})

describe('a server', () => {
  let latchkey: Federation
  const temporary = temporaryFolder()
  const folder = join(temporary.path, 'archive')
  afterEach(async () => {
    await latchkey.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  async function serve(clock: { now: number }) {
    mkdirSync(folder)
    latchkey = await startFederation({
      settings: {
        LATCHKEY_RETAIN_EXCHANGES_DAYS: '30',
        LATCHKEY_RETAIN_USAGE_DAYS: '60',
        LATCHKEY_ARCHIVE_DIR: folder,
      },
      dependencies: { now: () => clock.now },
    })
    const { writer, registry } = latchkey.server.context
    const { organizationId = '', workspaceId = '' } = registry.keys.get(latchkey.key.id) ?? {}
    const named = { organizationId, workspaceId, keyId: latchkey.key.id }
    for (const at of [clock.now, clock.now + 1]) {
      await writer.appendAudit({ ...auditRow(`audit-${at}`), at })
      await writer.appendUsage({ ...usageRow(`usage-${at}`, organizationRows('none')), ...named, at })
    }
  }
  const health = async () => {
    const { server } = latchkey
    // A node whose clock has moved on by days has not looked at a server database for as long.
    await server.context.follow.fresh()
    return (await (await fetch(new URL('/readyz', server.baseUrl))).json()) as object
  }
  const logged = (event: string) =>
    latchkey.logLines.map((line) => JSON.parse(line) as Record<string, unknown>).filter((line) => line.event === event)

  test('archives each kind of row at its age, and logs and counts it', async () => {
    const clock = { now: Date.now() }
    await serve(clock)
    const { retention, writer, metrics: _metrics, ...context } = latchkey.server.context
    await retention.runWhenDue()
    expect(readArchives(folder)).toEqual([])
    clock.now += 32 * day
    await writer.appendAudit({ ...auditRow('newer'), at: clock.now })
    await retention.runWhenDue()
    expect(
      readArchives(folder).map(({ rows }) => rows.map(({ request_id }) => String(request_id).split('-')[0])),
    ).toEqual([['audit', 'audit']])
    clock.now += 32 * day
    await retention.runWhenDue()
    // The newest row of a table stays.
    expect(readArchives(folder).map(({ manifest }) => [manifest?.kind, manifest?.rows])).toEqual([
      ['exchanges', 2],
      ['usage', 1],
    ])
    expect(logged('rows_archived')).toMatchObject([
      { level: 'info', kind: 'exchanges', rows: 2 },
      { level: 'info', kind: 'usage', rows: 1 },
    ])
    const text = await context.reportMetrics()
    expect(text).toContain('latchkey_archived_rows_total{kind="exchanges"} 2\n')
    expect(text).toContain('latchkey_archived_rows_total{kind="usage"} 1\n')
    expect(text).toContain(`latchkey_retention_last_success_timestamp_seconds ${clock.now / 1_000}\n`)
  })

  test('is degraded, not unready, while its archive folder is missing, and loses nothing', async () => {
    const clock = { now: Date.now() }
    await serve(clock)
    const { retention } = latchkey.server.context
    rmSync(folder, { recursive: true })
    clock.now += 90 * day
    await retention.runWhenDue()
    expect(await health()).toMatchObject({ status: 'degraded', failing: [], degraded: ['retention'] })
    expect(logged('archive_failed')).toHaveLength(1)
    expect((await latchkey.admin<{ data: object[] }>('usage.requests')).data).toHaveLength(2)
    mkdirSync(folder)
    clock.now += hour
    await retention.runWhenDue()
    expect(await health()).toMatchObject({ status: 'ready', degraded: [] })
    expect(readArchives(folder)).toHaveLength(2)
  })

  test('keeps answering and reporting while it archives, and every request is in one place', async () => {
    await serve({ now: Date.now() - 400 * day })
    const { context } = latchkey.server
    const headers = { authorization: `Bearer ${latchkey.key.key}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'one two three' }] })
    const answered: string[] = []
    const clients = keepBusy(8, async () => {
      const response = await fetch(`${latchkey.server.baseUrl}/chat/completions`, { method: 'POST', headers, body })
      await response.text()
      expect(response.status).toBe(200)
      answered.push(String(response.headers.get('x-request-id')))
    })
    const request = { before: { usage: context.now() + day }, folder, by: { kind: 'server' } as const }
    const archive = () => context.archiving.run(request, { isAlone: false })
    for (let round = 0; round < 5; round++) {
      const running = archive()
      expect(await latchkey.admin<{ ok: boolean }>('usage.verify')).toMatchObject({ ok: true })
      await latchkey.admin('usage.sum', { by: 'model' })
      await latchkey.admin('audit.list')
      await clients.turn()
      await running
    }
    await clients.stop()
    const { rows } = await context.database.client.execute('select request_id from usage')
    const kept = rows.map(({ request_id }) => String(request_id))
    const archived = readArchives(folder).flatMap((file) => file.rows.map(({ request_id }) => String(request_id)))
    expect(archived.length).toBeGreaterThan(20)
    const everywhere = [...kept, ...archived].filter((id) => !id.startsWith('usage-'))
    expect(everywhere.toSorted()).toEqual(answered.toSorted())
  })
})
