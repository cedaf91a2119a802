// The second grant of the token endpoint (reference: The jwt-bearer grant), over HTTP: it passes the same checks as
// token exchange, answers in its own words, and can be turned off.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { decodeJwt } from 'jose'
import { auditOf, expectNoStore, expectRefused } from '../support/exchange-outcome.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'
import { goodForm, postForm } from '../support/token-request.ts'

const grant_type = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const json = { 'content-type': 'application/json' }

let latchkey: PastedIssuer
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
})
afterAll(() => latchkey.stop())

const fieldsFor = (assertion: string, changes: object = {}) => ({
  grant_type,
  assertion,
  federation_rule_id: latchkey.policy.id,
  organization_id: 'org_1',
  ...changes,
})
const postJson = (fields: object, headers = json) => postForm(latchkey, JSON.stringify(fields), headers)

describe('an exchange', () => {
  for (const kind of ['form', 'JSON'] as const) {
    test(`as ${kind} issues a token like token exchange, without issued_token_type`, async () => {
      const fields = fieldsFor(await latchkey.sign())
      const response = await (kind === 'form'
        ? postForm(latchkey, String(new URLSearchParams(fields as never)))
        : postJson(fields))
      expect(response.status).toBe(200)
      expectNoStore(response)
      expect(response.headers.get('request-id')).toBe(response.headers.get('x-request-id') ?? '')
      const body = (await response.json()) as { access_token: string }
      expect(body).toEqual({
        access_token: expect.any(String),
        token_type: 'Bearer',
        expires_in: 900,
        scope: 'inference',
      } as never)
      expect(decodeJwt(body.access_token)).toMatchObject({ federation_policy_id: latchkey.policy.id })
      expect((await auditOf(latchkey, response))[0]).toMatchObject({
        ...{ outcome: 'issued', grant: 'jwt-bearer', policy_id: latchkey.policy.id },
      })
    })
  }

  const refusals: [name: string, claims: object, reason: string][] = [
    ['an expired token', { exp: 1 }, 'expired'],
    ['another audience', { aud: 'other' }, 'audience_mismatch'],
    ['another subject', { sub: 'other' }, 'subject_mismatch'],
    ['another issuer', { iss: 'https://other.example.com' }, 'issuer_mismatch'],
  ]
  test('with a token that the policy refuses gets the same answer as token exchange', async () => {
    for (const [, claims, reason] of refusals) {
      const assertion = await latchkey.sign(claims as never)
      const expected = { status: 400, error: 'invalid_grant', reason }
      const { text } = await expectRefused(latchkey, await postJson(fieldsFor(assertion)), expected, assertion)
      const other = await latchkey.exchange(assertion)
      const [own, first] = [JSON.parse(String(text)), (await other.json()) as object]
      expect({ ...own, request_id: '' }).toEqual({ ...first, request_id: '' })
    }
  })
})

describe('a refusal speaks of the fields of this grant', () => {
  const cases: [name: string, fields: () => Promise<object>, reason: string, says: RegExp][] = [
    ['a text that is not a JWT', async () => fieldsFor('x'), 'subject_token_not_jwt', /^The assertion is not a JWT/],
    [
      'a line feed after the JWT',
      async () => fieldsFor(`${await latchkey.sign()}\n`),
      'subject_token_white_space',
      /^The assertion has white space/,
    ],
    [
      "a policy's name",
      async () => fieldsFor(await latchkey.sign(), { federation_rule_id: 'ci' }),
      'policy_id_malformed',
      /^The federation_rule_id must be a UUID/,
    ],
    [
      "a policy's name in the field of token exchange",
      async () => fieldsFor(await latchkey.sign(), { federation_rule_id: undefined, federation_policy_id: 'ci' }),
      'policy_id_malformed',
      /^The federation_policy_id must be a UUID/,
    ],
    ['no grant', async () => fieldsFor('x', { grant_type: undefined }), 'field_missing', /: grant_type$/],
    ['an empty object', async () => ({}), 'field_missing', /: grant_type$/],
    [
      'two policies',
      async () => fieldsFor(await latchkey.sign(), { federation_policy_id: crypto.randomUUID() }),
      'policy_ids_differ',
      /two different policies: send federation_rule_id alone$/,
    ],
    [
      'a list of grants',
      async () => fieldsFor('x', { grant_type: [grant_type] }),
      'field_type',
      /left out: grant_type$/,
    ],
    ['a number', async () => fieldsFor(1 as never), 'field_type', /must be text, or left out: assertion$/],
  ]
  for (const [name, fields, reason, says] of cases) {
    test(`for ${name}`, async () => {
      const expected = { status: 400, error: 'invalid_request', reason }
      const { text } = await expectRefused(latchkey, await postJson(await fields()), expected, '')
      expect((JSON.parse(String(text)) as { error_description: string }).error_description).toMatch(says)
    })
  }
})

describe('JSON', () => {
  test('of 32,768 bytes or more is refused, one byte less is read', async () => {
    const padded = async (bytes: number) => {
      const text = JSON.stringify(fieldsFor(await latchkey.sign(), { pad: '' }))
      return text.replace('"pad":""', `"pad":"${'x'.repeat(bytes - text.length)}"`)
    }
    expect((await postForm(latchkey, await padded(32_768), json)).status).toBe(413)
    expect((await postForm(latchkey, await padded(32_767), json)).status).toBe(200)
  })

  test('is not accepted for token exchange, nor for a grant that is unknown', async () => {
    const exchange = Object.fromEntries(new URLSearchParams(await goodForm(latchkey)))
    for (const fields of [exchange, { ...exchange, grant_type: undefined }, { grant_type: 'password' }]) {
      const expected = { status: 400, error: 'invalid_request', reason: 'content_type' }
      await expectRefused(latchkey, await postJson(fields), expected, '')
    }
  })
})

test('LATCHKEY_JWT_BEARER=false leaves token exchange alone', async () => {
  const closed = await startWithPastedIssuer({ settings: { LATCHKEY_JWT_BEARER: 'false' } })
  try {
    const assertion = await closed.sign()
    const fields = { grant_type, assertion, federation_rule_id: closed.policy.id }
    const asForm = await postForm(closed, String(new URLSearchParams(fields)))
    await expectRefused(
      closed,
      asForm,
      { status: 400, error: 'unsupported_grant_type', reason: 'grant_type' },
      assertion,
    )
    const asJson = await postForm(closed, JSON.stringify(fields), json)
    await expectRefused(closed, asJson, { status: 400, error: 'invalid_request', reason: 'content_type' }, assertion)
    expect((await closed.exchange(assertion)).status).toBe(200)
  } finally {
    await closed.stop()
  }
})
