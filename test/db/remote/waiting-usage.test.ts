// Usage that waits on the disk for a database server: committed once whatever is lost, kept in order, bounded, and set aside where it cannot be
// applied.
import { afterAll, expect, test } from 'bun:test'
import { appendFileSync, existsSync, readFileSync, statSync, truncateSync } from 'node:fs'
import { type Client, createClient, type InStatement, LibsqlBatchError } from '@libsql/client'
import { createCommits } from '../../../db/remote/commit-once.ts'
import { asNotReached, asUnreachable } from '../../../db/remote/server-errors.ts'
import { readWaiting } from '../../../db/remote/waiting-file.ts'
import { openWaitingUsage, type WaitingUsageOptions } from '../../../db/remote/waiting-usage.ts'
import type { BoundStatement } from '../../../db/write/rows.ts'
import { temporaryFolder } from '../../support/latchkey.ts'
import { rejectionOf } from '../../support/rejection.ts'
import { type OrganizationRows, usageRow } from '../../support/rows.ts'
import { until } from '../../support/until.ts'

const folder = temporaryFolder()
afterAll(() => folder.remove())

let files = 0

/** What a server does to commits: it does them, does not get them, or does them and loses its response. */
type Behavior = 'takes' | 'is away' | 'loses the response' | 'refuses'

async function startServer() {
  const client: Client = createClient({ url: ':memory:' })
  await client.executeMultiple(`create table batches (number integer primary key, id text unique, at integer);
    create table usage (id integer primary key, request_id text)`)
  const state: { behavior: Behavior } = { behavior: 'takes' }
  const { commit } = createCommits({
    send: async (statements: BoundStatement[]) => {
      if (state.behavior === 'is away') throw asNotReached(new Error('refused'))
      if (state.behavior === 'refuses') throw new LibsqlBatchError('no such column: x', 1, 'SQLITE_ERROR')
      const results = await client.batch(statements as InStatement[], 'write').catch((error: Error) => {
        throw new LibsqlBatchError(error.message, 0, 'SQLITE_ERROR')
      })
      if (state.behavior === 'loses the response') throw asUnreachable(new Error('reset'))
      return results
    },
    monotonic: () => performance.now(),
    onUnknown: () => {},
    patienceMilliseconds: 0,
    outcomeMillisecondsMax: 0,
  })
  const requests = async () =>
    (await client.execute('select request_id from usage order by id')).rows.map((row) => String(row.request_id))
  const forget = () => client.execute('delete from batches')
  return { state, commit, requests, forget }
}

type Server = Awaited<ReturnType<typeof startServer>>

function openOn(server: Server, path: string, more: Partial<WaitingUsageOptions> = {}) {
  return openWaitingUsage({
    path,
    send: async (statements, _rows, patience) => void (await server.commit(statements, patience)),
    statementsFor: ({ usage }) =>
      usage.map(({ requestId }) => ({ sql: 'insert into usage (request_id) values (?)', args: [requestId] })),
    known: () => ({ installation: 'one', usageId: 0 }),
    onWaiting: () => {},
    onRefused: () => {},
    patienceMilliseconds: 10_000,
    ...more,
  })
}

async function start(more: Partial<WaitingUsageOptions> = {}) {
  files += 1
  const path = `${folder.path}/waiting-${files}`
  const server = await startServer()
  return { path, server, waiting: await openOn(server, path, more) }
}

const owner = { organization: { id: 'o' }, workspace: { id: 'w' }, key: { id: 'k' } } as OrganizationRows
const rowsOf = (...ids: string[]) => ({ usage: ids.map((id) => usageRow(id, owner)), storedResponses: [] })

test('rows are committed while the database takes them, and nothing is on the disk', async () => {
  const { path, server, waiting } = await start()
  await waiting.commit(rowsOf('a', 'b'))
  expect([await server.requests(), waiting.rows(), statSync(path).size]).toEqual([['a', 'b'], 0, 0])
  await waiting.close()
})

