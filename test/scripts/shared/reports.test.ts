// Reports that are empty or cut: what the command says of them is so.
import { expect, test } from 'bun:test'
import { notSearchedLines, whenEmpty } from '../../../scripts/shared/reports.ts'

const given = (options: Record<string, string | boolean>) => ({ words: [], options })

test.each([
  ...['key', 'policy', 'issuer', 'subject', 'since', 'until', 'organization', 'beforeId', 'outcome', 'reason', 'grant'],
  ...['changedBy', 'kind', 'group', 'model', 'attribution', 'upstream', 'httpStatus', 'result', 'type'],
])('an empty report with --%s does not say that there is nothing', (option) => {
  expect(whenEmpty(given({}), 'No rows yet')).toBe('No rows yet')
  expect(whenEmpty(given({ [option]: 'x' }), 'No rows yet')).not.toBe('No rows yet')
})

test('older rows that a search did not reach are named, but not below a full page, which has its own line', () => {
  const found = (rows: number, before: number | null) => ({ data: Array(rows).fill({}), more_before_id: before })
  expect(notSearchedLines('requests', found(0, 7), given({}))).toEqual([
    'Older requests were not searched. To continue: --before-id 7',
  ])
  expect(notSearchedLines('requests', found(2, 7), given({ limit: '2' }))).toEqual([])
  expect(notSearchedLines('requests', found(1, null), given({}))).toEqual([])
  expect(notSearchedLines('requests', { data: [] }, given({}))).toEqual([])
})
