// The Markdown of the manual becomes blocks, which the terminal and the page render.
import { expect, test } from 'bun:test'
import { readMarkdown } from '../../src/manual/markdown.ts'
import { topics } from '../../src/manual/topics.ts'

test('each kind of block is read, and what is inside a text stays', () => {
  const text = [
    '# Title',
    '## Run `it`',
    'One',
    '**line**.',
    '1. Stop it',
    '   now.',
    '2. Start it.',
    '',
    '| a | b |',
    '|---|---|',
    '| `x\\|y` | |',
    '```sh',
    '# no heading',
    '',
    '| no table |',
    '```',
  ].join('\n')
  expect(readMarkdown(text)).toEqual([
    { kind: 'heading', level: 1, text: 'Title' },
    { kind: 'heading', level: 2, text: 'Run `it`' },
    { kind: 'paragraph', text: 'One **line**.' },
    {
      kind: 'list',
      items: [
        { mark: '1. ', text: 'Stop it now.' },
        { mark: '2. ', text: 'Start it.' },
      ],
    },
    {
      kind: 'table',
      rows: [
        ['a', 'b'],
        ['`x|y`', ''],
      ],
    },
    { kind: 'code', text: '# no heading\n\n| no table |' },
  ])
})

test('no word of the manual is lost', () => {
  for (const [name, text] of topics) {
    const kept = readMarkdown(text).flatMap((block) => {
      if (block.kind === 'table') return block.rows.flat()
      if (block.kind === 'list') return block.items.map(({ mark, text }) => mark + text)
      return [block.text]
    })
    const words = (all: string) => all.replaceAll(/^```\w*$/gm, '').match(/\w+/g) ?? []
    expect({ name, words: words(kept.join(' ')) }).toEqual({ name, words: words(text) })
  }
})
