// The one error type: what it shows has no credential in it, no matter who wrote the text.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Fault, logTextOf, withoutSecrets } from '../src/fault.ts'
import { cpuMilliseconds } from './support/cpu-time.ts'

const key = `sk-lk-v1-${'0a1b'.repeat(16)}`
const token = `${Buffer.from('{"alg":"ES256"}').toString('base64url')}.${Buffer.from('{"sub":"s"}').toString('base64url')}.c2lnbmF0dXJl`

for (const [name, secret] of [
  ['a key', key],
  ['a key in capitals', key.toUpperCase()],
  ['a token', token],
  ['a token within a URL', encodeURIComponent(token).replaceAll('.', '%2E')],
  ['a token that was cut', token.slice(0, -12)],
] as const)
  test(`${name} is left out of message and detail, wherever it stands`, () => {
    for (const text of [secret, `x${secret}y`, `${'a '.repeat(300)}"${secret}"`, `${secret} and ${secret}`]) {
      const fault = new Fault('invalid', text, { detail: text })
      for (const told of [withoutSecrets(text), fault.message, fault.detail, logTextOf(fault)])
        expect(told.toLowerCase()).not.toContain(secret.slice(16, 40).toLowerCase())
    }
  })

test('a text of another form is reported as it is, up to what a person would read', () => {
  expect(withoutSecrets('eyJ is how tokens begin; sk-lk-v1-12 is no key')).toBe(
    'eyJ is how tokens begin; sk-lk-v1-12 is no key',
  )
  expect(withoutSecrets('x'.repeat(100_000)).length).toBeLessThan(10_000)
})

describe('a text of any kind', () => {
  const pieces = [
    'eyJ',
    'EYj',
    'eyJhbGciOi',
    '.',
    '%2e',
    '%2E',
    '%',
    '-',
    'é',
    '//',
    '/',
    '@',
    ':',
    'sk-lk-v1-',
    '0a',
    ' ',
    '"',
  ]
  const pattern = fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 12 }).map((chosen) => chosen.join(''))

  test('loses what plain expressions say, which would be too slow', () => {
    const plain = (text: string) =>
      text
        .replaceAll(/(\/\/)[^\s/@]{1,512}@/g, '$1…@')
        .replaceAll(/sk-lk-v1-[0-9a-f]{9,}/gi, 'sk-lk-v1-…')
        .replaceAll(/eyJ[\w-]{8,}(?:\.|%2e)[\w.%-]+/gi, '(a token)')
    fc.assert(
      fc.property(fc.array(fc.oneof(pattern, fc.string({ maxLength: 12 })), { maxLength: 8 }), (parts) => {
        expect(withoutSecrets(parts.join(''))).toBe(plain(parts.join('')))
      }),
      { numRuns: 3_000 },
    )
  })

  test('is read in a time that grows as its length does', () => {
    const textOf = (part: string, length: number) => part.repeat(Math.ceil(length / part.length)).slice(0, length)
    const redact = (text: string, times: number) =>
      cpuMilliseconds(() => {
        for (let run = 0; run < times; run++) withoutSecrets(text)
      })
    fc.assert(
      fc.property(pattern, (part) => {
        // The same number of characters in all. A millisecond more, since what hardly takes any has no ratio.
        const isLinear = () => redact(textOf(part, 8_000), 30) < 3 * redact(textOf(part, 1_000), 240) + 1
        // On a busy machine, one of three can be disturbed.
        expect({ part, isLinear: isLinear() || isLinear() || isLinear() }).toEqual({ part, isLinear: true })
      }),
      {
        numRuns: 60,
        endOnFailure: true,
        examples: [['eyJ'], ['eyJ-'], ['eyJhbGciOi%'], ['//x'], ['//x@'], ['sk-lk-v1-']],
      },
    )
  })
})
