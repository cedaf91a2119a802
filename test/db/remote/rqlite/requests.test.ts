// What a cluster is sent: texts stay texts, and no statement can have another effect on another replica.
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createDatabaseClock } from '../../../../db/remote/rqlite/clock.ts'
import { boundOf, determine, encode } from '../../../../db/remote/rqlite/requests.ts'
import { statementError, toResultSet } from '../../../../db/remote/rqlite/results.ts'
import { originsOf } from '../../../../db/remote/rqlite/rqlite-urls.ts'
import { migrations } from '../../../../db/schema/migrate.ts'

/** What the server makes of an argument. */
const taken = (value: unknown) =>
  Array.isArray(value)
    ? Uint8Array.from(value as number[])
    : typeof value === 'string' && /^x'([0-9a-f]{2})*'$/i.test(value.trim())
      ? Buffer.from(value.trim().slice(2, -1), 'hex')
      : value

function storedOf(text: string): unknown {
  const database = new Database(':memory:')
  const [sql, ...args] = encode({ sql: 'select typeof(?1), ?1, \'?\', ?2 as "?"', args: [text, 1] })
  return database.query(sql).values(...(args.map(taken) as string[]))[0]
}

test('a text that looks like a BLOB literal stays a text', () => {
  const texts = fc.oneof(
    fc.string(),
    fc.uint8Array().map((bytes) => `x'${Buffer.from(bytes).toString('hex')}'`),
    fc.constantFrom("x''", "X'41'", " x'41' ", "\u0085x'41'", "x'4'", "x'zz'"),
  )
  fc.assert(fc.property(texts, (text) => expect(storedOf(text)).toEqual(['text', text, '?', 1])))
})

test('a question mark in a text or a name is no placeholder', () => {
  const sql = 'select \'?\', ? as "?", ?'
  expect(encode({ sql, args: [1, "x'41'"] })[0]).toBe('select \'?\', ? as "?", cast(? as text)')
})

test('an argument without a counterpart in JSON is converted, and an integer that would change is refused', () => {
  const args = [true, 5n, new Uint8Array([1, 255]), null, 1.5]
  expect(encode({ sql: 'select ?', args })).toEqual(['select ?', 1, 5, [1, 255], null, 1.5])
  expect(() => encode({ sql: 'select ?', args: [2n ** 53n + 1n] })).toThrow(RangeError)
  for (const number of [Number.NaN, Number.POSITIVE_INFINITY])
    expect(() => encode({ sql: 'select ?', args: [number] })).toThrow(RangeError)
  expect(() => boundOf({ sql: 'select :a', args: { a: 1 } })).toThrow('named arguments')
})

test('a commit carries the time of the database and random bytes as values', () => {
  expect(determine("insert into t values (unixepoch('subsec'))", 1_764_000_000_123)).toBe(
    'insert into t values (1764000000.123)',
  )
  expect(determine('insert into t values (randomblob(16))', 0)).toMatch(/values \(x'[0-9a-f]{32}'\)$/)
})

for (const call of [
  'random()',
  'RANDOM ()',
  'randomblob(?)',
  "unixepoch('now')",
  "datetime('now')",
  "date('now')",
  "strftime('%s')",
  'current_timestamp',
])
  test(`a commit with ${call} is refused`, () => {
    expect(() => determine(`insert into t values (${call})`, 0)).toThrow('which each replica would answer differently')
  })

test('a name or a text that only reads like a call is sent', () => {
  const sql = "insert into t (at_time, random) values ('random()', 1)"
  expect(determine(sql, 0)).toBe(sql)
})

test('every migration has the same effect on each replica', () => {
  for (const { statements } of migrations) for (const sql of statements) expect(() => determine(sql, 0)).not.toThrow()
})

test('the clock of the database goes on by the monotonic one, and is that of the last read', () => {
  let monotonic = 1_000
  const clock = createDatabaseClock(() => monotonic)
  clock.note(2_000, 900, 1_100)
  expect(clock.now()).toBe(2_000_000)
  monotonic += 500
  expect(clock.now()).toBe(2_000_500)
  clock.note('no number', 0, 0)
  expect(clock.now()).toBe(2_000_500)
  clock.note(10, 1_500, 1_500)
  expect(clock.now()).toBe(10_000)
})

test('an URL names the origins of the nodes, each once', () => {
  expect(originsOf('rqlite://a:1,b,[::1]:3,a:1')).toEqual(['http://a:1', 'http://b:4001', 'http://[::1]:3'])
  expect(originsOf('rqlites://a/')).toEqual(['https://a:4001'])
  for (const wrong of ['', 'a:1', 'rqlite://', 'rqlite://a,,b', 'rqlite://a:0', 'rqlite://a b', 'rqlite://a:1/path'])
    expect([wrong, originsOf(wrong)]).toEqual([wrong, undefined])
})

test('rows have values by name and by index, and show their names alone', () => {
  const { rows } = toResultSet({ columns: ['id', 'name', 'id'], values: [[1, [104, 105], 3]] })
  const [row] = rows
  expect([row?.[0], row?.[2], row?.length]).toEqual([1, 3, 3])
  expect(Object.keys(row ?? {})).toEqual(['id', 'name'])
  expect(row?.name).toEqual(Uint8Array.from([104, 105]).buffer)
  const [odd] = toResultSet({ columns: ['2', '0', 'length'], values: [[5, 6, 7]] }).rows
  expect([odd?.[0], odd?.[1], odd?.[2], odd?.length as unknown]).toEqual([5, 6, 7, 7])
  expect(toResultSet({}).rows).toEqual([])
})

test('only an error that every replica reports alike proves that nothing was committed', () => {
  const codeOf = (said: string) => statementError(said).code
  expect(codeOf('UNIQUE constraint failed: batches.id')).toBe('SQLITE_CONSTRAINT')
  expect(codeOf('malformed JSON')).toBe('SQLITE_ERROR')
  expect(codeOf('string or blob too big')).toBe('SQLITE_TOOBIG')
  for (const said of [
    'database or disk is full',
    'disk I/O error',
    'database is locked',
    'database disk image is malformed',
  ])
    expect([said, codeOf(said)]).toEqual([said, 'DATABASE_UNREACHABLE'])
})
