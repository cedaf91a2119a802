// What `latchkey help TOPIC` prints keeps everything that the page of the manual says.
import { describe, expect, test } from 'bun:test'
import { renderMarkdown } from '../../../scripts/shared/markdown.ts'
import { topics } from '../../../src/manual/topics.ts'

const render = (text: string, width: number) => renderMarkdown(text, width, (heading) => heading)
const words = (text: string) => text.replaceAll(/\s+/g, ' ')

describe('a table', () => {
  const table = [
    '| command | option | what it does |',
    '|---|---|---|',
    '| `serve` | `--listen` | listens there |',
  ].join('\n')

  test('has its titles above the columns where they fit', () => {
    expect(render(table, 60)).toBe(['command  option    what it does', 'serve    --listen  listens there'].join('\n'))
  })

  test('has them before each cell where they do not', () => {
    expect(render(table, 30)).toBe(
      ['command: serve', '    option: --listen', '    what it does: listens', '    there'].join('\n'),
    )
  })

  test('keeps rows apart as lists, and a column without a title is its cells', () => {
    const rows = ['| | what it does |', '|---|---|', '| a long first cell | one |', '| another | two |'].join('\n')
    expect(render(rows, 24)).toBe(
      ['a long first cell', '    what it does: one', '', 'another', '    what it does: two'].join('\n'),
    )
  })
})

test('a number at the beginning of a line ends a sentence and begins no list', () => {
  const text = 'Four of 1,683 got a\n503. Everything else is in the ledger.'
  expect(render(text, 80)).toBe('Four of 1,683 got a 503. Everything else is in the ledger.')
})

test('a list can begin right below a paragraph, and its later items have their numbers', () => {
  expect(render('Do this:\n1. Stop it.\n2. Start it.', 80)).toBe('Do this:\n\n1. Stop it.\n2. Start it.')
})

describe('every table of the manual has all its titles, 40, 80 and 100 characters wide, on the page', () => {
  for (const [name, text] of topics) {
    const headers = [...text.matchAll(/^(\|.*\|)\n\|[-|]+\|$/gm)].map(([, header = '']) => header)
    const titles = headers.flatMap((header) => header.slice(1, -1).split('|'))
    if (titles.length === 0) continue
    test(name, () => {
      const missing = [40, 80, 100].flatMap((width) => {
        const shown = words(render(text, width))
        return titles.filter((title) => !shown.includes(words(render(title.trim(), 1_000))))
      })
      expect(missing).toEqual([])
    })
  }
})
