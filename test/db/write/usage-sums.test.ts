// The totals of a commit: each row counts once, in the total of its own key, policy, attribution, model and time.
import { expect, test } from 'bun:test'
import type { InValue } from '@libsql/client'
import fc from 'fast-check'
import type { UsageRow } from '../../../db/schema/record-schema.ts'
import { usageSums } from '../../../db/write/usage-sums.ts'

const hour = 3_600_000
const text = fc.constantFrom('', 'a', 'b', 'ab', 'a b', ' ', '1')
const rows = fc.array(
  fc.record({
    at: fc.constantFrom(0, 1, hour, 24 * hour),
    keyId: fc.constantFrom('key_1', 'key_2'),
    policyId: fc.constantFrom(null, 'policy_1'),
    attribution: fc.option(text),
    model: fc.option(text),
    promptTokens: fc.option(fc.nat(9)),
    completionTokens: fc.option(fc.nat(9)),
    totalTokens: fc.option(fc.constantFrom(1, 20, Number.MAX_SAFE_INTEGER)),
    costNanodollars: fc.option(fc.constantFrom(1, 300, Number.MAX_SAFE_INTEGER)),
  }),
  { minLength: 1 },
)
type SummedRow = typeof rows extends fc.Arbitrary<(infer Row)[]> ? Row : never

const amount = (values: (number | null)[]) =>
  Math.min(
    values.reduce<number>((sum, value) => sum + (value ?? 0), 0),
    Number.MAX_SAFE_INTEGER,
  )

/** The values of each total, by names that no two totals share. */
function expected(
  given: SummedRow[],
  names: (row: SummedRow) => InValue[],
  sums: (some: SummedRow[]) => number[],
): InValue[] {
  const groups = Map.groupBy(given, (row) => JSON.stringify(names(row)))
  return [...groups].flatMap(([name, some]) => [...(JSON.parse(name) as InValue[]), some.length, ...sums(some)])
}

test('totals are those of the rows, and rows that differ in one name have two', () => {
  fc.assert(
    fc.property(rows, (given) => {
      const [days, hours] = usageSums(given as unknown as UsageRow[])
      const costOf = (some: SummedRow[]) => amount(some.map((row) => row.costNanodollars))
      const totalOf = (some: SummedRow[]) => amount(some.map((row) => row.totalTokens))
      expect(days?.args).toEqual(
        expected(
          given,
          ({ keyId, at }) => [keyId, Math.floor(at / hour / 24)],
          (some) => [
            amount(some.map((row) => row.promptTokens)),
            amount(some.map((row) => row.completionTokens)),
            totalOf(some),
            costOf(some),
          ],
        ),
      )
      expect(hours?.args).toEqual(
        expected(
          given,
          ({ at, keyId, policyId, attribution, model }) => [
            Math.floor(at / hour),
            keyId,
            policyId ?? '',
            attribution ?? '',
            model ?? '',
          ],
          (some) => [totalOf(some), costOf(some)],
        ),
      )
    }),
  )
})
