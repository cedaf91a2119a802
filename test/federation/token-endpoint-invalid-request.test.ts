// 400 for the form of the request: invalid_request, unsupported_grant_type and invalid_scope (reference: Token endpoint errors), each
// row one change in a valid exchange.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { auditOf, expectNoTokenText, expectRefused } from '../support/exchange-outcome.ts'
import { type PastedIssuer, startWithPastedIssuer } from '../support/pasted-issuer.ts'
import { encodePart } from '../support/subject-token.ts'
import { formType, goodForm, postForm, tokenOfLength } from '../support/token-request.ts'

let latchkey: PastedIssuer
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
})
afterAll(() => latchkey.stop())

type Row = [name: string, body: () => Promise<string>, reason: string, headers?: Record<string, string>]
const withFields = (fields: Record<string, string | undefined>) => async () => goodForm(latchkey, fields)
const withToken = (change: (token: string) => string) => async () =>
  goodForm(latchkey, { subject_token: change(await latchkey.sign()) })
const json = (form: string) => JSON.stringify(Object.fromEntries(new URLSearchParams(form)))
const accessToken = 'urn:ietf:params:oauth:token-type:access_token'
const required = ['grant_type', 'subject_token_type', 'federation_policy_id', 'subject_token']
const single = [...required, 'requested_token_type', 'scope']

const badRequests: Row[] = [
  ...required.map((name): Row => [`no ${name}`, withFields({ [name]: undefined }), 'field_missing']),
  ...required.map((name): Row => [`an empty ${name}`, withFields({ [name]: '' }), 'field_missing']),
  ...single.map(
    (name): Row => [`${name} twice`, async () => `${await goodForm(latchkey)}&${name}=x`, 'field_repeated'],
  ),
  ['the same scope twice', async () => `${await goodForm(latchkey)}&scope=inference`, 'field_repeated'],
  ['no body', async () => '', 'field_missing'],
  ['JSON', async () => json(await goodForm(latchkey)), 'content_type', { 'content-type': 'application/json' }],
  ['a form called text', withFields({}), 'content_type', { 'content-type': 'text/plain' }],
  ['a type that only begins well', withFields({}), 'content_type', { 'content-type': `${formType}2` }],
  ['another charset', withFields({}), 'content_type', { 'content-type': `${formType}; charset=utf-16` }],
  ['a compressed body', withFields({}), 'content_encoding', { 'content-encoding': 'gzip' }],
  ['broken percent-encoding', async () => `${await goodForm(latchkey)}&scope=%zz`, 'form_malformed'],
  ['a field that is not UTF-8', async () => `${await goodForm(latchkey)}&x=%ff`, 'form_malformed'],
  ['another subject_token_type', withFields({ subject_token_type: accessToken }), 'subject_token_type'],
  [
    'an id_token',
    withFields({ subject_token_type: 'urn:ietf:params:oauth:token-type:id_token' }),
    'subject_token_type',
  ],
  [
    'another requested_token_type',
    withFields({ requested_token_type: 'urn:ietf:params:oauth:token-type:jwt' }),
    'requested_token_type',
  ],
  ['an actor_token', withFields({ actor_token: 'x' }), 'actor_token'],
  [
    'a token of 16,385 bytes',
    async () => goodForm(latchkey, { subject_token: await tokenOfLength(latchkey, 16_385) }),
    'subject_token_too_large',
  ],
  ['a token that is none', withFields({ subject_token: 'x' }), 'subject_token_not_jwt'],
  ['two parts', withToken((token) => token.replace(/\.[^.]+$/, '')), 'subject_token_not_jwt'],
  ['four parts', withToken((token) => `${token}.AAAA`), 'subject_token_not_jwt'],
  ['a JWE', withToken((token) => `${token}.AAAA.AAAA`), 'subject_token_not_jwt'],
  ['an empty header', withToken((token) => token.replace(/^[^.]+/, '')), 'subject_token_not_jwt'],
  ['padding', withToken((token) => `${token}==`), 'subject_token_not_jwt'],
  ['white space before', withToken((token) => ` ${token}`), 'subject_token_white_space'],
  ['a line feed after', withToken((token) => `${token}\n`), 'subject_token_white_space'],
  ['white space inside', withToken((token) => token.replace('.', '. ')), 'subject_token_not_jwt'],
  ...['deploy', '__proto__', "' or 1=1 --", 'p'.repeat(2_000), `${crypto.randomUUID()} `].map(
    (id): Row => [
      `the policy id ${JSON.stringify(id.slice(0, 40))}`,
      withFields({ federation_policy_id: id }),
      'policy_id_malformed',
    ],
  ),
  ['the alphabet of base64', withToken((token) => `${token.slice(0, -3)}+/A`), 'subject_token_not_jwt'],
  ['loose trailing bits', withToken(loosenLastCharacter), 'subject_token_not_jwt'],
  [
    'a payload that is a list',
    withFields({ subject_token: `${encodePart({ alg: 'ES256' })}.${encodePart('[]')}.AAAA` }),
    'subject_token_not_jwt',
  ],
  [
    'a header that is no JSON',
    withFields({ subject_token: `${encodePart('{')}.${encodePart('{}')}.AAAA` }),
    'subject_token_not_jwt',
  ],
  [
    'a payload that is not UTF-8',
    withFields({ subject_token: `${encodePart({})}.${encodePart(Uint8Array.of(0x7b, 0xff, 0x7d))}.AAAA` }),
    'subject_token_not_jwt',
  ],
]

