// Tables: one line a row, aligned by what a terminal makes of the characters, no wider than the terminal, in color only where it is welcome.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import stringWidth from 'string-width'
import { printable } from '../../../scripts/shared/render.ts'
import { type Column, table } from '../../../scripts/shared/table.ts'
import { stateTone, type Terminal } from '../../../scripts/shared/terminal.ts'

type Row = { one: string; two: string; three: string }
const columns: Column<Row>[] = [
  ['ONE', (row) => row.one],
  ['TWO', (row) => row.two],
  ['THREE', (row) => row.three],
]
const anyText = fc.string({ unit: 'binary', maxLength: 40 })
const anyRows = fc.array(fc.record({ one: anyText, two: anyText, three: anyText }), { minLength: 1, maxLength: 5 })
const id = '0b6f3a52-7c1d-4e8f-9a2b-3c4d5e6f7a8b'

const file: Terminal = { columns: undefined, hasColor: false }
const draw = (rows: Row[], terminal: Partial<Terminal> = {}) =>
  table(rows, columns, 'none', { ...file, ...terminal }).split('\n')
/** The columns that a text begins at, as a terminal counts. */
const startOf = (line = '', text: string) => stringWidth(line.slice(0, line.indexOf(text)))

describe('a table in a file', () => {
  test('has one line a row, its columns aligned, whatever the cells hold', () => {
    fc.assert(
      fc.property(anyRows, (rows) => {
        const [heading = '', ...lines] = draw(rows)
        expect(lines).toHaveLength(rows.length)
        const [two, three] = [startOf(heading, 'TWO'), startOf(heading, 'THREE')]
        const padded = (text: string, width: number) => text + ' '.repeat(width - stringWidth(text))
        for (const [index, row] of rows.entries()) {
          const cells = [row.one, row.two, row.three].map(printable)
          if (cells.some((cell) => stringWidth(cell) > 72)) continue
          const expected = padded(padded(cells[0] ?? '', two) + cells[1], three) + cells[2]
          expect(lines[index]).toBe(expected.trimEnd())
        }
      }),
    )
  })

  test('aligns what follows characters that are two columns wide', () => {
    for (const wide of ['日本語', '한글', '🔑', '👩🏽', '🇩🇪', 'ＦＵＬＬ', 'e\u0301']) {
      const [heading, line] = draw([{ one: wide, two: 'here', three: '' }])
      expect(startOf(line, 'here')).toBe(startOf(heading, 'TWO'))
    }
  })

  test('cuts a cell that would push the others away, and never within a character', () => {
    const rows = [
      { one: '🔑'.repeat(100), two: 'here', three: '' },
      { one: 'x'.repeat(72), two: 'here', three: '' },
    ]
    const [, cut = '', whole = ''] = draw(rows)
    expect(cut).toMatch(/^(🔑){35}… {3}here$/u)
    expect(whole).toBe(`${'x'.repeat(72)}  here`)
  })

  test('without rows is the sentence', () => expect(draw([])).toEqual(['none']))
})

describe('a table on a terminal', () => {
  test('is never wider than it, whatever the cells hold', () => {
    fc.assert(
      fc.property(anyRows, fc.integer({ min: 8, max: 100 }), (rows, width) => {
        const lines = draw(rows, { columns: width })
        for (const line of lines.slice(0, rows.length + 1)) expect(stringWidth(line)).toBeLessThanOrEqual(width)
      }),
    )
  })

  test('shows everything where there is room', () => {
    const rows = [{ one: 'x'.repeat(30), two: 'y'.repeat(30), three: id }]
    expect(draw(rows, { columns: 100 })).toEqual(draw(rows))
  })

  test('takes from the widest column of text first, and leaves ids whole', () => {
    const [, line] = draw([{ one: 'short', two: 'y'.repeat(60), three: id }], { columns: 80 })
    expect(line).toBe(`short  ${'y'.repeat(34)}…  ${id}`)
  })

  for (const whole of [id, '2026-11-21 09:30:00', '123456789012345678901234567890'])
    test(`leaves out the last column rather than cut ${whole}, and says so`, () => {
      const lines = draw([{ one: 'a name', two: 'another', three: whole }], { columns: 22 })
      expect(lines[1]).toBe('a name  another')
      expect(lines[2]).toMatch(/^Too wide to show: THREE; .*--json$/)
    })

  test('always has the first column', () => {
    expect(draw([{ one: id, two: id, three: id }], { columns: 10 })[1]).toBe(`${id.slice(0, 9)}…`)
  })
})

describe('color', () => {
  const states: Column<{ name: string; state: string }>[] = [
    ['NAME', (row) => row.name],
    ['STATE', (row) => row.state, stateTone],
  ]
  const rows = [
    { name: 'disabled', state: 'enabled' },
    { name: 'app', state: 'disabled' },
  ]
  test('can depend on what a row has beside the cell', () => {
    const named: Column<(typeof rows)[number]>[] = [['NAME', (row) => row.name, (_, { state }) => stateTone(state)]]
    const [, one, two] = table(rows, named, '', { columns: 80, hasColor: true }).split('\n')
    expect([one, two]).toEqual(['\u001b[32mdisabled\u001b[0m', '\u001b[31mapp\u001b[0m'])
  })

  test('is for headings and states, and moves nothing', () => {
    const plain = table(rows, states, '', { columns: 80, hasColor: false })
    const colored = table(rows, states, '', { columns: 80, hasColor: true })
    expect(plain).not.toContain('\u001b')
    expect(Bun.stripANSI(colored)).toBe(plain)
    const [heading, one, two] = colored.split('\n')
    expect(heading).toContain('\u001b[1mSTATE\u001b[0m')
    expect(one).toBe('disabled  \u001b[32menabled\u001b[0m')
    expect(two).toEndWith('\u001b[31mdisabled\u001b[0m')
  })
})
