import { describe, expect, test } from 'bun:test'
import { createCircuits } from '../../../src/inference/queue/circuit.ts'

const [gpu, cpu] = [{ name: 'gpu' }, { name: 'cpu' }]
/** With the longest rest that chance allows. */
const circuits = () => createCircuits(() => 1 - 2 ** -53)
const failing = (times: number, now = 0) => {
  const created = circuits()
  for (let each = 0; each < times; each += 1) created.noteFailure(gpu, false, now)
  return created
}

describe('a server', () => {
  test('rests after three failures in a row, and not after two', () => {
    expect(failing(2).admits(gpu, 'm', 0)).toBe(true)
    expect(failing(3).admits(gpu, 'm', 0)).toBe(false)
    expect(failing(3).admits(cpu, 'm', 0)).toBe(true)
  })

  test('does not rest when a success lies between', () => {
    const created = failing(2)
    created.noteSuccess(gpu)
    created.noteFailure(gpu, false, 0)
    expect(created.admits(gpu, 'm', 0)).toBe(true)
  })

  test('admits one trial after its rest, and all after its success', () => {
    const created = failing(3)
    expect(created.admits(gpu, 'm', 999)).toBe(false)
    expect(created.rests(gpu, 'm', 1_000)).toBe(false)
    expect([1_000, 1_000, 1_001].map((now) => created.admits(gpu, 'm', now))).toEqual([true, false, false])
    created.noteSuccess(gpu)
    expect([1_002, 1_002].map((now) => created.admits(gpu, 'm', now))).toEqual([true, true])
  })

  test('rests 1, 2, 4 … 30 s when its trials fail', () => {
    const created = failing(3)
    const rests = [1, 2, 4, 8, 16, 30, 30].map((seconds) => seconds * 1_000)
    let now = 0
    for (const rest of rests) {
      expect(created.admits(gpu, 'm', now + rest - 1)).toBe(false)
      now += rest
      expect(created.admits(gpu, 'm', now)).toBe(true)
      created.noteFailure(gpu, false, now)
    }
  })

  test('rests no longer when requests fail that began before', () => {
    const created = failing(9)
    expect(created.admits(gpu, 'm', 1_000)).toBe(true)
  })

  test('gives another trial when the outcome of one never comes', () => {
    const created = failing(3)
    expect(created.admits(gpu, 'm', 1_000)).toBe(true)
    expect(created.admits(gpu, 'm', 1_999)).toBe(false)
    expect(created.admits(gpu, 'm', 2_000)).toBe(true)
  })

  test('rests at least half as long, by chance', () => {
    const created = createCircuits(() => 0)
    for (let each = 0; each < 3; each += 1) created.noteFailure(gpu, false, 0)
    expect(created.admits(gpu, 'm', 499)).toBe(false)
    expect(created.admits(gpu, 'm', 500)).toBe(true)
  })

  test('is unknown again when nobody has tried it for a minute', () => {
    const created = failing(3)
    expect([61_000, 61_001].map((now) => created.list(gpu, now).length)).toEqual([1, 0])
    const almost = failing(2)
    almost.noteFailure(gpu, false, 60_001)
    expect(almost.admits(gpu, 'm', 60_001)).toBe(true)
  })

  test('that was edited is another one', () => {
    expect(failing(3).admits({ ...gpu }, 'm', 0)).toBe(true)
  })
})

describe('a model with too many requests', () => {
  test('rests alone, for as long as the server says', () => {
    const created = circuits()
    created.noteLimited(gpu, 'm', 5_000, 0)
    expect([created.admits(gpu, 'm', 4_999), created.admits(gpu, 'other', 4_999)]).toEqual([false, true])
    expect(created.admits(gpu, 'm', 5_000)).toBe(true)
  })

  test('rests no longer than 30 s', () => {
    const created = circuits()
    created.noteLimited(gpu, 'm', 3_600_000, 0)
    expect(created.admits(gpu, 'm', 30_000)).toBe(true)
  })
})

test('names of models that no longer rest make room for others', () => {
  const created = circuits()
  for (let each = 0; each < 1_000; each += 1) created.noteLimited(gpu, `made up ${each}`, 1_000, 0)
  created.noteLimited(gpu, 'm', 5_000, 2_000)
  expect(created.admits(gpu, 'm', 3_000)).toBe(false)
})

test('the list has what rests, the server before its models', () => {
  const created = failing(3, 7)
  created.noteLimited(gpu, 'm', 5_000, 2)
  created.noteLimited(gpu, 'n', 5_000, 2)
  expect(created.list(gpu, 5_001)).toEqual([
    { model: undefined, since: 7, until: expect.any(Number) },
    { model: 'm', since: 2, until: 5_002 },
    { model: 'n', since: 2, until: 5_002 },
  ])
  expect(created.list(gpu, 5_002)).toHaveLength(1)
  expect(created.list(cpu, 0)).toEqual([])
})

test('a server remembers a thousand models that rest, and takes others once some no longer do', () => {
  const created = circuits()
  for (let model = 0; model < 1_000; model += 1) created.noteLimited(gpu, `m${model}`, 1_000, 0)
  created.noteLimited(gpu, 'late', 1_000, 0)
  expect([created.rests(gpu, 'm999', 0), created.rests(gpu, 'late', 0)]).toEqual([true, false])
  created.noteLimited(gpu, 'late', 1_000, 1_000)
  expect([created.rests(gpu, 'm999', 1_000), created.rests(gpu, 'late', 1_000)]).toEqual([false, true])
})
