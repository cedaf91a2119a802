// A CSV file must not run formulas in a spreadsheet, whichever separator it uses. The command and the page write the same cells.
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { csv } from '../../scripts/shared/render.ts'

/** The page's function, which its module keeps to itself beside what only a browser can load. */
const ofPage = /^function cell\(value\) \{\n.*?^\}$/ms.exec(
  readFileSync(join(import.meta.dir, '../../src/page/assets/export.js'), 'utf8'),
)?.[0]
const cellOfPage = new Function(`${ofPage}; return cell`)() as (value: unknown) => string
const cellOfCommand = (value: unknown) => csv([{ value }]).slice('value\n'.length)

for (const [writer, cell] of Object.entries({ command: cellOfCommand, page: cellOfPage })) {
  test(`${writer}: text that would be a formula gets a quote before it, at each start of a cell`, () => {
    for (const before of ['', ' ', 'a;', 'a,', 'a\t', 'a\n', 'a\r\n', 'a; ', 'a;"', 'a;";"'])
      for (const start of ['=', '+', '-', '@', '＝', '＋', '－', '＠']) {
        const shown = cell(`${before}${start}1+1`)
        expect(shown.replaceAll('""', '"')).not.toMatch(/(?:^|[,;\t\r\n])[\s"]*[=+\-@＝＋－＠]/)
        expect(shown).toContain(`'${start}1+1`)
      }
  })

  test(`${writer}: numbers and other text stay as they are`, () => {
    const values = [-1.5, null, 'a-b=c', 'meta/llama-3', 'say "x"']
    expect(values.map(cell)).toEqual(['-1.5', '', 'a-b=c', 'meta/llama-3', '"say ""x"""'])
  })
}

test('a CSV file begins with the names', () => {
  expect(csv([{ one: 1, two: null }])).toBe('one,two\n1,')
})
