// The form of an exchange as bytes (reference: Token exchange): what it gives, in which order faults are told, and that no bytes can upset it.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseExchangeForm } from '../../src/federation/exchange-form.ts'
import { exchangeFields } from '../support/latchkey.ts'

const policyId = '5f0f1c1e-3f5b-4d0e-9c53-2f1b7a6c8d90'
const bytesOf = (text: string) => Buffer.from(text)
const good = (fields: Record<string, string | undefined> = {}) =>
  String(exchangeFields({ federation_policy_id: policyId, subject_token: 't', ...fields }))
const parse = (text: string) => parseExchangeForm(bytesOf(text))

describe('a form', () => {
  test('gives the policy id and the token', () => {
    expect(parse(good())).toEqual({ policyId, subjectToken: 't' })
  })

  const accepted: [name: string, form: string, expected?: { policyId: string; subjectToken: string }][] = [
    [
      'with + and %20 for a space',
      `${good({ subject_token: undefined })}&subject_token=a+b%20c`,
      { policyId, subjectToken: 'a b c' },
    ],
    [
      'with %2B for a plus',
      `${good({ subject_token: undefined })}&subject_token=a%2Bb`,
      { policyId, subjectToken: 'a+b' },
    ],
    ['with names percent-encoded', good().replace('scope=', '%73cope=')],
    [
      'with = inside a value',
      `${good({ subject_token: undefined })}&subject_token=a=b`,
      { policyId, subjectToken: 'a=b' },
    ],
    ['with empty pairs', `&&${good()}&&`],
    ['with a name without a value', `${good()}&x`],
    ['with names that objects inherit', `${good()}&__proto__=x&constructor=y&toString=z`],
    ['with an empty scope', good({ scope: '' })],
    ['with actor_token empty', `${good()}&actor_token=`],
  ]
  for (const [name, form, expected = { policyId, subjectToken: 't' }] of accepted) {
    test(`${name} is accepted`, () => expect(parse(form)).toEqual(expected))
  }

  test('gives a policy id in upper case in lower case', () => {
    expect(parse(good({ federation_policy_id: policyId.toUpperCase() }))).toEqual({ policyId, subjectToken: 't' })
  })

  const refused: [name: string, form: string, expected: object][] = [
    [
      "with a policy's name",
      good({ federation_policy_id: 'deploy' }),
      { refused: 'policy_id_malformed', detail: 'deploy' },
    ],
    [
      'with a token in the place of the policy id',
      good({ federation_policy_id: 'eyJhbGciOiJ9.e30.AAAA' }),
      { refused: 'policy_id_malformed', detail: '(not an id)' },
    ],
    ['of nothing', '', { refused: 'field_missing', detail: 'grant_type' }],
    ['with a name repeated under an encoding', `${good()}&%73cope=x`, { refused: 'field_repeated', detail: 'scope' }],
    ['with an empty field repeated', `${good()}&scope=`, { refused: 'field_repeated', detail: 'scope' }],
    ['with a lone surrogate', `${good()}&x=%ED%A0%80`, { refused: 'form_malformed' }],
    ['with a percent sign cut off', `${good()}&x=%2`, { refused: 'form_malformed' }],
    ['with a broken name', `${good()}&%=1`, { refused: 'form_malformed' }],
    [
      'with a space before the grant type',
      good({ grant_type: ` ${exchangeFields({}).get('grant_type')}` }),
      { refused: 'grant_type' },
    ],
    ['with actor_token_type alone', `${good()}&actor_token_type=x`, { refused: 'actor_token' }],
    [
      'of another grant, whatever else it holds',
      `${good({ grant_type: 'password', scope: 'x' })}&actor_token=x`,
      { refused: 'grant_type' },
    ],
    [
      'with a token of 16,385 bytes',
      good({ subject_token: 'a'.repeat(16_385) }),
      { refused: 'subject_token_too_large' },
    ],
    [
      'with a token of 16,385 bytes in 8,193 characters',
      good({ subject_token: `${'é'.repeat(8_192)}a` }),
      { refused: 'subject_token_too_large' },
    ],
  ]
  for (const [name, form, expected] of refused) {
    test(`${name} is refused`, () => expect(parse(form)).toEqual(expected as never))
  }

  test('of a token of 16,384 bytes is accepted', () => {
    expect(parse(good({ subject_token: 'a'.repeat(16_384) }))).toHaveProperty('subjectToken')
  })

  test('that is not UTF-8 is refused', () => {
    expect(parseExchangeForm(Uint8Array.of(...bytesOf(good()), 0x26, 0xff))).toEqual({ refused: 'form_malformed' })
  })
})

describe('whatever the bytes', () => {
  test('it answers and never throws', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(typeof parseExchangeForm(bytes)).toBe('object')
      }),
    )
  })

  test('values come back as URLSearchParams has written them', () => {
    const value = fc.string({ unit: 'binary', minLength: 1, maxLength: 50 }).filter((text) => text.isWellFormed())
    fc.assert(
      fc.property(value, (subjectToken) => {
        expect(parse(good({ subject_token: subjectToken }))).toEqual({ policyId, subjectToken })
      }),
    )
  })

  test('unknown fields and repeated audience and resource change nothing', () => {
    const name = fc.oneof(fc.constantFrom('audience', 'resource'), fc.stringMatching(/^x[a-z_]{0,8}$/))
    fc.assert(
      fc.property(fc.array(fc.tuple(name, fc.string())), (extra) => {
        const noise = String(
          new URLSearchParams(extra.map(([key, value]): [string, string] => [key, value.toWellFormed()])),
        )
        expect(parse(`${noise}&${good()}&${noise}`)).toEqual({ policyId, subjectToken: 't' })
      }),
    )
  })
})
