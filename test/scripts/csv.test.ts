// A CSV file must not run formulas in a spreadsheet, whichever separator it uses.
import { expect, test } from 'bun:test'
import { csv } from '../../scripts/shared/render.ts'

test('text that would be a formula gets a quote before it, at each start of a cell', () => {
  for (const before of ['', 'a;', 'a,', 'a\t', 'a\n', 'a\r\n', 'a; ', 'a;"', 'a;";"'])
    for (const start of ['=', '+', '-', '@', '＝']) {
      const text = `${before}${start}1+1`
      const [, ...cell] = csv([{ text }]).split('\n')
      expect(cell.join('\n').replaceAll('""', '"')).not.toMatch(/(?:^|[,;\t\r\n])[\s"]*[=+\-@＝]/)
    }
})

test('numbers and other text stay as they are', () => {
  const row = { number: -1.5, none: null, text: 'a-b=c', model: 'meta/llama-3', quoted: 'say "x"' }
  expect(csv([row])).toBe('number,none,text,model,quoted\n-1.5,,a-b=c,meta/llama-3,"say ""x"""')
})