test('rows wait while it is away, for the owner alone, and are applied once and in order when it is back', async () => {
  const told: [boolean, number][] = []
  const { path, server, waiting } = await start({ onWaiting: (...args) => told.push(args) })
  server.state.behavior = 'is away'
  await Promise.all([waiting.commit(rowsOf('a')), waiting.commit(rowsOf('b', 'c'))])
  expect([await server.requests(), waiting.rows()]).toEqual([[], 3])
  expect((statSync(path).mode & 0o777).toString(8)).toBe('600')
  await waiting.apply()
  expect([await server.requests(), waiting.rows()]).toEqual([[], 3])
  server.state.behavior = 'takes'
  // While some wait, those after them do too: nothing overtakes them.
  await waiting.commit(rowsOf('d'))
  expect(await server.requests()).toEqual([])
  await waiting.apply()
  expect([await server.requests(), waiting.rows(), statSync(path).size]).toEqual([['a', 'b', 'c', 'd'], 0, 0])
  expect(told).toEqual([
    [true, 1],
    [false, 0],
  ])
  await waiting.commit(rowsOf('e'))
  expect(await server.requests()).toEqual(['a', 'b', 'c', 'd', 'e'])
  await waiting.close()
})

test('what is left by a process that was killed is applied by the next, once', async () => {
  const { path, server, waiting } = await start()
  server.state.behavior = 'is away'
  await waiting.commit(rowsOf('a'))
  await waiting.commit(rowsOf('b'))
  const left = readFileSync(path)
  server.state.behavior = 'takes'
  await waiting.apply()
  await waiting.close()
  // It was killed before it emptied the file.
  appendFileSync(path, left)
  for (const isForgotten of [false, true]) {
    if (isForgotten) await server.forget()
    const next = await openOn(server, path)
    expect(next.rows()).toBe(2)
    await next.apply()
    expect([await server.requests(), next.rows()]).toEqual([['a', 'b'], 0])
    await next.close()
    expect(statSync(path).size).toBe(0)
    appendFileSync(path, left)
  }
})

test('a commit whose response was lost is not made again, also when its id is no longer known', async () => {
  for (const isForgotten of [false, true]) {
    const { path, server, waiting } = await start()
    server.state.behavior = 'loses the response'
    await waiting.commit(rowsOf('a'))
    expect([await server.requests(), waiting.rows()]).toEqual([['a'], 1])
    await waiting.close()
    if (isForgotten) await server.forget()
    server.state.behavior = 'takes'
    const next = await openOn(server, path)
    await next.apply()
    expect([await server.requests(), next.rows()]).toEqual([['a'], 0])
    await next.close()
  }
})

test('a commit that takes long lets its caller go on, and is not made twice', async () => {
  const { promise: arrived, resolve } = Promise.withResolvers<void>()
  const { server, waiting } = await start({ patienceMilliseconds: 1 })
  const held = {
    ...server,
    commit: async (...commit: Parameters<Server['commit']>) => arrived.then(() => server.commit(...commit)),
  }
  files += 1
  const path = `${folder.path}/waiting-${files}`
  const slow = await openOn(held, path, { patienceMilliseconds: 1 })
  await slow.commit(rowsOf('a'))
  expect([await server.requests(), slow.rows(), statSync(path).size > 0]).toEqual([[], 1, true])
  const applied = slow.apply()
  resolve()
  await applied
  // Nothing else need happen: otherwise the file would grow with every slow commit.
  await until('an empty file', () => slow.rows() === 0 && statSync(path).size === 0)
  await slow.apply()
  expect(await server.requests()).toEqual(['a'])
  await Promise.all([slow.close(), waiting.close()])
})

