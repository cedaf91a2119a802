import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { chooseByAffinity, chooseLessBusy } from '../../../src/inference/queue/balance.ts'

const hash = (text: string) => createHash('sha256').update(text).digest().readUInt32BE() / 2 ** 32
const candidate = (id: string, running = 0, weight = 1) => ({ id, running, weight })
/** Returns these numbers in turn. */
const numbers =
  (...values: number[]) =>
  () =>
    values.shift() ?? 0

describe('without affinity', () => {
  test('the less busy one of two is chosen', () => {
    expect(chooseLessBusy([candidate('a', 3), candidate('b', 2)], numbers(0, 0)).id).toBe('b')
    expect(chooseLessBusy([candidate('a', 3), candidate('b', 2)], numbers(0.9, 0)).id).toBe('b')
  })

  test('a server with twice the weight takes twice as many', () => {
    expect(chooseLessBusy([candidate('a', 1), candidate('b', 2, 2)], numbers(0, 0)).id).toBe('b')
  })

  test('equals share by chance', () => {
    const equals = [candidate('a'), candidate('b')]
    expect([0, 0.9].map((first) => chooseLessBusy(equals, numbers(first, 0)).id)).toEqual(['a', 'b'])
  })

  test('two different ones are compared, never one with itself', () => {
    const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 6 }), unit, unit, (count, one, other) => {
        const busy = Array.from({ length: count }, (_, at) => candidate(String(at), at))
        expect(chooseLessBusy(busy, numbers(one, other)).id).not.toBe(String(count - 1))
      }),
    )
  })

  test('a single one is chosen', () => {
    expect(chooseLessBusy([candidate('a', 9)], numbers(0.5, 0.5)).id).toBe('a')
  })
})

describe('with affinity', () => {
  const three = ['a', 'b', 'c'].map((id) => candidate(id))
  const keys = Array.from({ length: 300 }, (_, at) => `session ${at}`)

  test('a key keeps its server', () => {
    for (const key of keys)
      expect(chooseByAffinity(three.toReversed(), key, hash)).toBe(chooseByAffinity(three, key, hash))
  })

  test('a server that leaves moves only its own keys', () => {
    const before = keys.map((key) => chooseByAffinity(three, key, hash).id)
    const after = keys.map((key) => chooseByAffinity(three.slice(0, 2), key, hash).id)
    expect(before.filter((id, at) => id !== 'c' && id !== after[at])).toEqual([])
    expect(new Set(before).size).toBe(3)
  })

  test('keys spread by weight', () => {
    const weighted = [candidate('a'), candidate('b', 0, 3)]
    const at = keys.filter(
      (key) =>
        chooseByAffinity(
          weighted.map((each) => ({ ...each, running: 100 * each.weight })),
          key,
          hash,
        ).id === 'b',
    )
    expect(at.length).toBeGreaterThan(keys.length * 0.65)
    expect(at.length).toBeLessThan(keys.length * 0.85)
  })

  test('no server gets more than 1.25 times the mean, rounded up', () => {
    const loads = new Map(three.map(({ id }) => [id, 0]))
    for (let each = 1; each <= 100; each += 1) {
      const candidates = three.map(({ id }) => candidate(id, loads.get(id)))
      const { id } = chooseByAffinity(candidates, 'one session', hash)
      loads.set(id, (loads.get(id) ?? 0) + 1)
      expect(Math.max(...loads.values())).toBeLessThanOrEqual(Math.ceil((1.25 * each) / 3))
    }
  })
})
