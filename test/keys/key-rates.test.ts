// Requests and tokens a minute of one key: at once up to the bound, then as fast as the bucket refills.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createKeyRates, type KeyRates } from '../../src/keys/key-rates.ts'

const key = (requestsPerMinute: number | null, tokensPerMinute: number | null, id = 'k') => ({
  id,
  requestsPerMinute,
  tokensPerMinute,
  createdAt: 0,
})

test('a key without bounds is never held up', () => {
  const rates = createKeyRates()
  for (let count = 0; count < 1_000; count++) expect(rates.take(key(null, null), 0)).toBe(0)
})

test('requests pass up to the bound at once, and then as the minute goes on; each key for itself', () => {
  const rates = createKeyRates()
  expect([1, 2, 3].map(() => rates.take(key(2, null), 0))).toEqual([0, 0, 30])
  expect(rates.take(key(2, null, 'other'), 0)).toBe(0)
  expect(rates.take(key(2, null), 29_000)).toBe(1)
  expect(rates.take(key(2, null), 30_000)).toBe(0)
  expect(rates.take(key(2, null), 30_000)).toBe(30)
})

test('a request that is refused takes nothing', () => {
  const rates = createKeyRates()
  rates.take(key(1, null), 0)
  for (let second = 0; second < 59; second++) expect(rates.take(key(1, null), second * 1_000)).toBeGreaterThan(0)
  expect(rates.take(key(1, null), 60_000)).toBe(0)
})

test('tokens that an answer used beyond the bound hold the key up until all of them are earned', () => {
  const rates = createKeyRates()
  expect(rates.take(key(null, 1_000), 0)).toBe(0)
  rates.use('k', 200_000, 0)
  expect(rates.take(key(null, 1_000), 0)).toBe(199 * 60 + 1)
  for (let minute = 1; minute < 199; minute++)
    expect(rates.take(key(null, 1_000), minute * 60_000)).toBe((199 - minute) * 60 + 1)
  rates.use('k', 1_000, 198 * 60_000)
  expect(rates.take(key(null, 1_000), 200 * 60_000)).toBe(1)
  expect(rates.take(key(null, 1_000), 200 * 60_000 + 1_000)).toBe(0)
})

test('a changed bound forgives the tokens that are owed, for this key alone', () => {
  for (const changed of [900, 2_000]) {
    const rates = createKeyRates()
    for (const id of ['k', 'other']) {
      rates.take(key(null, 1_000, id), 0)
      rates.use(id, 1_000_000_000, 0)
    }
    expect(rates.take(key(null, changed), 0)).toBe(changed > 1_000 ? 0 : 1)
    expect(rates.take(key(null, 1_000, 'other'), 0)).toBeGreaterThan(50_000_000)
  }
})

test('a raised bound counts at once', () => {
  const rates = createKeyRates()
  expect([rates.take(key(1, null), 0), rates.take(key(1, null), 0)]).toEqual([0, 60])
  expect(rates.take(key(100, null), 0)).toBe(0)
})

test('a lowered bound counts at once, and asks for a minute at most, whatever was used under the higher one', () => {
  for (const used of [0, 1, 300, 599, 600]) {
    const rates = createKeyRates()
    for (let count = 0; count < used; count++) expect(rates.take(key(600, null), 0)).toBe(0)
    const passed = [1, 2, 3, 4, 5, 6, 7].filter(() => rates.take(key(6, null), 0) === 0).length
    expect(passed).toBe(Math.min(6, 600 - used))
    expect(rates.take(key(6, null), 0)).toBe(10)
  }
})

