// A database on an rqlite cluster: each way in which it fails, and what must hold after it.
import { afterAll, expect, test } from 'bun:test'
import type { Database } from '../../../../db/file/open.ts'
import type { SendRequest } from '../../../../db/remote/server-client.ts'
import { openServerDatabase } from '../../../../db/remote/server-database.ts'
import { isUnknownOutcome, isUnreachable } from '../../../../db/remote/server-errors.ts'
import { watchDatabaseServers } from '../../../../src/nodes/database-servers.ts'
import { rowsInFile } from '../../../support/database-file.ts'
import { freePort } from '../../../support/free-port.ts'
import {
  type Election,
  type HranaOptions,
  type HranaServer,
  startHranaServer,
  statusOf,
} from '../../../support/hrana-server.ts'
import { temporaryFolder } from '../../../support/latchkey.ts'
import { rejectionOf } from '../../../support/rejection.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())
let files = 0

type Used = { server: HranaServer; database: Database; sent: { url: string; body: string }[] }
type Opening = Partial<HranaOptions> & {
  urlOf?: (server: HranaServer) => string
  around?: (send: SendRequest) => SendRequest
}

async function onCluster(
  { urlOf = ({ url }) => url, around = (send) => send, ...options }: Opening,
  use: (used: Used) => Promise<unknown>,
): Promise<void> {
  files += 1
  const server = await startHranaServer({ path: `${folder.path}/${files}.db`, protocol: 'rqlite', ...options })
  const sent: Used['sent'] = []
  const send = around(async (request, signal) => {
    sent.push({ url: request.url, body: await request.clone().text() })
    return fetch(request, { signal })
  })
  const database = await openServerDatabase({ url: urlOf(server), token: options.token, create: true, send })
  if ('refused' in database) throw new Error(database.message)
  await database.client.batch(['create table notes (text text unique)'], 'write')
  await use({ server, database, sent })
  await database.close()
  await server.close()
}

const addressOf = (url: string) => url.replace('rqlite://', '')
const withOthers =
  (...others: HranaServer[]) =>
  ({ url }: HranaServer) =>
    [url, ...others.map((other) => addressOf(other.url))].join(',')

/** A further node, of which only the status matters. */
function startOther(status: object): Promise<HranaServer> {
  files += 1
  return startHranaServer({ path: `${folder.path}/${files}.db`, protocol: 'rqlite', status })
}

const note = (text: string) => ({ sql: 'insert into notes values (?)', args: [text] })
const notesOf = ({ file }: HranaServer) => rowsInFile(file, 'select text from notes').map(({ text }) => text)

for (const election of ['no leader', 'lost before', 'lost after'] as const satisfies Election[])
  test(`a commit during an election (${election}) is made once`, () =>
    onCluster({}, async ({ server, database }) => {
      server.trouble.elections = [election, election]
      await database.commit([note('a')])
      expect(notesOf(server)).toEqual(['a'])
      expect(server.trouble.elections).toEqual([])
    }))

for (const cut of ['before', 'after'] as const)
  test(`a commit whose connection is cut ${cut} the work is made once`, () =>
    onCluster({}, async ({ server, database }) => {
      server.trouble.commitCuts = [cut, cut]
      await database.commit([note('a')])
      expect(notesOf(server)).toEqual(['a'])
    }))

test('a commit of which a statement is refused leaves nothing, and its outcome is known', () =>
  onCluster({}, async ({ server, database }) => {
    await database.commit([note('a')])
    const failure = await rejectionOf(() => database.commit([note('b'), note('a')]))
    expect(failure.message).toContain('UNIQUE constraint failed: notes.text')
    expect([isUnreachable(failure), isUnknownOutcome(failure)]).toEqual([false, false])
    expect(notesOf(server)).toEqual(['a'])
  }))

test('a commit that the cluster makes in part, since it does not understand a statement, is reported and not repeated', () =>
  onCluster({}, async ({ server, database, sent }) => {
    sent.length = 0
    const failure = await rejectionOf(() =>
      database.commit([{ sql: 'insert into absent values (1)', args: [] }, note('a')]),
    )
    expect([isUnknownOutcome(failure), failure.message]).toEqual([true, expect.stringContaining('only a part')])
    expect(sent).toHaveLength(1)
    expect(notesOf(server)).toEqual(['a'])
  }))

