// Renders Markdown for a terminal: wrapped text, aligned tables, indented code. It supports the subset that the manual
// uses.

type Block = { kind: 'heading' | 'code' | 'table' | 'item' | 'paragraph'; lines: string[] }

const codeIndent = '    '
const columnGap = '  '

/**
 * Renders lines of at most `width` characters, unless a word, code or the first columns of a table are wider. `bold`
 * formats headings.
 */
export function renderMarkdown(markdown: string, width: number, bold: (text: string) => string): string {
  const rendered = blocksOf(markdown).map(({ kind, lines }) => {
    const [first = ''] = lines
    if (kind === 'heading') return bold(plain(first.replace(/^#+ /, '')))
    if (kind === 'code') return lines.map((line) => (line === '' ? '' : codeIndent + line)).join('\n')
    if (kind === 'table') return renderTable(lines, width)
    if (kind === 'item') return renderItems(lines, width)
    return wrap(plain(lines.join(' ')), width).join('\n')
  })
  return rendered.join('\n\n')
}

function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = []
  let isCode = false
  let isOpen = false
  for (const line of markdown.trim().split('\n')) {
    if (line.startsWith('```')) {
      isCode = !isCode
      if (isCode) blocks.push({ kind: 'code', lines: [] })
      isOpen = isCode
    } else if (line === '' && !isCode) isOpen = false
    else {
      const kind = isCode ? 'code' : kindOf(line)
      const last = blocks.at(-1)
      const continues = last?.kind === kind || (last?.kind === 'item' && kind === 'paragraph')
      if (isOpen && last !== undefined && continues) last.lines.push(line)
      else blocks.push({ kind, lines: [line] })
      isOpen = kind !== 'heading'
    }
  }
  return blocks
}

function kindOf(line: string): Block['kind'] {
  if (line.startsWith('#')) return 'heading'
  if (line.startsWith('|')) return 'table'
  return itemMark.test(line) ? 'item' : 'paragraph'
}

/** What an item of a list begins with. */
const itemMark = /^(?:-|\d+\.) /

function renderItems(lines: string[], width: number): string {
  const items: { mark: string; text: string }[] = []
  for (const line of lines) {
    const [mark] = itemMark.exec(line) ?? []
    const last = items.at(-1)
    if (mark !== undefined) items.push({ mark, text: line.slice(mark.length) })
    else if (last !== undefined) last.text += ` ${line.trim()}`
  }
  const renderItem = ({ mark, text }: (typeof items)[number]) =>
    mark + wrap(plain(text), width - mark.length).join(`\n${' '.repeat(mark.length)}`)
  return items.map(renderItem).join('\n')
}

/** Wraps the last column. If the other columns leave it less than half of the width, each row becomes a short list. */
function renderTable(lines: string[], width: number): string {
  const [titles = [], ...rows] = lines.filter((line) => !/^\|[-|]+\|$/.test(line)).map(cellsOf)
  const before = titles.length - 1
  const widths = Array.from({ length: before }, (_, index) =>
    Math.max(...[titles, ...rows].map((row) => row[index]?.length ?? 0)),
  )
  const indent = widths.reduce((sum, each) => sum + each + columnGap.length, 0)
  if (indent > width / 2) return rows.map((row) => renderRowAsList(row, width)).join('\n')
  return [titles, ...rows]
    .map((row) => {
      const start = widths.map((each, index) => (row[index] ?? '').padEnd(each) + columnGap).join('')
      return (start + wrap(row[before] ?? '', width - indent).join(`\n${' '.repeat(indent)}`)).trimEnd()
    })
    .join('\n')
}

function renderRowAsList([first = '', ...others]: string[], width: number): string {
  const below = others.flatMap((cell) => wrap(cell, width - codeIndent.length))
  return [...wrap(first, width), ...below.map((line) => codeIndent + line)].join('\n')
}

function cellsOf(line: string): string[] {
  const cells = line.slice(1, -1).split(/(?<!\\)\|/)
  return cells.map((cell) => plain(cell.trim().replaceAll('\\|', '|')))
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
