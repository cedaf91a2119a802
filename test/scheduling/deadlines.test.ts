// Deadlines share one timer: each is met once unless it is cleared, in order of length and time.
import { expect, test } from 'bun:test'
import { clearDeadline, type Deadline, setDeadline } from '../../src/scheduling/deadlines.ts'

/** Resolves once a deadline of this length is met, as are all that were set before with the same length. */
const pass = (milliseconds: number) => new Promise<void>((resolve) => setDeadline(milliseconds, resolve))

test('deadlines of one length are met in the order in which they were set', async () => {
  const met: number[] = []
  for (const each of [1, 2, 3]) setDeadline(1, () => met.push(each))
  await pass(1)
  expect(met).toEqual([1, 2, 3])
})

test('a longer deadline does not hold up a shorter one that was set later', async () => {
  let isLongMet = false
  const long = setDeadline(3_600_000, () => {
    isLongMet = true
  })
  await pass(1)
  expect(isLongMet).toBe(false)
  clearDeadline(long)
})

test.each([
  ['first', 0],
  ['middle', 1],
  ['last', 2],
])('a cleared deadline is not met, the others are: the %s of three', async (_, cleared) => {
  const met: number[] = []
  const deadlines = [0, 1, 2].map((each) => setDeadline(1, () => met.push(each)))
  clearDeadline(deadlines[cleared] as Deadline)
  await pass(1)
  expect(met).toEqual([0, 1, 2].filter((each) => each !== cleared))
})

test('clearing a deadline twice, or after it was met, changes nothing for others', async () => {
  const met: string[] = []
  const first = setDeadline(1, () => met.push('first'))
  const second = setDeadline(1, () => met.push('second'))
  clearDeadline(first)
  clearDeadline(first)
  await pass(1)
  clearDeadline(second)
  setDeadline(1, () => met.push('third'))
  clearDeadline(second)
  await pass(1)
  expect(met).toEqual(['second', 'third'])
})

test('one that is set while others are met is met too', async () => {
  const met: string[] = []
  await new Promise<void>((resolve) => {
    setDeadline(1, () => {
      met.push('outer')
      setDeadline(1, () => {
        met.push('inner')
        resolve()
      })
    })
  })
  expect(met).toEqual(['outer', 'inner'])
})

test('a deadline that clears the next one keeps it from being met', async () => {
  const met: string[] = []
  let next: Deadline | undefined
  setDeadline(1, () => {
    met.push('first')
    if (next !== undefined) clearDeadline(next)
  })
  next = setDeadline(1, () => met.push('second'))
  await pass(1)
  expect(met).toEqual(['first'])
})