/** The same signature bytes under another spelling: an ES256 signature ends in a character with four loose bits. */
function loosenLastCharacter(token: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const other = token.slice(0, -1) + alphabet[alphabet.indexOf(token.slice(-1)) + 1]
  expect(Buffer.from(other, 'base64url')).toEqual(Buffer.from(token, 'base64url'))
  return other
}

async function expectPostRefused(body: string, expected: Parameters<typeof expectRefused>[2], headers = {}) {
  const token = new URLSearchParams(body).get('subject_token') ?? ''
  return expectRefused(latchkey, await postForm(latchkey, body, headers), expected, token)
}

describe('400 invalid_request', () => {
  for (const [name, make, reason, headers] of badRequests) {
    test(`a request with ${name} is refused`, async () => {
      await expectPostRefused(await make(), { status: 400, error: 'invalid_request', reason }, headers)
    })
  }

  test('a token of another form is in the audit of the organization whose policy was named; the caller cannot know', async () => {
    const bodies: string[] = []
    for (const policy of [latchkey.policy.id, crypto.randomUUID()]) {
      const body = await goodForm(latchkey, { subject_token: 'x', federation_policy_id: policy })
      const expected = { status: 400, error: 'invalid_request', reason: 'subject_token_not_jwt' }
      const { text, audit } = await expectPostRefused(body, expected)
      bodies.push(text)
      const isKnown = policy === latchkey.policy.id
      expect(audit).toMatchObject({
        policy_named: policy,
        organization_id: isKnown ? latchkey.policy.organization_id : null,
        policy_id: isKnown ? policy : null,
        issuer_id: isKnown ? latchkey.issuer.id : null,
        key_id: isKnown ? latchkey.key.id : null,
      })
    }
    expect(bodies[0]).toBe(String(bodies[1]))
  })

  test('a token in the field of the policy reaches neither log nor audit', async () => {
    const token = await latchkey.sign()
    const response = await postForm(
      latchkey,
      await goodForm(latchkey, { federation_policy_id: token, subject_token: 'x' }),
    )
    expect(response.status).toBe(400)
    expectNoTokenText(JSON.stringify(await auditOf(latchkey, response)), token)
    expectNoTokenText(latchkey.logLines.join(''), token)
  })
})

describe('the description says what to change', () => {
  const descriptionOf = async (fields: Record<string, string>) => {
    const response = await postForm(latchkey, await goodForm(latchkey, fields))
    return ((await response.json()) as { error_description: string }).error_description
  }

  test('when a line feed follows the token, as in a file', async () => {
    const description = await descriptionOf({ subject_token: `${await latchkey.sign()}\n` })
    expect(description).toMatch(/white space.*line feed/)
  })

  test('when the policy is named by anything but its id, which the audit then shows unless it may be a secret', async () => {
    expect(await descriptionOf({ federation_policy_id: 'deploy' })).toMatch(/federation_policy_id.*UUID/)
    const { data } = await latchkey.admin<{ data: object[] }>('audit.list', { limit: 1 })
    expect(data).toMatchObject([{ reason: 'policy_id_malformed', step: 'form', detail: 'deploy', policy_id: null }])
    await descriptionOf({ federation_policy_id: `sk-lk-v1-${'0'.repeat(64)}` })
    const { data: later } = await latchkey.admin<{ data: object[] }>('audit.list', { limit: 1 })
    expect(later).toMatchObject([{ detail: '(not an id)', policy_named: null }])
  })

  test('a policy id may be written in upper case', async () => {
    const body = await goodForm(latchkey, { federation_policy_id: String(latchkey.policy.id).toUpperCase() })
    expect((await postForm(latchkey, body)).status).toBe(200)
  })
})

describe('400 unsupported_grant_type', () => {
  for (const grant of ['client_credentials', 'urn:ietf:params:oauth:grant-type:jwt-bearer2', 'URN:x']) {
    test(`the grant ${grant} is refused, whatever else is missing`, async () => {
      const expected = { status: 400, error: 'unsupported_grant_type', reason: 'grant_type' }
      await expectPostRefused(`grant_type=${grant}`, expected)
      await expectPostRefused(await goodForm(latchkey, { grant_type: grant }), expected)
    })
  }
})

describe('400 invalid_scope', () => {
  for (const scope of ['admin', 'inference admin', 'Inference', ' inference', 'inference inference']) {
    test(`the scope ${JSON.stringify(scope)} is refused`, async () => {
      const expected = { status: 400, error: 'invalid_scope', reason: 'scope' }
      await expectPostRefused(await goodForm(latchkey, { scope }), expected)
    })
  }
})
