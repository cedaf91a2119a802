// Published policies that nobody saw who wrote the rules: the dangerous are blocked, the safe are not.
import { expect, test } from 'bun:test'
import { type CorpusRow, isValid, judge, wronglyBlockedMax } from './corpus.ts'
import published from './held.json'

const rows: CorpusRow[] = published
const { missed, wronglyBlocked } = judge(rows)
const safe = rows.filter(({ verdict }) => verdict === 'safe')

test('every published policy is valid, and its verdict is dangerous or safe', () => {
  expect(rows.filter((row) => !isValid(row)).map(({ id }) => id)).toEqual([])
  expect(new Set(rows.map(({ verdict }) => verdict))).toEqual(new Set(['dangerous', 'safe']))
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length)
})

test('every dangerous published policy is blocked', () => {
  expect(missed).toEqual([])
})

test('at most one in twenty safe published policies is blocked', () => {
  expect(wronglyBlocked.length / safe.length, wronglyBlocked.join(', ')).toBeLessThanOrEqual(wronglyBlockedMax)
})
