// Published policies: the dangerous are blocked, the safe are not. The rules may be tuned to the half for development; nobody who
// wrote them saw the half that was held back.
import { describe, expect, test } from 'bun:test'
import { type CorpusRow, isValid, judge, wronglyBlockedMax } from './corpus.ts'
import development from './development.json'
import held from './held.json'

const halves: [name: string, rows: CorpusRow[]][] = [
  ['for development', development],
  ['held back', held],
]
describe.each(halves)('of the half %s,', (_, rows) => {
  const { missed, wronglyBlocked } = judge(rows)

  test('every policy is valid, and its verdict is dangerous or safe', () => {
    expect(rows.filter((row) => !isValid(row)).map(({ id }) => id)).toEqual([])
    expect(new Set(rows.map(({ verdict }) => verdict))).toEqual(new Set(['dangerous', 'safe']))
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length)
  })

  test('every dangerous policy is blocked', () => {
    expect(missed).toEqual([])
  })

  test('at most one in twenty safe policies is blocked', () => {
    const safe = rows.filter(({ verdict }) => verdict === 'safe')
    expect(wronglyBlocked.length / safe.length, wronglyBlocked.join(', ')).toBeLessThanOrEqual(wronglyBlockedMax)
  })
})