test('a line that was torn by a power loss is dropped, since nobody got its response', async () => {
  const { path, server, waiting } = await start()
  server.state.behavior = 'is away'
  await waiting.commit(rowsOf('a'))
  await waiting.commit(rowsOf('b'))
  await waiting.close()
  truncateSync(path, statSync(path).size - 5)
  const torn = await openOn(server, path)
  expect(torn.rows()).toBe(1)
  await torn.commit(rowsOf('c'))
  await torn.close()
  // What came after it is a line too.
  expect((await readWaiting(path)).damaged).toBe(0)
  server.state.behavior = 'takes'
  const next = await openOn(server, path)
  await next.apply()
  expect(await server.requests()).toEqual(['a', 'c'])
  await next.close()
})

test('lines that are damaged are set aside and reported, and the others are applied', async () => {
  const { path, server, waiting } = await start()
  server.state.behavior = 'is away'
  await waiting.commit(rowsOf('a'))
  await waiting.close()
  const line = readFileSync(path, 'utf8')
  const commit = JSON.parse(line)
  const hostile = [
    'no JSON',
    JSON.stringify({ ...commit, id: 7 }),
    JSON.stringify({ ...commit, after: 'x' }),
    JSON.stringify({ ...commit, usage: [{ ...commit.usage[0], evil: 1 }] }),
    JSON.stringify({ ...commit, usage: [{ ...commit.usage[0], model: { $gt: '' } }] }),
    JSON.stringify({ ...commit, usage: [] }),
    JSON.stringify([commit]),
  ]
  for (const each of hostile) {
    const lines = `${each}\n${line}`
    truncateSync(path, 0)
    appendFileSync(path, lines)
    const refused: string[] = []
    const next = await openOn(server, path, { onRefused: (why, file) => refused.push(why, file) })
    expect([next.rows(), refused]).toEqual([1, ['1 lines are damaged', `${path}.damaged`]])
    expect(readFileSync(`${path}.damaged`, 'utf8')).toBe(lines)
    for (const file of [path, `${path}.damaged`]) expect(statSync(file).mode & 0o077).toBe(0)
    await next.close()
    expect((await readWaiting(path)).found).toHaveLength(1)
  }
})

test('rows that an older program left lack the newest columns, which are null', async () => {
  const { path, server, waiting } = await start()
  server.state.behavior = 'is away'
  await waiting.commit(rowsOf('a'))
  await waiting.close()
  const { usage, ...commit } = JSON.parse(readFileSync(path, 'utf8'))
  const { attempts: _attempts, error: _error, ...older } = usage[0]
  const { keyId: _keyId, ...withoutKey } = older
  truncateSync(path, 0)
  for (const row of [older, withoutKey]) appendFileSync(path, `${JSON.stringify({ ...commit, usage: [row] })}\n`)
  const { found, damaged } = await readWaiting(path)
  expect(found.map(({ usage }) => usage)).toEqual([[{ ...older, attempts: null, error: null }]])
  // A row that says not whose it is counts for nobody.
  expect(damaged).toBe(1)
})

test('rows that the database refuses, or that belong to another one, are set aside and do not hold up the others', async () => {
  const { path, server, waiting } = await start()
  server.state.behavior = 'is away'
  await waiting.commit(rowsOf('a'))
  const refused: string[] = []
  server.state.behavior = 'refuses'
  await waiting.close()
  const next = await openOn(server, path, { onRefused: (why) => refused.push(why) })
  await next.apply()
  expect([next.rows(), refused]).toEqual([0, [expect.stringContaining('no such column: x')]])
  server.state.behavior = 'is away'
  await next.commit(rowsOf('b'))
  await next.close()
  server.state.behavior = 'takes'
  const foreign = await openOn(server, path, {
    known: () => ({ installation: 'two', usageId: 0 }),
    onRefused: (why) => refused.push(why),
  })
  await foreign.apply()
  expect([foreign.rows(), refused.slice(1)]).toEqual([0, ['it belongs to another database']])
  expect(readFileSync(`${path}.refused`, 'utf8').split('\n')).toHaveLength(3)
  expect(statSync(`${path}.refused`).mode & 0o077).toBe(0)
  expect(await server.requests()).toEqual([])
  await foreign.close()
})

