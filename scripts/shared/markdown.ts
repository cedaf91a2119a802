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
      const last = blocks.at(-1)
      const kind: Block['kind'] = isCode ? 'code' : kindOf(line, isOpen && last?.kind === 'paragraph')
      const continues = last?.kind === kind || (last?.kind === 'item' && kind === 'paragraph')
      if (isOpen && last !== undefined && continues) last.lines.push(line)
      else blocks.push({ kind, lines: [line] })
      isOpen = kind !== 'heading'
    }
  }
  return blocks
}

function kindOf(line: string, isWithinParagraph: boolean): Block['kind'] {
  if (line.startsWith('#')) return 'heading'
  if (line.startsWith('|')) return 'table'
  return (isWithinParagraph ? firstItemMark : itemMark).test(line) ? 'item' : 'paragraph'
}

/** What an item of a list begins with. */
const itemMark = /^(?:-|\d+\.) /
/** Within a paragraph, another number ends a sentence, as in "responds with 503." (CommonMark 0.31.2, section 5.3). */
const firstItemMark = /^(?:-|1\.) /

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

/** Wraps the last column. If the other columns leave it less than half of the width, each row becomes a list of titles and cells. */
function renderTable(lines: string[], width: number): string {
  const [titles = [], ...rows] = lines.filter((line) => !/^\|[-|]+\|$/.test(line)).map(cellsOf)
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
