// Counters, histograms and the bounds of their labels, and their text as Prometheus reads it.
import { describe, expect, test } from 'bun:test'
import { familyText } from '../../src/observe/prometheus-text.ts'
import { createBusiest, createCounter, createHistogram, createLabelBound } from '../../src/observe/series.ts'

const seriesMax = 10_000
const wording = { nameOf: (_label: string, value: string) => value, pace: () => undefined }

describe('a counter', () => {
  test('has a series for each combination of labels', () => {
    const counter = createCounter({ labels: ['one', 'two'] })
    counter.add(1, 'a', 'b')
    counter.add(2, 'a', 'b')
    counter.add(5, 'a', 'c')
    expect(counter.samples()).toEqual([
      { labels: ['a', 'b'], value: 3 },
      { labels: ['a', 'c'], value: 5 },
    ])
  })

  test('counts what is past its bound as other, and loses nothing', () => {
    const counter = createCounter({ labels: ['one', 'two'] })
    for (let index = 0; index < seriesMax + 500; index++) counter.add(1, `label ${index}`, 'x')
    const samples = counter.samples()
    expect(samples).toHaveLength(seriesMax + 1)
    expect(samples.at(-1)).toEqual({ labels: ['other', 'other'], value: 500 })
    counter.add(1, 'label 0', 'x')
    expect(counter.samples()[0]?.value).toBe(2)
  })
})

test('a histogram counts a value in every bucket that is at least as large', async () => {
  const histogram = createHistogram({ labels: ['l'], buckets: [1, 5] })
  for (const value of [0.5, 1, 3, 9]) histogram.observe(value, 'a')
  const family = { name: 'h', type: 'histogram', help: 'H.', labels: ['l'] } as const
  const text = await familyText(family, histogram.samples(), wording)
  expect(text).toBe(
    [
      '# HELP h H.',
      '# TYPE h histogram',
      'h_bucket{l="a",le="1"} 2',
      'h_bucket{l="a",le="5"} 3',
      'h_bucket{l="a",le="+Inf"} 4',
      'h_sum{l="a"} 13.5',
      'h_count{l="a"} 4',
      '',
    ].join('\n'),
  )
})

describe('the text of a family', () => {
  const family = { name: 'c', type: 'counter', help: 'C.', labels: ['a', 'b'] } as const

  test('escapes values, leaves out empty labels and sums equal series', async () => {
    const samples = [
      { labels: ['q"\\\n', ''], value: 1 },
      { labels: ['same', 'x'], value: 2 },
      { labels: ['same', 'x'], value: 3 },
    ]
    expect(await familyText(family, samples, wording)).toBe(
      '# HELP c C.\n# TYPE c counter\nc{a="q\\"\\\\\\n"} 1\nc{a="same",b="x"} 5\n',
    )
  })

  test('is empty without samples', async () => {
    expect(await familyText(family, [], wording)).toBe('')
  })
})

test('a bound label admits its first values, and only those that may be admitted', () => {
  const { label } = createLabelBound(2)
  expect(['x', 'a', 'b', 'c', 'a'].map((value) => label(value, value !== 'x'))).toEqual([
    'other',
    'a',
    'b',
    'other',
    'a',
  ])
})

describe('the busiest', () => {
  test('are named while there is room, and the busier ones after a new ranking', () => {
    const busiest = createBusiest(2)
    const use = (id: string, times: number) => Array.from({ length: times }, () => busiest.label(id)).at(-1)
    expect([use('a', 1), use('b', 5), use('c', 9)]).toEqual(['a', 'b', 'other'])
    expect(busiest.rank()).toEqual(new Set(['a']))
    expect([use('a', 1), use('b', 1), use('c', 1)]).toEqual(['other', 'b', 'c'])
  })

  test('are forgotten when they are no longer used', () => {
    const busiest = createBusiest(1)
    for (let times = 0; times < 8; times++) busiest.label('old')
    for (let rounds = 0; rounds < 5; rounds++) {
      busiest.label('new')
      busiest.label('new')
      busiest.rank()
    }
    expect([...busiest.ids()]).toEqual(['new'])
  })
})
