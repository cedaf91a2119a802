// The server of the backup bench, as a child process: fills its database, makes backups and archives on request, and reports by IPC for
// how long its event loop was held, in time and in CPU time of its main thread.
import { dlopen, ptr } from 'bun:ffi'
import { statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { startFederation } from '../support/latchkey.ts'

const { symbols: libc } = dlopen('libc.so.6', { clock_gettime: { args: ['i32', 'ptr'], returns: 'i32' } })
const time = new BigInt64Array(2)
const threadClock = 3

function threadMilliseconds(): number {
  libc.clock_gettime(threadClock, ptr(time))
  return Number(time[0]) * 1_000 + Number(time[1]) / 1_000_000
}

let holds: { wall: number; cpu: number }[] = []
let last = { wall: performance.now(), cpu: threadMilliseconds() }
function note(): void {
  const now = { wall: performance.now(), cpu: threadMilliseconds() }
  holds.push({ wall: now.wall - last.wall, cpu: now.cpu - last.cpu })
  last = now
}
setInterval(note, 1)

const federation = await startFederation()
const { server, admin, folder, config, policy, mint, stop } = federation
const { client } = server.context.database
const rowBytes = 600
const rowsAtOnce = 50_000
const oldRows = 500_000

/** Fills the audit log until the file has a size. The first rows are old enough to be archived. */
async function fill(bytes: number): Promise<void> {
  for (let rows = 0; rows * rowBytes < bytes; rows += rowsAtOnce)
    await client.execute({
      sql: `insert into exchange_audit (at, request_id, outcome, reason, detail)
      with recursive n(i) as (select 1 union all select i + 1 from n where i < ${rowsAtOnce})
      select ?, hex(randomblob(16)), 'refused', 'policy_unknown', hex(randomblob(260)) from n`,
      args: [rows < oldRows ? 1 : Date.now()],
    })
  await client.execute('pragma wal_checkpoint(truncate)')
}

async function backUp() {
  const to = join(folder, 'bench.backup')
  const { bytes, duration_milliseconds } = await admin<{ bytes: number; duration_milliseconds: number }>(
    'backup.create',
    { to },
  )
  await rm(to)
  return { bytes, milliseconds: duration_milliseconds }
}

async function archive() {
  const to = await mkdtemp(join(folder, 'archives-'))
  const startedAt = performance.now()
  const { data } = await admin<{ data: { rows: number }[] }>('archive.run', { before: '2000-01-01', to })
  return { rows: data.reduce((sum, { rows }) => sum + rows, 0), milliseconds: performance.now() - startedAt }
}

function report() {
  const figures = (which: 'wall' | 'cpu') => {
    const sorted = holds.map((hold) => hold[which]).toSorted((one, other) => one - other)
    return { p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0, longest: sorted.at(-1) ?? 0 }
  }
  const log = statSync(`${config.databasePath}-wal`, { throwIfNoEntry: false })?.size ?? 0
  const reported = { wall: figures('wall'), cpu: figures('cpu'), log }
  holds = []
  return reported
}

type Asked = { fill: number } | { backup: true } | { archive: true } | { report: true } | { stop: true }
process.on('message', async (asked: Asked) => {
  if ('fill' in asked) process.send?.((await fill(asked.fill)) ?? null)
  else if ('backup' in asked) process.send?.(await backUp())
  else if ('archive' in asked) process.send?.(await archive())
  else if ('report' in asked) process.send?.(report())
  else {
    await stop()
    process.exit(0)
  }
})
process.send?.({ baseUrl: server.baseUrl, policyId: policy.id, token: await mint() })
