// Windows and overrides of budgets as somebody types them.
import { describe, expect, test } from 'bun:test'
import { overridesFrom, windowsFrom, windowsText } from '../../../scripts/shared/budget-windows.ts'

describe('overrides', () => {
  test('are values with windows; a value may have colons and come again', () => {
    expect(overridesFrom(['1001:month=50usd', 'repo:acme/app:day=5usd,10requests', '1001:day=9usd'])).toEqual({
      '1001': [
        { per: 'month', usd: 50 },
        { per: 'day', usd: 9 },
      ],
      'repo:acme/app': [{ per: 'day', usd: 5, requests: 10 }],
    })
  })

  test.each([
    [['1001:month=50usd', '1002'], '"1002" is not a valid value for --overrides'],
    [['1001:month=50usd', '1002:year=50usd'], '"1002:year=50usd" is not a valid value for --overrides'],
    [['1001:month=lots'], '"month=lots" is not a valid value for --windows'],
    [['/nowhere/overrides.json'], '/nowhere/overrides.json'],
  ])('%p are refused', (texts, message) => {
    expect(() => overridesFrom(texts)).toThrow(message)
  })
})

test('one request is one request, and not one requests', () => {
  expect(windowsText(windowsFrom(['day=1requests', 'month=2requests,1tokens,1usd']))).toBe(
    'day 1 request; month 1.00 USD, 1 token, 2 requests',
  )
})
