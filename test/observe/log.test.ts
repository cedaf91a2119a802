// A line of the log: one JSON object, and no credential in it, whichever field it came in.
import { describe, expect, test } from 'bun:test'
import { createLog } from '../../src/observe/log.ts'

const jwt = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl'
const key = `sk-lk-v1-${'0123456789abcdef'.repeat(4)}`
const now = () => Date.parse('2026-11-21T09:30:00Z')

function lineOf(fields: Record<string, unknown>): string {
  const lines: string[] = []
  createLog((line) => lines.push(line), now)('warn', 'something', fields)
  expect(lines).toHaveLength(1)
  return lines[0] ?? ''
}

test('reports time, level and event before its fields, on one line', () => {
  const line = lineOf({ reason: 'two\nlines', status: 500, missing: undefined })
  expect(line).toBe(
    '{"time":"2026-11-21T09:30:00.000Z","level":"warn","event":"something","reason":"two\\nlines","status":500}\n',
  )
})

describe('leaves out', () => {
  for (const [name, secret] of [
    ['a token', jwt],
    ['a key', key],
  ] as const) {
    const body = secret.slice(9)
    const rows: [place: string, value: unknown][] = [
      ['a field', secret],
      ['the middle of a field', `it was ${secret}, they said`],
      ['a list', ['a', secret]],
      ['an object', { inner: { text: secret } }],
    ]
    for (const [place, value] of rows)
      test(`${name} in ${place}`, () => {
        const line = lineOf({ value })
        expect(line).not.toContain(body)
        expect(JSON.parse(line)).toHaveProperty('value')
      })
  }

  test('a password in a URL', () => expect(lineOf({ url: 'https://user:secret@host/' })).not.toContain('secret'))
})
