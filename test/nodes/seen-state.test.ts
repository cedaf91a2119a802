// A start on a database that has gone back to an older state is refused until an operator accepts it, on each kind of database.
import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { acceptOlder, rejectOlder } from '../../src/nodes/seen-state.ts'
import { startHranaServer } from '../support/hrana-server.ts'
import { postExchange, runCommand, startTestServer, type TestServer, temporaryFolder } from '../support/latchkey.ts'
import { urlOf } from '../support/nodes.ts'
import { rejectionOf } from '../support/rejection.ts'
import { createDatabase } from '../support/rows.ts'
import { testMasterKey } from '../support/server-kind.ts'
import { copyDatabase, isRealServer } from '../support/sqld.ts'

const root = temporaryFolder()
afterAll(() => root.remove())

type Site = {
  settings: Record<string, string>
  /** Puts the state that `keep` kept in place. */
  keep: () => Promise<void>
  goBack: () => Promise<void>
  stop: () => Promise<void>
}

async function onServer(folder: string, protocol: 'hrana' | 'rqlite'): Promise<Site> {
  const [path, kept] = [join(folder, 'server.db'), join(folder, 'kept.db')]
  let server = await startHranaServer({ path, protocol })
  const port = Number(new URL(server.url).port)
  const replaced = async (from: string, to: string) => {
    await server.close()
    for (const end of ['', '-wal', '-shm']) rmSync(to + end, { force: true })
    await copyDatabase(from, to)
    server = await startHranaServer({ path, port, protocol })
  }
  return {
    settings: { LATCHKEY_DATABASE_URL: server.url },
    keep: () => replaced(path, kept),
    goBack: () => replaced(kept, path),
    stop: () => server.close(),
  }
}

for (const [kind, open] of [
  ['a libSQL server', (folder: string) => onServer(folder, 'hrana')],
  ['an rqlite cluster', (folder: string) => onServer(folder, 'rqlite')],
] as const)
  for (const [what, change, message] of [
    [
      'a lower revision',
      (node: TestServer) => node.admin('keys.create', { name: 'later' }),
      /older state: revision \d+ after \d+/,
    ],
    ['fewer exchanges', refuseExchange, /older state: exchange 1 of the audit after 2/],
  ] as const)
    test.skipIf(isRealServer)(`a start on ${kind} with ${what} is refused until it is accepted`, async () => {
      const folder = join(root.path, crypto.randomUUID())
      mkdirSync(folder)
      const masterKey = join(folder, 'master.key')
      writeFileSync(masterKey, testMasterKey, { mode: 0o600 })
      const site = await open(folder)
      const settings = { ...site.settings, LATCHKEY_MASTER_KEY_FILE: masterKey }
      const start = (create = false) =>
        startTestServer({ settings, start: create ? {} : { create, prepare: async () => {} } })
      const first = await start(true)
      await refuseExchange(first)
      await first.stop()
      await site.keep()
      const second = await start()
      await change(second)
      await second.stop()
      await site.goBack()
      const seen = readFileSync(`${masterKey}.seen`, 'utf8')
      for (const attempt of [1, 2]) {
        const { code, message: said } = await rejectionOf(start())
        expect([attempt, code, said]).toEqual([attempt, 'conflict', expect.stringMatching(message)])
        expect(said).toContain('latchkey database accept-older')
      }
      // No start makes the older state the newest.
      expect(readFileSync(`${masterKey}.seen`, 'utf8')).toBe(seen)
      const accepted = await runCommand(['database', 'accept-older', '--json'], { cwd: folder, env: settings })
      expect(accepted).toMatchObject({ code: 0 })
      expect(JSON.parse(accepted.stdout)).toHaveProperty('revision')
      await (await start()).stop()
      await site.stop()
    })

async function refuseExchange(node: TestServer): Promise<void> {
  await postExchange(urlOf(node), { federation_policy_id: crypto.randomUUID(), subject_token: 'no token' })
}

test('a database file is compared with what was seen too, and one of another installation is not', async () => {
  const own = await createDatabase()
  const file = join(root.path, 'file.key.seen')
  const seen = { database: own.database, file }
  await rejectOlder(seen)
  await acceptOlder(seen)
  await rejectOlder(seen)
  const state = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
  const write = (more: object) => writeFileSync(file, JSON.stringify({ ...state, ...more }))
  write({ revision: 7, lineage: 'gone' })
  expect((await rejectionOf(rejectOlder(seen))).message).toContain('revision 0 after 7')
  write({ request: 1 })
  expect((await rejectionOf(rejectOlder(seen))).message).toContain('request 0 of the ledger after 1')
  write({ installation: 'other', revision: 7 })
  await rejectOlder(seen)
  for (const unreadable of ['', '{', '{}', 'null', JSON.stringify({ ...state, revision: 'x' })]) {
    writeFileSync(file, unreadable)
    await rejectOlder(seen)
  }
  await own.close()
})