test('a full disk of one replica leaves the outcome open, and the commit is repeated', async () => {
  const full = JSON.stringify({ results: [{}, { error: 'database or disk is full' }] })
  let isFull = false
  const around =
    (send: SendRequest): SendRequest =>
    async (request, signal) => {
      const response = await send(request, signal)
      if (!isFull || !request.url.includes('/db/request')) return response
      isFull = false
      return new Response(full)
    }
  await onCluster({ around }, async ({ server, database }) => {
    isFull = true
    await database.commit([note('a')])
    expect(notesOf(server)).toEqual(['a'])
  })
})

test('an address that refuses connections is left for the next, by reads and commits', async () => {
  const closed = await freePort()
  const urlOf = ({ url }: HranaServer) => url.replace('://', `://127.0.0.1:${closed},`)
  await onCluster({ urlOf }, async ({ server, database, sent }) => {
    await database.commit([note('a')])
    expect((await database.client.execute('select text from notes')).rows.map((row) => row.text)).toEqual(['a'])
    expect(notesOf(server)).toEqual(['a'])
    sent.length = 0
    await database.commit([note('b')])
    expect(sent.map(({ url }) => new URL(url).port)).not.toContain(String(closed))
  })
})

test('an address that stops responding is left for the next, and a commit there is made once', async () => {
  let isStopped = false
  const around =
    (send: SendRequest): SendRequest =>
    async (request, signal) => {
      if (!isStopped || !request.url.includes('localhost')) return send(request, signal)
      if (request.url.includes('/db/request')) await send(request, signal)
      throw new DOMException('The operation timed out', 'TimeoutError')
    }
  const urlOf = ({ url }: HranaServer) => `${url.replace('127.0.0.1', 'localhost')},127.0.0.1:${new URL(url).port}`
  await onCluster({ urlOf, around }, async ({ server, database, sent }) => {
    isStopped = true
    await database.commit([note('a')])
    expect(notesOf(server)).toEqual(['a'])
    sent.length = 0
    await database.client.execute('select 1')
    expect(sent.map(({ url }) => new URL(url).hostname)).toEqual(['127.0.0.1'])
  })
})

test('reads are linearizable, and commits one transaction', () =>
  onCluster({}, async ({ database, sent }) => {
    sent.length = 0
    await database.client.execute({ sql: 'select ? as n', args: [1] })
    await database.commit([note('a')])
    const [read, commit] = sent.map(({ url }) => new URL(url))
    expect([read?.pathname, read?.searchParams.get('level')]).toEqual(['/db/query', 'linearizable'])
    expect([commit?.pathname, commit?.searchParams.has('transaction')]).toEqual(['/db/request', true])
    // The server changes no statement: its parser does not know all of them, and its time is that of a time zone.
    for (const url of [read, commit]) expect(url?.searchParams.has('noparse')).toBe(true)
  }))

test('user and password are sent, and wrong ones are refused', async () => {
  await onCluster({ token: 'latchkey:secret' }, async ({ server, database }) => {
    await database.commit([note('a')])
    const send: SendRequest = (request, signal) => fetch(request, { signal })
    const refused = await openServerDatabase({ url: server.url, token: 'latchkey:other', create: false, send })
    const { message } = refused as { message: string }
    expect(message).toContain('rejects the token (status 401)')
    expect(message).not.toContain('other')
  })
})

const objections: [what: string, options: Partial<HranaOptions>, message: string][] = [
  ['does not enforce foreign keys', { hasForeignKeys: false }, 'start rqlited with -fk on all nodes'],
  ['is too old', { version: 'v9.4.5' }, 'is rqlite 9: use rqlite 10 or newer'],
  ['does not say its version', { version: 'unknown' }, 'does not say its version: use rqlite 10 or newer'],
]
for (const [what, options, expected] of objections)
  test(`a cluster of which a node ${what} is refused`, async () => {
    files += 1
    const path = `${folder.path}/${files}.db`
    const server = await startHranaServer({ path, protocol: 'rqlite', ...options })
    const send: SendRequest = (request, signal) => fetch(request, { signal })
    const opened = await openServerDatabase({ url: server.url, token: undefined, create: true, send })
    expect(opened).toMatchObject({ refused: 'unreadable', message: expect.stringContaining(expected) })
    await server.close()
  })

test('a read after a change of the members, which waits for the next commit, passes through the log', () =>
  onCluster({}, async ({ server, database, sent }) => {
    server.trouble.hasNewMember = true
    expect((await database.client.execute('select 7 as seven')).rows[0]?.seven).toBe(7)
    const levels = sent.slice(-3).map(({ url }) => new URL(url).searchParams.get('level'))
    expect(levels).toEqual(['linearizable', 'linearizable', 'strong'])
  }))

