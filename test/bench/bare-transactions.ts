// The least that a version of a preset can cost: a row and a change of another, in their own transaction, on a database as Latchkey has it.
// Nobody asks over HTTP, nothing is checked. `bun bare-transactions.ts prepared|client FILE` prints its port; GET /?count=N does N of them.
import { createClient, type InValue } from '@libsql/client'
import Database from 'libsql'
import { migrations } from '../../db/schema/migrate.ts'
import { presetConfig, presetPrompt, presetsPosted } from './preset-body.ts'

const [, , kind, file = ''] = process.argv
const pragmas = ['locking_mode=exclusive', 'journal_mode=wal', 'synchronous=normal', 'foreign_keys=on']
const insert = 'insert into preset_versions values (?,?,?,?,?,?,?)'
const update = 'update presets set designated_version=?, latest_version=?, updated_at=? where id=?'
const presets = Array.from({ length: presetsPosted }, (_, index) => ({
  id: crypto.randomUUID(),
  slug: `p${index}`,
  version: 1,
}))
const schema = [
  ...pragmas.map((pragma) => `pragma ${pragma}`),
  ...migrations.flatMap(({ statements }) => statements),
  "insert into organizations(id,name,plan,created_at,updated_at) values('o','o','free',1,1)",
  "insert into workspaces values('w','o','w',1)",
  "insert into users values('u','o','u',1)",
]
/** In one transaction: each row names another. */
const rows = presets.flatMap(({ id, slug }) => [
  `insert into presets values('${id}','o','w','${slug}','${slug}',null,'active',null,'u',1,1,1,1,null)`,
  `insert into preset_versions values('${crypto.randomUUID()}','${id}',1,'{}',null,'u',1)`,
])

let next = 0
/** The next version of a preset: what is inserted, and what is changed. */
function nextVersion(): [inserted: InValue[], changed: InValue[]] {
  const preset = presets[next++ % presets.length]
  if (preset === undefined) throw new Error('There is no preset')
  const version = ++preset.version
  const now = Date.now()
  return [
    [crypto.randomUUID(), preset.id, version, presetConfig, presetPrompt, 'u', now],
    [version, version, now, preset.id],
  ]
}

async function openPrepared(): Promise<() => void> {
  const database = new Database(file)
  for (const sql of [...schema, 'begin', ...rows, 'commit']) database.exec(sql)
  const [begin, inserting, updating, commit] = ['begin immediate', insert, update, 'commit'].map((sql) =>
    database.prepare(sql),
  )
  return () => {
    const [inserted, changed] = nextVersion()
    begin?.run()
    inserting?.run(...inserted)
    updating?.run(...changed)
    commit?.run()
  }
}

async function openClient(): Promise<() => Promise<unknown>> {
  const client = createClient({ url: `file:${file}`, concurrency: 1 })
  for (const sql of schema) await client.execute(sql)
  await client.batch(rows, 'write')
  return () => {
    const [inserted, changed] = nextVersion()
    return client.batch(
      [
        { sql: insert, args: inserted },
        { sql: update, args: changed },
      ],
      'write',
    )
  }
}

const transact = await (kind === 'client' ? openClient() : openPrepared())
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  idleTimeout: 0,
  fetch: async ({ url }) => {
    const count = Number(new URL(url).searchParams.get('count'))
    for (let done = 0; done < count; done++) await transact()
    return new Response('done')
  },
})
console.log(server.port)
