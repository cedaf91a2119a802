// Reads the Markdown of the manual: the subset that it uses, as blocks. Anyone who renders them also renders what is inside a text: code, bold
// text and links.

export type Block =
  | { kind: 'heading'; level: number; text: string }
  | { kind: 'paragraph'; text: string }
  | { kind: 'code'; text: string }
  /** `mark` begins the item, such as `- ` or `1. `. */
  | { kind: 'list'; items: { mark: string; text: string }[] }
  /** The first row has the titles. */
  | { kind: 'table'; rows: string[][] }

type Lines = { kind: Block['kind']; lines: string[] }

/** What an item of a list begins with. */
const itemMark = /^(?:-|\d+\.) /
/** Within a paragraph, another number ends a sentence, as in "responds with 503." (CommonMark 0.31.2, section 5.3). */
const firstItemMark = /^(?:-|1\.) /

/** Every text is on one line, except code. */
export function readMarkdown(markdown: string): Block[] {
  return linesOf(markdown).map(({ kind, lines }) => {
    const [first = ''] = lines
    if (kind === 'heading') return { kind, level: first.indexOf(' '), text: first.replace(/^#+ /, '') }
    if (kind === 'code') return { kind, text: lines.join('\n') }
    if (kind === 'table') return { kind, rows: lines.filter((line) => !/^\|[-| ]+\|$/.test(line)).map(cellsOf) }
    if (kind === 'list') return { kind, items: itemsOf(lines) }
    return { kind, text: lines.join(' ') }
  })
}

function linesOf(markdown: string): Lines[] {
  const blocks: Lines[] = []
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
      const continues = last?.kind === kind || (last?.kind === 'list' && kind === 'paragraph')
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
  return (isWithinParagraph ? firstItemMark : itemMark).test(line) ? 'list' : 'paragraph'
}

function itemsOf(lines: readonly string[]): { mark: string; text: string }[] {
  const items: { mark: string; text: string }[] = []
  for (const line of lines) {
    const [mark] = itemMark.exec(line) ?? []
    const last = items.at(-1)
    if (mark !== undefined) items.push({ mark, text: line.slice(mark.length) })
    else if (last !== undefined) last.text += ` ${line.trim()}`
  }
  return items
}

function cellsOf(line: string): string[] {
  const cells = line.slice(1, -1).split(/(?<!\\)\|/)
  return cells.map((cell) => cell.trim().replaceAll('\\|', '|'))
}
