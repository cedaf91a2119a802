// Queues by name: one at a time in each, few wait, and a place is free again when its work has ended, however it ended.
import { expect, test } from 'bun:test'
import { createQueues } from '../../src/scheduling/queues.ts'

test('work of one name runs in order, work of another beside it, and what does not fit does not run', async () => {
  const run = createQueues(2)
  const gate = Promise.withResolvers<void>()
  const seen: string[] = []
  const note = (text: string) => async () => void seen.push(text)
  const first = run('one', async () => {
    await gate.promise
    seen.push('first')
    throw new Error('failed')
  })
  const second = run('one', note('second'))
  expect(run('one', note('third'))).toBeUndefined()
  await run('other', note('other'))
  expect(seen).toEqual(['other'])
  gate.resolve()
  await expect(first).rejects.toThrow('failed')
  await run('one', note('fourth'))
  await second
  expect(seen).toEqual(['other', 'first', 'second', 'fourth'])
  await Promise.all([run('one', note('fifth')), run('one', note('sixth'))])
  expect(seen.slice(4)).toEqual(['fifth', 'sixth'])
})
