// The request of an exchange as bytes (reference: Token exchange; The jwt-bearer grant): what it gives, in which order
// faults are reported, and that no bytes can upset it.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { readFormFields, readJsonFields } from '../../src/federation/exchange-fields.ts'
import { jwtBearer, jwtBearerGrant, parseFields, tokenExchange } from '../../src/federation/grants.ts'
import { exchangeFields } from '../support/latchkey.ts'

const policyId = '5f0f1c1e-3f5b-4d0e-9c53-2f1b7a6c8d90'
const bytesOf = (text: string) => Buffer.from(text)
const parseExchangeForm = (body: Uint8Array) => parseFields(tokenExchange, readFormFields(body))
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
    ['with fields of the other grant, repeated', `${good()}&assertion=x&assertion=y&workspace_id=${'%20'.repeat(200)}`],
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

describe('the jwt-bearer grant', () => {
  const valid = { grant_type: jwtBearerGrant, assertion: 't', federation_rule_id: policyId, organization_id: 'org_1' }
  type Fields = Record<string, unknown>
  /** `changes` replaces members; undefined removes one. */
  const asJson = async (changes: Fields = {}) => readAs(JSON.stringify({ ...valid, ...changes }))
  const readAs = async (json: string) => {
    const sent = await readJsonFields(Uint8Array.from(bytesOf(json)))
    return 'refused' in sent ? sent : parseFields(jwtBearer, sent)
  }
  const asForm = (changes: Record<string, string | undefined> = {}) => {
    const fields = Object.entries({ ...valid, ...changes }).filter((field): field is [string, string] => !!field[1])
    return parseFields(jwtBearer, readFormFields(bytesOf(String(new URLSearchParams(fields)))))
  }
  const accepted = { policyId, subjectToken: 't' }

  const good: [name: string, changes: Record<string, string | undefined>][] = [
    ['as Anthropic’s clients send it', { service_account_id: 'svac_2', workspace_id: 'wrkspc_3' }],
    ['with the policy named as in token exchange', { federation_rule_id: undefined, federation_policy_id: policyId }],
    ['with both names of the same policy', { federation_policy_id: policyId.toUpperCase() }],
    ['without an organization', { organization_id: undefined }],
    ['with scope=inference', { scope: 'inference' }],
    ['with an empty subject_token', { subject_token: '' }],
    ['with unknown fields', { __proto__x: 'y', client_id: 'z' }],
  ]
  for (const [name, changes] of good) {
    test(`${name} is accepted as a form and as JSON`, async () => {
      expect([asForm(changes), await asJson(changes)]).toEqual([accepted, accepted])
    })
  }

  const bad: [name: string, changes: Record<string, string | undefined>, expected: object][] = [
    ['without an assertion', { assertion: undefined }, { refused: 'field_missing', detail: 'assertion' }],
    [
      'without a policy',
      { federation_rule_id: undefined },
      { refused: 'field_missing', detail: 'federation_rule_id or federation_policy_id' },
    ],
    ['with two policies', { federation_policy_id: crypto.randomUUID() }, { refused: 'policy_ids_differ' }],
    ['with the name of a policy', { federation_rule_id: 'ci' }, { refused: 'policy_id_malformed', detail: 'ci' }],
    ['with subject_token too', { subject_token: 't' }, { refused: 'grants_mixed', detail: 'subject_token' }],
    ['with subject_token_type', { subject_token_type: 'x' }, { refused: 'grants_mixed', detail: 'subject_token_type' }],
    ['with an actor_token', { actor_token: 'x' }, { refused: 'actor_token' }],
    ['with another scope', { scope: 'admin' }, { refused: 'scope' }],
    ['with an assertion of 16,385 bytes', { assertion: 'a'.repeat(16_385) }, { refused: 'subject_token_too_large' }],
    ['with another requested_token_type', { requested_token_type: 'x' }, { refused: 'requested_token_type' }],
    ...(['organization_id', 'service_account_id', 'workspace_id'] as const).flatMap((name) =>
      ['a b', 'x'.repeat(129), '{}', "'"].map((id): [string, Record<string, string>, object] => [
        `with the ${name} ${JSON.stringify(id.slice(0, 9))}`,
        { [name]: id },
        { refused: 'field_malformed', detail: name },
      ]),
    ),
  ]
  for (const [name, changes, expected] of bad) {
    test(`${name} is refused as a form and as JSON`, async () => {
      expect([asForm(changes), await asJson(changes)]).toEqual([expected, expected] as never)
    })
  }

  test('refuses in JSON every value of a field that is not text; null counts as omitted', async () => {
    for (const value of [1, true, ['t'], { t: 1 }, 0, false, [], {}])
      expect(await asJson({ assertion: value })).toEqual({ refused: 'field_type', detail: 'assertion' } as never)
    expect(await asJson({ assertion: null })).toEqual({ refused: 'field_missing', detail: 'assertion' } as never)
    expect(await asJson({ scope: null, workspace_id: null, audience: ['a', 1], subject: {} })).toEqual(accepted)
  })

  const notJson: [name: string, json: string, says: RegExp][] = [
    ['a field twice', `{"assertion":"a",${JSON.stringify(valid).slice(1)}`, /"assertion" twice.*line 1, column/],
    [
      'a field twice, once with an escape',
      `${JSON.stringify(valid).slice(0, -1)},"grant\u005ftype":"x"}`,
      /grant_type/,
    ],
    ['an unknown field twice', `${JSON.stringify(valid).slice(0, -1)},"x":1,"x":1}`, /"x" twice/],
    ['a list', `[${JSON.stringify(valid)}]`, /not a list/],
    ['a text', JSON.stringify(JSON.stringify(valid)), /not a text/],
    ['nothing', '', /JSON object/],
    ['brackets alone', '['.repeat(20_000), /nested at most/],
    ['a comma too many', `${JSON.stringify(valid).slice(0, -1)},}`, /line 1/],
  ]
  for (const [name, json, says] of notJson) {
    test(`refuses JSON with ${name}`, async () => {
      expect(await readAs(json)).toEqual({ refused: 'json_malformed', detail: expect.stringMatching(says) } as never)
    })
  }

  test('answers to any bytes of JSON and never throws', async () => {
    const anyJson = fc.oneof(
      fc.json(),
      fc.string(),
      fc.json().map((text) => `{"assertion":${text},"scope":${text}}`),
    )
    const property = fc.asyncProperty(anyJson, async (text) => {
      const read = await readAs(text)
      expect('refused' in read || read.subjectToken.length > 0).toBe(true)
    })
    await fc.assert(property)
  })
})
