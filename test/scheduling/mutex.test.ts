// Who waits for whom: exclusive work runs alone, and shared work runs together with the shared work queued directly before it.
import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { createMutex } from '../../src/scheduling/mutex.ts'

test('shared work runs together, and exclusive work between it runs alone, in the order of the queue', async () => {
  const { runExclusive, runShared } = createMutex()
  const events: string[] = []
  const gates = new Map(['a', 'b', 'c', 'd'].map((name) => [name, Promise.withResolvers<void>()]))
  const work = (name: string) => async () => {
    events.push(`${name} starts`)
    await gates.get(name)?.promise
    events.push(`${name} ends`)
  }
  const all = [runShared(work('a')), runShared(work('b')), runExclusive(work('c')), runShared(work('d'))]
  gates.get('d')?.resolve()
  gates.get('b')?.resolve()
  await all[1]
  expect(events).toEqual(['a starts', 'b starts', 'b ends'])
  gates.get('a')?.resolve()
  gates.get('c')?.resolve()
  await Promise.all(all)
  expect(events.slice(3)).toEqual(['a ends', 'c starts', 'c ends', 'd starts', 'd ends'])
})

test('work that fails does not hold up the work after it', async () => {
  const { runExclusive, runShared } = createMutex()
  const fail = () => Promise.reject(new Error('failed'))
  const outcomes = await Promise.allSettled([runShared(fail), runExclusive(fail), runShared(async () => 'done')])
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled'])
})

/** Promises that are reachable now. */
function countPromises(): number {
  Bun.gc(true)
  return heapStats().objectTypeCounts.Promise ?? 0
}

test('nothing is kept of shared work that has ended while other shared work runs on', async () => {
  const { runExclusive, runShared } = createMutex()
  const gate = Promise.withResolvers<void>()
  const long = runShared(() => gate.promise)
  const before = countPromises()
  for (let done = 0; done < 5_000; done++) await runShared(async () => done)
  expect(countPromises() - before).toBeLessThan(500)
  gate.resolve()
  await long
  expect(await runExclusive(async () => 'next')).toBe('next')
})
