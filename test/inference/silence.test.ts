// How long each side of a response may be silent.
import { afterEach, beforeEach, describe, expect, jest, test } from 'bun:test'
import { type Side, type Silence, watchSilence } from '../../src/inference/silence.ts'

const upstreamMilliseconds = 40
const clientMilliseconds = 80

let silence: Silence
let silent: Side[]
beforeEach(() => {
  jest.useFakeTimers()
  silent = []
  silence = watchSilence({
    upstream: { milliseconds: upstreamMilliseconds, onSilent: () => silent.push('upstream') },
    client: { milliseconds: clientMilliseconds, onSilent: () => silent.push('client') },
  })
})
afterEach(() => {
  silence.stop()
  jest.useRealTimers()
})

describe('an upstream', () => {
  test('has its whole limit, and up to a quarter more', () => {
    silence.waitFor('upstream')
    jest.advanceTimersByTime(upstreamMilliseconds)
    expect(silent).toEqual([])
    jest.advanceTimersByTime(upstreamMilliseconds / 4)
    expect(silent).toEqual(['upstream'])
  })

  test('has its whole limit after each chunk', () => {
    silence.waitFor('upstream')
    jest.advanceTimersByTime(upstreamMilliseconds)
    silence.broken()
    jest.advanceTimersByTime(upstreamMilliseconds)
    expect(silent).toEqual([])
  })

  test('has its whole limit after a client that took longer than that', () => {
    silence.waitFor('client')
    jest.advanceTimersByTime(clientMilliseconds)
    silence.waitFor('upstream')
    jest.advanceTimersByTime(upstreamMilliseconds)
    expect(silent).toEqual([])
  })
})

test('a client has its whole limit after an upstream that took its own', () => {
  silence.waitFor('upstream')
  jest.advanceTimersByTime(upstreamMilliseconds)
  silence.waitFor('client')
  jest.advanceTimersByTime(clientMilliseconds)
  expect(silent).toEqual([])
  jest.advanceTimersByTime(upstreamMilliseconds / 4)
  expect(silent).toEqual(['client'])
})

test('nobody is given up after the end', () => {
  silence.waitFor('upstream')
  silence.stop()
  jest.advanceTimersByTime(2 * upstreamMilliseconds)
  expect(silent).toEqual([])
})
