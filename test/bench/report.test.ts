// What the benches conclude from their figures.
import { expect, test } from 'bun:test'
import { median, quantile, spread } from './measure.ts'
import { printResults, type Result } from './report.ts'
import { findUnjudged, judgeTargets, printVerdicts } from './verdicts.ts'

const resultOf = (arm: string, cpuMicroseconds: number[]): Result => ({
  ...{ bench: 'exchange', load: 'RS256', concurrency: 1, arm, figures: { cpuMicroseconds } },
})

test('the median and the spread leave a single outlier alone', () => {
  expect(median([3, 1, 100, 2, 4])).toBe(3)
  expect(quantile([1, 2, 3, 4], 0.99)).toBe(4)
  expect(spread([3, 1, 100, 2, 4])).toBe(1)
  expect(median([])).toBeNaN()
})

test('a target is judged by the ratios of single rounds', () => {
  const results = [resultOf('bare limit', [90, 180, 30]), resultOf('latchkey', [100, 200, 1_000])]
  const [verdict, ...others] = judgeTargets(results)
  expect(others).toEqual([])
  expect(verdict).toMatchObject({ value: 0.9, isMet: true })
  expect(verdict).not.toHaveProperty('wanted')
  const worse = [resultOf('bare limit', [30, 30, 30]), resultOf('latchkey', [100, 100, 100])]
  expect(judgeTargets(worse)).toMatchObject([{ value: 0.3, isMet: false, wanted: 0.9 }])
})

test('what is no worse than before but short of what is wanted is not called met', () => {
  const lines: string[] = []
  const results = [resultOf('bare limit', [80, 80, 80]), resultOf('latchkey', [100, 100, 100])]
  printVerdicts(judgeTargets(results), [], (line) => lines.push(line))
  expect(lines.at(-2)).toEndWith('no worse, 0.9 wanted')
  expect(lines.at(-1)).toStartWith('0 met, 1 short of what is wanted, 0 missed,')
})

test('a target whose other arm was left out is not judged, and the last lines say so', () => {
  const results = [resultOf('latchkey', [100])]
  expect(judgeTargets(results)).toEqual([])
  const unjudged = findUnjudged(results)
  expect(unjudged).toContain('exchange RS256 at 1: CPU µs, bare limit / latchkey')
  // Other benches did not run.
  expect(unjudged.filter((target) => !target.startsWith('exchange '))).toEqual([])
  const lines: string[] = []
  const verdicts = judgeTargets([...results, resultOf('bare limit', [20])])
  printVerdicts(verdicts, ['exchange x'], (line) => lines.push(line))
  expect(lines.slice(-2)).toEqual([
    '0 met, 0 short of what is wanted, 1 missed, 0 without a bound, 1 not judged',
    '  not judged: exchange x',
  ])
})

test('a table has a line for each arm, with its median and its spread in percent', () => {
  const lines: string[] = []
  printResults([resultOf('bare limit', [90, 100, 110]), resultOf('latchkey', [200, 200, 200])], (line) =>
    lines.push(line),
  )
  expect(lines.slice(1)).toEqual([
    'exchange: RS256, concurrency 1     CPU µs',
    '  bare limit                    100 ±10 %',
    '  latchkey                      200 ± 0 %',
  ])
})
