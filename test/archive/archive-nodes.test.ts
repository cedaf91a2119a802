// Two nodes that archive the same server database, each into its own folder: no row is archived twice or lost, whichever node
// dies or sleeps in between. Nodes are functions here; a killed one never writes again.
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../../db/file/open.ts'
import { openServerDatabase } from '../../db/remote/server-database.ts'
import { listArchives } from '../../db/tables/archives.ts'
import { createWriter, type Writer } from '../../db/write/write.ts'
import { createArchiver } from '../../src/archive/archiving.ts'
import { Fault } from '../../src/fault.ts'
import { addRows, readArchives, readRows } from '../support/archives.ts'
import { type HranaServer, startHranaServer } from '../support/hrana-server.ts'
import { temporaryFolder } from '../support/latchkey.ts'
import { rejectionOf } from '../support/rejection.ts'
import { insertOrganizationRows, organizationRows } from '../support/rows.ts'

const day = 24 * 60 * 60 * 1_000
const now = Date.UTC(2026, 10, 22)
const rowsPerRound = 30
const acme = organizationRows('acme')
const folder = temporaryFolder()
let server: HranaServer
let database: Database
let writer: Writer
/** How many rows were ever added. */
let added = 0
async function addRound(): Promise<void> {
  await addRows(writer, acme, rowsPerRound, now - 10 * day + added * 1_000)
  added += rowsPerRound
}

beforeAll(async () => {
  server = await startHranaServer({ path: join(folder.path, 'server.db') })
  const opened = await openServerDatabase({
    url: server.url,
    token: undefined,
    create: true,
    send: (one) => fetch(one),
  })
  if ('refused' in opened) throw new Error(opened.message)
  database = opened
  writer = createWriter(database, () => {})
  await writer.write(insertOrganizationRows(database, acme))
  for (const name of ['a', 'b', 'shared']) mkdirSync(join(folder.path, name))
})
afterAll(async () => {
  await writer.close()
  await database.close()
  await server.close()
  folder.remove()
})
beforeEach(async () => {
  await addRound()
})

/** A node that does this before each of its commits, the first being number 1. */
function startNode(host: string, before: (commit: number) => Promise<void> = async () => {}, at = host) {
  let commits = 0
  const own: Pick<Writer, 'write'> = {
    write: async (statements) => {
      commits += 1
      await before(commits)
      await writer.write(statements)
    },
  }
  const { orm, reader } = database
  const context = { database, orm, reader, writer: own, now: () => now, log: () => {}, rowsPerFileMax: 20 }
  const archiving = createArchiver(context, { host })
  const request = { before: { usage: now }, folder: join(folder.path, at), by: { kind: 'server' } as const }
  return { run: () => archiving.run(request, { isAlone: true }), commits: () => commits }
}

const killedAt = (last: number) => async (commit: number) => {
  if (commit > last) throw new Error('killed')
}
const execute = (sql: string) => writer.write([{ toSQL: () => ({ sql, params: [] }) }])
const endLease = () => execute('update archive_lease set until = 0')

/** Each row is in the table or in a finished archive whose file is on its node, once. */
async function expectEachRowOnce(): Promise<void> {
  const kept = (await readRows(database, 'usage')).map(({ id }) => Number(id))
  const archives = await listArchives(database.orm, { limit: 999 })
  expect(archives.filter(({ state }) => state !== 'finished')).toEqual([])
  const archived = archives.flatMap(({ node, file }) => {
    const found = readArchives(join(folder.path, node ?? '')).find((each) => each.file === file)
    return found?.rows.map(({ id }) => Number(id)) ?? []
  })
  const all = [...kept, ...archived].toSorted((one, other) => one - other)
  expect(all).toEqual(Array.from({ length: added }, (_, index) => index + 1))
}

test('a run that begins during another one is refused, and the first one finishes', async () => {
  const [leased, refused] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const first = startNode('a', async (commit) => {
    if (commit !== 2) return
    leased.resolve()
    await refused.promise
  }).run()
  await leased.promise
  const second = await rejectionOf(startNode('b').run())
  expect(second).toMatchObject({ code: 'conflict', reason: 'archive_lease_held' })
  refused.resolve()
  expect(new Set((await first).map(({ state }) => state))).toEqual(new Set(['finished']))
  await expectEachRowOnce()
})

test('a node that is killed after any of its commits is continued by the same or the other one', async () => {
  const whole = startNode('a')
  await whole.run()
  for (let last = 0; last < whole.commits(); last += 1) {
    await addRound()
    await startNode('a', killedAt(last))
      .run()
      .catch(() => {})
    await endLease()
    const [unfinished] = (await listArchives(database.orm, { limit: 1 })).filter(({ state }) => state === 'verified')
    // A verified file can be the only place of some rows. The other node reads it only where they share the folder.
    const isShared = last % 2 === 0
    const isElsewhere = unfinished !== undefined && !isShared
    if (isElsewhere) renameSync(join(folder.path, 'a'), join(folder.path, 'away'))
    const outcome = await startNode('b')
      .run()
      .then(() => 'done', String)
    expect(outcome).toContain(isElsewhere ? 'is on the node a' : 'done')
    if (isElsewhere) {
      renameSync(join(folder.path, 'away'), join(folder.path, 'a'))
      await startNode('a').run()
    }
    await expectEachRowOnce()
  }
})

test('a node that sleeps while another takes over changes nothing when it wakes', async () => {
  const whole = startNode('a')
  await whole.run()
  for (let asleep = 2; asleep < whole.commits(); asleep += 2) {
    await addRound()
    let others: Promise<unknown> | undefined
    const sleeper = startNode('a', async (commit) => {
      if (commit !== asleep) return
      await endLease()
      others = startNode('b').run()
      await others.catch(() => {})
    })
    const woken = await sleeper.run().catch((error: unknown) => error)
    const isTakenOver = await others?.then(
      () => true,
      () => false,
    )
    // Where the other one could not go on, nobody has taken the lease for good.
    expect(isTakenOver !== true || woken instanceof Fault).toBe(true)
    await startNode('a').run()
    await expectEachRowOnce()
  }
})

test('a node that takes over in a folder that both share writes another file', async () => {
  // The lease, the archive, and then the commit that it is verified with.
  await startNode('a', killedAt(2), 'shared')
    .run()
    .catch(() => {})
  await endLease()
  const [begun] = await listArchives(database.orm, { limit: 1 })
  expect(begun).toMatchObject({ state: 'writing', node: 'a' })
  const before = readdirSync(join(folder.path, 'shared'))
  const bytes = before.map((name) => readFileSync(join(folder.path, 'shared', name)))
  expect(before).toContain(String(begun?.file))
  await startNode('b', undefined, 'shared').run()
  const taken = (await listArchives(database.orm, { limit: 9 })).find(({ id }) => id === begun?.id)
  expect(taken).toMatchObject({ state: 'finished', node: 'b' })
  expect(taken?.file).not.toBe(String(begun?.file))
  // What the first one may still write.
  expect(before.map((name) => readFileSync(join(folder.path, 'shared', name)))).toEqual(bytes)
})
