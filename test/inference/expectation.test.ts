// What is expected of a request before it runs: its tokens, and what keeps it at one of several servers.
import { describe, expect, test } from 'bun:test'
import type { Call } from '../../src/inference/call.ts'
import { affinityKeyFor, expectedTokens } from '../../src/inference/expectation.ts'
import { configuredUpstream } from '../../src/inference/upstream/targets.ts'

const callOf = (fields: object, sessionId?: string, generates = true) =>
  ({ json: { bytes: new Uint8Array(300) }, fields, path: { generates }, sessionId }) as unknown as Call
const at = (...affinities: ('none' | 'session' | 'prefix')[]) =>
  affinities.map((affinity) => ({ ...configuredUpstream('http://127.0.0.1:1/v1'), affinity }))
const none = new Headers()
const keyOf = (fields: object) => affinityKeyFor(callOf(fields), none)(at('prefix'))
const say = (...texts: string[]) => ({ messages: texts.map((content) => ({ role: 'user', content })) })

test('a request is a token for three bytes, and what it may generate up to 16,384', () => {
  const rows: [fields: object, tokens: number][] = [
    [{}, 1_124],
    [{ max_tokens: 10 }, 110],
    [{ max_completion_tokens: 20, max_tokens: 10 }, 120],
    [{ max_output_tokens: 30 }, 130],
    [{ max_tokens: 1_000_000 }, 16_484],
    [{ max_tokens: 'many' }, 1_124],
  ]
  for (const [fields, tokens] of rows) expect([fields, expectedTokens(callOf(fields))]).toEqual([fields, tokens])
  expect(expectedTokens(callOf({ max_tokens: 10 }, undefined, false))).toBe(100)
})

describe('what keeps a request at a server', () => {
  test('is its session, of the body before the header, where a server has this affinity', () => {
    const header = new Headers({ 'x-session-id': 'header' })
    expect(affinityKeyFor(callOf({}, 'body'), header)(at('none', 'session'))).toBe('body')
    expect(affinityKeyFor(callOf({}), header)(at('session'))).toBe('header')
    expect(affinityKeyFor(callOf({}), none)(at('session'))).toBeUndefined()
    expect(affinityKeyFor(callOf(say('a'), 'body'), header)(at('none', 'none'))).toBeUndefined()
  })

  test('is the beginning of its messages, and not what follows after 1,024 characters', () => {
    const long = 'x'.repeat(1_024)
    expect(keyOf(say(long, 'a'))).toBe(keyOf(say(long, 'b')))
    expect(keyOf(say('a'))).not.toBe(keyOf(say('b')))
    expect(keyOf({ system: 's', ...say('a') })).not.toBe(keyOf(say('a')))
    expect(keyOf({ messages: [{ content: [{ type: 'text', text: 'a' }] }] })).toBe(keyOf(say('a')))
    expect(keyOf({})).toBeUndefined()
  })
})
