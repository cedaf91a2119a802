// What takes long is listed while it runs, with how far it is, and no longer.
import { expect, test } from 'bun:test'
import { createRunningWork } from '../../src/scheduling/running-work.ts'
import { rejectionOf } from '../support/rejection.ts'

test('work is listed with its progress until it ends, and anyone who asked for it sees the progress too', async () => {
  const work = createRunningWork(() => 7)
  const gate = Promise.withResolvers<void>()
  const seen: number[] = []
  const running = work.watch(
    'archive.run',
    async (onProgress) => {
      onProgress(5, 10)
      await gate.promise
      return 'done'
    },
    (done) => seen.push(done),
  )
  expect([work.list(), seen]).toEqual([[{ name: 'archive.run', startedAt: 7, done: 5, total: 10 }], [5]])
  gate.resolve()
  expect([await running, work.list()]).toEqual(['done', []])
})

test('work that fails, or that is ended by who asked for it, is listed no longer', async () => {
  const work = createRunningWork(() => 7)
  const gone = new Error('gone')
  const failing = work.watch(
    'usage.list',
    async (onProgress) => onProgress(1, 2),
    () => {
      throw gone
    },
  )
  expect([await rejectionOf(failing), work.list()]).toEqual([gone as never, []])
})