test('a node of the cluster that is down is a weakness while the others serve', async () => {
  const closed = await freePort()
  const urlOf = ({ url }: HranaServer) => `${url},127.0.0.1:${closed}`
  await onCluster({ urlOf }, async ({ database }) => {
    expect(await database.shared?.weaknesses()).toEqual([
      { level: 'error', what: `its node 127.0.0.1:${closed} does not respond` },
    ])
  })
  await onCluster({}, async ({ database }) => {
    expect(await database.shared?.weaknesses()).toEqual([])
  })
})

test('the nodes of a cluster report who leads and how far each is; one that reports something else counts as down', async () => {
  const members = ['1', '2', '3']
  const behind = await startOther(statusOf({ id: '2', members, raft: { term: 4, commit_index: 7, applied_index: 6 } }))
  const hostile = await startOther(statusOf({ id: '3', members, raft: { term: '4' } }))
  const status = statusOf({ id: '1', members, raft: { term: 4 } })
  await onCluster({ urlOf: withOthers(behind, hostile), status }, async ({ database, server }) => {
    const servers = watchDatabaseServers(database.shared)
    expect([servers.states(), servers.leaderChanges()]).toEqual([[], undefined])
    await servers.look()
    const [leader, follower, other] = servers.states()
    const same = { isUp: true, term: 4, bytes: 4_096 }
    expect(leader).toEqual({ ...same, server: addressOf(server.url), isLeader: true, committed: 9, applied: 9 })
    expect(follower).toEqual({ ...same, server: addressOf(behind.url), isLeader: false, committed: 7, applied: 6 })
    expect(other).toEqual({ server: addressOf(hostile.url), isUp: false })
    expect(servers.states().map(servers.behind)).toEqual([0, 3, undefined])
    expect(servers.leaderChanges()).toBe(0)
    status.store.raft = { ...status.store.raft, term: 6 }
    await servers.look()
    await servers.look()
    expect(servers.leaderChanges()).toBe(2)
  })
  await Promise.all([behind.close(), hostile.close()])
})

test('a node that was removed and runs again counts as down, and is a weakness with what to do', async () => {
  const members = ['1', '2', '4']
  const second = await startOther(statusOf({ id: '2', members }))
  const removed = await startOther(statusOf({ id: '3', members: ['1', '2', '3'], leader: '' }))
  const status = statusOf({ id: '1', members })
  await onCluster({ urlOf: withOthers(second, removed), status }, async ({ database }) => {
    expect((await database.shared?.servers())?.map(({ isUp }) => isUp)).toEqual([true, true, false])
    const found = (await database.shared?.weaknesses()) ?? []
    expect(found.map(({ level, what }) => [level, what])).toEqual([
      ['error', `its node ${addressOf(removed.url)} runs beside the cluster, of which it is no member`],
      ['warning', 'its member 4 (10.0.0.4:4002) is at none of the addresses in LATCHKEY_DATABASE_URL that respond'],
    ])
    expect(found.map(({ action }) => action)).toEqual([
      expect.stringContaining('Stop rqlited there'),
      expect.stringContaining('Put its address in'),
    ])
  })
  await Promise.all([second.close(), removed.close()])
})

test('a cluster of which an address leads another cluster is refused', async () => {
  const [second, own] = await Promise.all([
    startOther(statusOf({ id: '2', members: ['1', '2'] })),
    startOther(statusOf({ id: '3', members: ['3'], raft: { term: 9 } })),
  ])
  const first = await startOther(statusOf({ id: '1', members: ['1', '2'] }))
  const send: SendRequest = (request, signal) => fetch(request, { signal })
  const url = withOthers(first, second)(own)
  const opened = await openServerDatabase({ url, token: undefined, create: true, send })
  const message = expect.stringContaining(`its node ${addressOf(own.url)} leads a separate cluster`)
  expect(opened).toMatchObject({ refused: 'unreadable', message })
  await Promise.all([first.close(), second.close(), own.close()])
})

test('a cluster whose nodes have different clocks is refused', async () => {
  const times = [1_000, 1_031]
  const send: SendRequest = async () => {
    const results = [
      { columns: ['k'], values: [[1]] },
      { columns: ['t'], values: [[times.shift()]] },
    ]
    return new Response(JSON.stringify({ results }), { headers: { 'x-rqlite-version': 'v10.0.0' } })
  }
  const opened = await openServerDatabase({ url: 'rqlite://a,b', token: undefined, create: true, send })
  expect(opened).toMatchObject({ refused: 'unreadable', message: expect.stringContaining('differ by 31 s') })
})