test('of rows that wait together, only the one that the database refuses is set aside, also after a kill between two of them', async () => {
  const refused: string[] = []
  const insert = (id: string) =>
    id === 'bad' ? 'insert into missing (request_id) values (?)' : 'insert into usage (request_id) values (?)'
  let sent = 0
  const options: Partial<WaitingUsageOptions> = {
    statementsFor: ({ usage }) => usage.map(({ requestId }) => ({ sql: insert(requestId), args: [requestId] })),
    onRefused: (why) => refused.push(why),
  }
  const { path, server, waiting } = await start(options)
  server.state.behavior = 'is away'
  await waiting.commit(rowsOf('a', 'bad', 'b', 'c'))
  await waiting.close()
  server.state.behavior = 'takes'
  const killed = await openOn(server, path, {
    ...options,
    send: async (statements, _rows, patience) => {
      sent += 1
      // After the refusal of all and the commit of the first.
      if (sent > 2) throw asNotReached(new Error('refused'))
      await server.commit(statements, patience)
    },
  })
  await killed.apply()
  expect([await server.requests(), killed.rows(), refused]).toEqual([['a'], 3, []])
  await killed.close()
  const next = await openOn(server, path, options)
  await next.apply()
  expect([await server.requests(), next.rows(), statSync(path).size]).toEqual([['a', 'b', 'c'], 0, 0])
  expect(new Set(refused.map((why) => why.includes('no such table: missing')))).toEqual(new Set([true]))
  const lines = readFileSync(`${path}.refused`, 'utf8').trim().split('\n')
  expect(
    new Set(
      lines
        .flatMap((line) => (JSON.parse(line) as { usage: { requestId: string }[] }).usage)
        .map(({ requestId }) => requestId),
    ),
  ).toEqual(new Set(['bad']))
  await next.close()
})

test('a row that the database refuses at once fails its own request, and does not wait', async () => {
  const { path, server, waiting } = await start()
  server.state.behavior = 'refuses'
  expect((await rejectionOf(waiting.commit(rowsOf('a')))).message).toContain('no such column')
  expect([waiting.rows(), statSync(path).size]).toEqual([0, 0])
  await waiting.close()
})

test.each(['SQLITE_FULL', 'SQLITE_IOERR_WRITE', 'SQLITE_READONLY'])(
  'rows wait while the disk of the server, or its right to write, is missing (%s)',
  async (code) => {
    const send = async () => {
      throw new LibsqlBatchError('no', 0, code)
    }
    const { waiting } = await start({ send })
    await waiting.commit(rowsOf('a'))
    await waiting.apply()
    expect(waiting.rows()).toBe(1)
    await waiting.close()
  },
)

test('a row that does not reach the disk fails its own request, and does not wait', async () => {
  const { server, waiting } = await start()
  server.state.behavior = 'is away'
  const [row] = rowsOf('a').usage
  const unwritable = { ...row, units: 1n as never } as typeof row & object
  await rejectionOf(waiting.commit({ usage: [unwritable], storedResponses: [] }))
  expect(waiting.rows()).toBe(0)
  await waiting.close()
})

test('the file is bounded: it says when it has no room left', async () => {
  const { server, waiting } = await start({ bytesMax: 2_000 })
  server.state.behavior = 'is away'
  for (let requests = 0; waiting.hasRoom() && requests < 50; requests++) await waiting.commit(rowsOf(`r${requests}`))
  expect([waiting.hasRoom(), waiting.rows() < 10]).toEqual([false, true])
  server.state.behavior = 'takes'
  await waiting.apply()
  expect(waiting.hasRoom()).toBe(true)
  await waiting.close()
})

test('a folder that is missing is an error', async () => {
  const error = await rejectionOf(openOn(await startServer(), `${folder.path}/none/waiting`))
  expect([(error as NodeJS.ErrnoException).code, existsSync(`${folder.path}/none`)]).toEqual(['ENOENT', false])
})
