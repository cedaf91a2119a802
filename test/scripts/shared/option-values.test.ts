// Values of options: what is refused, with a rule that the value breaks.
import { expect, test } from 'bun:test'
import { wholeNumber } from '../../../scripts/shared/option-values.ts'

test('a whole number is 0 or more, which a refusal says', () => {
  expect(['0', '7', '999999999'].map(wholeNumber)).toEqual([0, 7, 999_999_999])
  for (const text of ['-1', '1.5', '', '1e3', '+1', '1000000000'])
    expect(() => wholeNumber(text)).toThrow('use a whole number, 0 or more')
})
