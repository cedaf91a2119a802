// One grammar of durations, for settings and options alike.
import { describe, expect, test } from 'bun:test'
import { readDuration, readWhole } from '../../src/values/duration-text.ts'

describe('a duration', () => {
  const good: [string, number][] = [
    ['500ms', 500],
    ['90s', 90_000],
    ['15m', 900_000],
    ['24h', 86_400_000],
    ['7d', 604_800_000],
    ['0d', 0],
  ]
  for (const [text, milliseconds] of good)
    test(`${text} is ${milliseconds} ms`, () => expect(readDuration(text)).toBe(milliseconds))

  for (const text of ['', '90', 's', '1.5h', '-1h', '24 h', '1w', '1H', '1d12h', '1234567s', '90sec', ' 90s'])
    test(`is not ${JSON.stringify(text)}`, () => expect(readDuration(text)).toBeUndefined())
})

describe('a value that may be a plain number', () => {
  const rows: [text: string, unit: 'seconds' | 'days', count: number | undefined][] = [
    ['90', 'seconds', 90],
    ['90s', 'seconds', 90],
    ['24h', 'seconds', 86_400],
    ['1500ms', 'seconds', undefined],
    ['90', 'days', 90],
    ['90d', 'days', 90],
    ['48h', 'days', 2],
    ['36h', 'days', undefined],
    ['soon', 'days', undefined],
  ]
  for (const [text, unit, count] of rows)
    test(`${text} is ${count ?? 'not a whole number of'} ${unit}`, () => expect(readWhole(text, unit)).toBe(count))
})
