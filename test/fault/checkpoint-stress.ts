// Whether checkpoints on the second connection lose rows: `bun test/fault/checkpoint-stress.ts FOLDER MINUTES` commits rows as fast as it can
// while checkpoints run one after the other, kills the process again and again, and looks for each acknowledged row. With `planted` as the third
// argument, checkpoints begin although everything is copied and commits go on, and the file is damaged within a minute or two.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from '../../db/file/connection.ts'
import { createReader } from '../../db/file/reader.ts'

const [folder = '', minutes = '1', mode = '', task = ''] = process.argv.slice(2)
const path = join(folder, 'checkpoint-stress.db')
const commitsAtOnce = 50

if (task === 'commit') await commitForEver()
else if (task === 'check') await check()
else await runRounds()

async function commitForEver(): Promise<void> {
  const client = connect(path)
  for (const pragma of ['journal_mode = wal', 'synchronous = off', 'wal_autocheckpoint = 0', 'busy_timeout = 5000'])
    await client.execute(`pragma ${pragma}`)
  await client.execute('create table if not exists rows (id integer primary key, text)')
  await client.execute('create table if not exists sums (id integer primary key, n)')
  const reader = createReader(path, { onStart: async () => {}, onEnded: (reason) => console.error(reason) })
  const copy = async () => {
    for (;;) await reader.checkpoint(mode === 'planted')
  }
  copy().catch((error: Error) => console.error(error.message))
  for (let id = await lastId(client); ; ) {
    for (let index = 0; index < commitsAtOnce; index++) {
      id += 1
      const add = { sql: 'insert into rows values (?, ?)', args: [id, 'x'.repeat(200)] }
      const sum = 'insert into sums values (?, 1) on conflict do update set n = n + 1'
      await client.commit([add, ...(id % 3 === 0 ? [{ sql: sum, args: [id % 97] }] : [])])
    }
    process.stdout.write(`${id}\n`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

async function lastId(client: ReturnType<typeof connect>): Promise<number> {
  return Number((await client.execute('select coalesce(max(id), 0) as last from rows')).rows[0]?.last)
}

async function check(): Promise<void> {
  const client = connect(path)
  const { rows } = await client.execute('pragma integrity_check(1)')
  const counts = (await client.execute('select count(*) as count, coalesce(max(id), 0) as last from rows')).rows[0]
  console.log(JSON.stringify({ integrity: rows[0]?.[0], count: counts?.count, last: counts?.last }))
}

async function runRounds(): Promise<void> {
  const endAt = Date.now() + Number(minutes) * 60_000
  const run = (name: string) =>
    Bun.spawn([process.execPath, import.meta.path, folder, minutes, mode || 'rule', name], { stdout: 'pipe' })
  let [rounds, committed, damaged] = [0, 0, 0]
  remove()
  for (; Date.now() < endAt; rounds++) {
    const child = run('commit')
    const output = new Response(child.stdout).text()
    await Bun.sleep(2_000 + ((rounds * 997) % 4_000))
    child.kill('SIGKILL')
    const acknowledged = Number((await output).trim().split('\n').at(-1))
    const text = await new Response(run('check').stdout).text()
    const { integrity, count, last } = JSON.parse(text || '{}') as Record<string, unknown>
    const isWhole = integrity === 'ok' && count === last && Number(last) >= acknowledged
    if (isWhole) committed = Number(last)
    else {
      damaged += 1
      console.log(
        `round ${rounds}: ${acknowledged} rows acknowledged, found ${text.trim() || 'a file that cannot be read'}`,
      )
      remove()
    }
  }
  remove()
  console.log(`${rounds} rounds, ${committed} rows in the last file, ${damaged} damaged`)
}

function remove(): void {
  for (const end of ['', '-wal']) rmSync(path + end, { force: true })
}
