// Numbers as people of several languages write them: each is read as the number that they mean, or refused with how to write it.
import { expect, test } from 'bun:test'
import fc from 'fast-check'

// Not a path that TypeScript follows: the page has its own types.
const { numberOf, numberProblem } = (await import(`${import.meta.dirname}/../../src/page/assets/number.js`)) as {
  numberOf: (text: string) => number | string | null
  numberProblem: (text: string) => string | undefined
}

/** Whole thousands too, which look like decimals to others. */
const amounts = fc.oneof(
  fc.integer({ min: 0, max: 1e9 }).map((cents) => cents / 100),
  fc.nat({ max: 1e6 }),
)

test.each(['en-US', 'de-DE', 'fr-FR', 'de-CH', 'sv-SE'])(
  'what %s writes is that number, or says how to write it',
  (locale) => {
    fc.assert(
      fc.property(amounts, fc.boolean(), fc.constantFrom(0, 2), (amount, useGrouping, minimumFractionDigits) => {
        const typed = amount.toLocaleString(locale, { useGrouping, minimumFractionDigits, maximumFractionDigits: 3 })
        // Of a text that means two numbers, both are named.
        const problem = numberProblem(typed) ?? `write ${numberOf(typed)}`
        const [, ...advised] = /write ([\d.]+)(?: or ([\d.]+))?$/.exec(problem) ?? []
        expect({ typed, problem, isMeant: advised.map(Number).includes(amount) }).toEqual({
          typed,
          problem,
          isMeant: true,
        })
      }),
    )
  },
)
