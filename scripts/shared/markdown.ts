// Renders the Markdown of the manual for a terminal: wrapped text, aligned tables, indented code.
import { type Block, readMarkdown } from '../../src/manual/markdown.ts'

const codeIndent = '    '
const columnGap = '  '

/**
 * Renders lines of at most `width` characters, unless a word, code or the first columns of a table are wider. `bold`
 * formats headings.
 */
export function renderMarkdown(markdown: string, width: number, bold: (text: string) => string): string {
  return readMarkdown(markdown)
    .map((block) => renderBlock(block, width, bold))
    .join('\n\n')
}

function renderBlock(block: Block, width: number, bold: (text: string) => string): string {
  if (block.kind === 'heading') return bold(plain(block.text))
  if (block.kind === 'code') return block.text.replaceAll(/^(?=.)/gm, codeIndent)
  if (block.kind === 'table') return renderTable(block.rows, width)
  if (block.kind === 'paragraph') return wrap(plain(block.text), width).join('\n')
  return block.items
    .map(({ mark, text }) => mark + wrap(plain(text), width - mark.length).join(`\n${' '.repeat(mark.length)}`))
    .join('\n')
}

/** Wraps the last column. If the other columns leave it less than half of the width, each row becomes a list of titles and cells. */
function renderTable(table: readonly string[][], width: number): string {
  const [titles = [], ...rows] = table.map((cells) => cells.map(plain))
  const before = titles.length - 1
  const widths = Array.from({ length: before }, (_, index) =>
    Math.max(...[titles, ...rows].map((row) => row[index]?.length ?? 0)),
  )
  const indent = widths.reduce((sum, each) => sum + each + columnGap.length, 0)
  if (indent > width / 2) return rows.map((row) => renderRowAsList(titles, row, width)).join('\n\n')
  return [titles, ...rows]
    .map((row) => {
      const start = widths.map((each, index) => (row[index] ?? '').padEnd(each) + columnGap).join('')
      return (start + wrap(row[before] ?? '', width - indent).join(`\n${' '.repeat(indent)}`)).trimEnd()
    })
    .join('\n')
}

function renderRowAsList(titles: string[], cells: string[], width: number): string {
  const lines = cells.flatMap((cell, index) => {
    const start = index === 0 ? '' : codeIndent
    const title = titles[index] ?? ''
    const [first = '', ...others] = wrap(title === '' ? cell : `${title}: ${cell}`, width - codeIndent.length)
    return [start + first, ...others.map((line) => codeIndent + line)]
  })
  return lines.join('\n')
}

/** Removes the markup of code, bold text and links. An external link keeps its address. */
function plain(text: string): string {
  return text
    .replaceAll(/\[([^\]]+)\]\((https?:[^)]+)\)/g, '$1 ($2)')
    .replaceAll(/\[([^\]]+)\]\([^)]+\)/g, '$1')
    .replaceAll('**', '')
    .replaceAll('`', '')
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return lines
}
