// Draws tables with aligned columns, measured in terminal cells, that fit the width of the terminal.
import stringWidth from 'string-width'
import { printable } from './render.ts'
import { paint, readTerminal, type Terminal, type Tone } from './terminal.ts'

export type Column<Row> = [
  title: string,
  value: (row: Row) => unknown,
  tone?: (text: string, row: Row) => Tone | undefined,
]

/** Longer cells would push other columns off the screen; `--json` shows them in full. */
const cellWidthMax = 72
/** The minimum width of a column of free text. */
const cellWidthMin = 12
const gap = '  '

/** Part of an id, time or number is meaningless, so such a column is shown in full or not at all. */
const wholeText = /^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|[\d.]+( ms)?|-)$/

/** Draws a table with aligned columns, or a sentence if there are no rows. */
export function table<Row>(
  rows: Row[],
  columns: Column<Row>[],
  whenEmpty: string,
  terminal: Terminal = readTerminal(),
): string {
  if (rows.length === 0) return whenEmpty
  const cells = columns.map(([, value]) => rows.map((row) => cut(printable(value(row)), cellWidthMax)))
  const widths = fit(
    columns.map(([title], index) => measure(title, cells[index] ?? [])),
    terminal.columns ?? Number.POSITIVE_INFINITY,
  )
  const shown = columns.slice(0, widths.length)
  const drawn = [
    drawLine(
      shown.map(([title]) => title),
      widths,
      (text) => paint(text, 'bold', terminal),
    ),
    ...rows.map((row, at) =>
      drawLine(
        shown.map((_, index) => cells[index]?.[at] ?? ''),
        widths,
        (text, index) => paint(text, shown[index]?.[2]?.(text, row), terminal),
      ),
    ),
  ]
  const left = columns.slice(widths.length).flatMap(([title]) => (title === '' ? [] : [title]))
  if (left.length > 0) drawn.push(`Too wide to show: ${left.join(', ')}; widen the terminal, or use --json`)
  return drawn.join('\n')
}

type ColumnWidth = { natural: number; least: number }

function measure(title: string, cells: string[]): ColumnWidth {
  const heading = stringWidth(title)
  const natural = Math.max(heading, ...cells.map((cell) => stringWidth(cell)))
  const isWhole = cells.every((cell) => wholeText.test(cell))
  return { natural, least: isWhole ? natural : Math.min(natural, Math.max(heading, cellWidthMin)) }
}

/**
 * Returns widths that fit into `available`. The widest columns shrink first, down to their minimum. If that is not
 * enough, it omits the last columns, but never the first.
 */
function fit(columns: ColumnWidth[], available: number): number[] {
  const room = available - gap.length * (columns.length - 1)
  for (let widest = cellWidthMax; widest > 0; widest -= 1) {
    const widths = columns.map(({ natural, least }) => Math.max(Math.min(natural, widest), least))
    if (widths.reduce((sum, width) => sum + width, 0) <= room) return widths
  }
  return columns.length > 1 ? fit(columns.slice(0, -1), available) : [Math.max(available, 1)]
}

function drawLine(cells: string[], widths: number[], color: (text: string, index: number) => string): string {
  const drawn = cells.map((cell, index) => {
    const width = widths[index] ?? 0
    const text = cut(cell, width)
    const padding = index === cells.length - 1 ? 0 : width - stringWidth(text)
    return color(text, index) + ' '.repeat(padding)
  })
  return drawn.join(gap).trimEnd()
}

const characters = new Intl.Segmenter()

/** Returns the start of a text that is wider than `widthMax`, cut between characters. */
function cut(text: string, widthMax: number): string {
  if (stringWidth(text) <= widthMax) return text
  let kept = ''
  let width = 0
  for (const { segment } of characters.segment(text)) {
    width += stringWidth(segment)
    if (width >= widthMax) break
    kept += segment
  }
  return `${kept}…`
}