describe('of several nodes', () => {
  const minute = 60_000
  const startNode = (since: number): KeyRates =>
    createKeyRates([], { liveNodes: () => nodes.length, since, newestKeyAt: since - 1 })
  let nodes: KeyRates[] = []

  /** How many requests of a limit pass between two times, when each node gets more than it admits. */
  function admit(perMinute: number, from: number, until: number): number {
    let admitted = 0
    for (let now = from; now < until; now += 50)
      for (const node of nodes) while (node.take(key(perMinute, null), now) === 0) admitted += 1
    return admitted
  }

  for (const perMinute of [20, 60, 600])
    test(`${perMinute} a minute pass, also while nodes join and leave`, () => {
      nodes = []
      for (let count = 1; count <= 3; count++) nodes.push(startNode(-minute))
      expect(admit(perMinute, 0, 50)).toBeWithin(0.9 * perMinute, 1.1 * perMinute + 2)
      expect(admit(perMinute, 50, minute)).toBeWithin(0.9 * perMinute - 1, 1.1 * perMinute)
      nodes.pop()
      nodes.push(startNode(minute))
      expect(admit(perMinute, minute, 2 * minute)).toBeWithin(0.9 * perMinute - 1, 1.1 * perMinute + 1)
      nodes.push(startNode(2 * minute))
      expect(admit(perMinute, 2 * minute, 3 * minute)).toBeWithin(0.9 * perMinute - 1, 1.1 * perMinute + 1)
      nodes.splice(1)
      expect(admit(perMinute, 3 * minute, 4 * minute)).toBeWithin(0.9 * perMinute - 1, 1.1 * perMinute + 1)
    })

  test('20 a minute pass at three nodes in each minute within a tenth, and over ten minutes exactly', () => {
    nodes = []
    for (let count = 1; count <= 3; count++) nodes.push(startNode(-minute))
    const minutes = Array.from({ length: 10 }, (_, index) => admit(20, index * minute, (index + 1) * minute))
    const [first = 0, ...later] = minutes
    expect(first).toBeWithin(20 + 18, 20 + 22 + 1)
    for (const admitted of later) expect(admitted).toBeWithin(18, 22 + 1)
    expect(minutes.reduce((sum, count) => sum + count, 0)).toBeWithin(11 * 20 - 2, 11 * 20 + 3)
  })

  test('a limit keeps its speed when requests come to nodes in turn, one by one, and wait as they are asked to', () => {
    nodes = []
    for (let count = 1; count <= 3; count++) nodes.push(startNode(-minute))
    admit(20, 0, 1)
    let admitted = 0
    for (let now = 0, index = 0; now < 10 * minute; index++) {
      const seconds = nodes[index % 3]?.take(key(20, null), now) ?? 0
      if (seconds === 0) admitted += 1
      now += seconds * 1_000
    }
    expect(admitted).toBeWithin(10 * 20 * 0.98, 10 * 20 * 1.02)
  })

  test('a limit below the number of nodes holds after the first requests', () => {
    nodes = []
    for (let count = 1; count <= 3; count++) nodes.push(startNode(-minute))
    expect(admit(1, 0, 50)).toBe(3)
    expect(admit(1, 50, 30 * minute)).toBeWithin(27, 33)
  })

  test('a key that is new gets its whole part at a node that has just joined', () => {
    nodes = []
    nodes.push(startNode(-minute), startNode(-1))
    expect(admit(20, 0, 50)).toBe(20)
  })

  test('tokens that a node used are earned at the speed of its part', () => {
    nodes = []
    nodes.push(startNode(-minute), startNode(-minute))
    const [node] = nodes
    expect(node?.take(key(null, 120), 0)).toBe(0)
    node?.use('k', 60, 0)
    expect(node?.take(key(null, 120), 0)).toBe(1)
    nodes.pop()
    node?.use('k', 100, 1_000)
    expect(node?.take(key(null, 120), 1_000)).toBe(50)
  })

  test('a raised bound admits the difference once, whatever the number of nodes', () => {
    nodes = []
    nodes.push(startNode(-minute), startNode(-minute))
    expect(admit(10, 0, 50)).toBe(10)
    expect(admit(20, 50, 100)).toBe(10)
  })

  test('a bound that the nodes do not divide never admits more than itself at once', () => {
    nodes = []
    for (let count = 1; count <= 3; count++) nodes.push(startNode(-minute))
    expect(admit(19, 0, 50)).toBe(18)
  })
})

test('no sequence of bounds and requests asks for more than a minute, and a wait that is kept suffices, however long', () => {
  const perMinute = fc.option(fc.constantFrom(1, 2, 6, 60, 600, 1_000_000_000), { nil: null })
  const step = fc.record({ requests: perMinute, tokens: perMinute, used: fc.nat(1_000_000), seconds: fc.nat(90) })
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const rates = createKeyRates()
      let now = 0
      for (const { requests, tokens, used, seconds } of steps) {
        now += seconds * 1_000
        expect(rates.take(key(requests, null, 'of requests'), now)).toBeWithin(0, 61)
        const wait = rates.take(key(null, tokens), now)
        expect(wait === 0 ? 0 : rates.take(key(null, tokens), now + wait * 1_000)).toBe(0)
        now += wait * 1_000
        rates.use('k', used, now)
      }
    }),
    {
      examples: [
        [
          [
            { requests: null, tokens: 2, used: 465_013, seconds: 0 },
            { requests: null, tokens: null, used: 94_231, seconds: 3 },
            { requests: null, tokens: 2, used: 0, seconds: 50 },
          ],
        ],
      ],
    },
  )
})
