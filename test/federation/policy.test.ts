// What a policy demands of a verified token (reference: Policy; Claim checks): exact subject, one audience, and the two claim checks.
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Policy as PolicyRow } from '../../db/schema/schema.ts'
import { conditionEnvironment } from '../../src/federation/condition/compile.ts'
import { conditionOf, rules as rulesInOrder } from '../../src/federation/policy.ts'

const row: PolicyRow = {
  id: 'policy',
  organizationId: 'organization',
  issuerId: 'issuer',
  keyId: 'key',
  description: null,
  name: 'policy',
  audience: 'a',
  subject: 's',
  condition: null,
  conditionEnvironment: null,
  attributeTo: null,
  attributeEnvironment: null,
  requiredScope: null,
  requiredTokenType: null,
  enabled: true,
  maxLifetimeSeconds: 900,
  createdAt: 0,
  updatedAt: 0,
  deletedAt: null,
  managedBy: null,
  replayProtection: false,
  allowedModels: null,
  allowedPresets: null,
  lintExceptions: null,
  tests: null,
}

type Claims = { subject?: string; audience?: string[] } & Record<string, unknown>

function refusalOf(rules: Partial<PolicyRow>, token: Claims) {
  const { subject = 's', audience = ['a'], ...payload } = token
  const whole = { algorithm: 'ES256', kid: undefined, issuer: 'i', subject, audience, payload } as const
  const policy = { ...row, ...rules }
  const refusals = Object.values(rulesInOrder).map((rule) => rule(policy, whole))
  return refusals.find((refusal) => refusal !== undefined)
}

/** The reason for which a token is refused, or undefined. */
function judge(rules: Partial<PolicyRow>, token: Claims = {}) {
  return refusalOf(rules, token)?.refused
}

describe('a token is judged by', () => {
  const rows: [name: string, rules: Partial<PolicyRow>, token: Record<string, unknown>, reason: string | undefined][] =
    [
      ['nothing but subject and audience without claim checks', {}, { scopes: 7, token_type: {} }, undefined],
      ['its subject', {}, { subject: 'x' }, 'subject_mismatch'],
      ['its subject, case and all', {}, { subject: 'S' }, 'subject_mismatch'],
      ['its subject, with a space more', {}, { subject: 's ' }, 'subject_mismatch'],
      ['its subject, composed and decomposed apart', { subject: 'é' }, { subject: 'e\u0301' }, 'subject_mismatch'],
      ['its subject as text, not as a pattern', { subject: 'repo:*' }, { subject: 'repo:a' }, 'subject_mismatch'],
      ['any one of its audiences', {}, { audience: ['x', 'a', 'y'] }, undefined],
      ['its audiences', {}, { audience: ['x'] }, 'audience_mismatch'],
      ['its audiences, case and all', {}, { audience: ['A'] }, 'audience_mismatch'],
      ['its audiences, not their beginning', {}, { audience: ['a-2'] }, 'audience_mismatch'],
      ['no audience at all', {}, { audience: [] }, 'audience_mismatch'],
      ['subject before audience', {}, { subject: 'x', audience: [] }, 'subject_mismatch'],
      ['scopes that are there', { requiredScope: 'r' }, { scopes: ['q', 'r'] }, undefined],
      ['scopes that are missing', { requiredScope: 'r' }, { scope: 'r' }, 'scopes_missing'],
      ['scopes of the wrong type', { requiredScope: 'r' }, { scopes: 'r' }, 'scopes_wrong_type'],
      ['scopes as an object', { requiredScope: 'r' }, { scopes: { 0: 'r', length: 1 } }, 'scopes_wrong_type'],
      ['scopes with one of the wrong type', { requiredScope: 'r' }, { scopes: ['r', null] }, 'scopes_wrong_type'],
      ['scopes of null', { requiredScope: 'r' }, { scopes: null }, 'scopes_wrong_type'],
      ['no scopes', { requiredScope: 'r' }, { scopes: [] }, 'scopes_mismatch'],
      ['scopes in another case', { requiredScope: 'r' }, { scopes: ['R'] }, 'scopes_mismatch'],
      ['scopes with a space more', { requiredScope: 'r' }, { scopes: ['r '] }, 'scopes_mismatch'],
      ['scopes joined by a space', { requiredScope: 'r' }, { scopes: ['q r'] }, 'scopes_mismatch'],
      ['a token_type that is there', { requiredTokenType: 't' }, { token_type: 't' }, undefined],
      ['a token_type that is missing', { requiredTokenType: 't' }, { typ: 't' }, 'token_type_missing'],
      ['a token_type of the wrong type', { requiredTokenType: 't' }, { token_type: ['t'] }, 'token_type_wrong_type'],
      ['a token_type of null', { requiredTokenType: 't' }, { token_type: null }, 'token_type_wrong_type'],
      ['a token_type in another case', { requiredTokenType: 't' }, { token_type: 'T' }, 'token_type_mismatch'],
      [
        'both checks, when one passes',
        { requiredScope: 'r', requiredTokenType: 't' },
        { scopes: ['r'] },
        'token_type_missing',
      ],
      [
        'both checks, when the other passes',
        { requiredScope: 'r', requiredTokenType: 't' },
        { token_type: 't' },
        'scopes_missing',
      ],
      [
        'both checks, when both pass',
        { requiredScope: 'r', requiredTokenType: 't' },
        { scopes: ['r'], token_type: 't' },
        undefined,
      ],
      [
        'both checks, when neither passes',
        { requiredScope: 'r', requiredTokenType: 't' },
        { scopes: ['q'], token_type: 'u' },
        'scopes_mismatch',
      ],
      [
        'both claim checks before the condition',
        { requiredTokenType: 't', condition: 'false', conditionEnvironment },
        {},
        'token_type_missing',
      ],
      ['a condition of this environment', { condition: 'true', conditionEnvironment }, {}, undefined],
      ...[null, 0, conditionEnvironment - 1, conditionEnvironment + 1].map((environment): (typeof rows)[number] => [
        `a condition of environment ${environment}, which waits to be saved again`,
        { condition: 'true', conditionEnvironment: environment },
        {},
        'policy_unsupported',
      ]),
    ]
  for (const [name, rules, token, reason] of rows) {
    test(`${name}: ${reason ?? 'accepted'}`, () => expect(judge(rules, token)).toBe(reason as never))
  }
})

describe('the detail of a refusal shows what the token has and what the policy wants:', () => {
  const rows: [name: string, rules: Partial<PolicyRow>, token: Claims, detail: string][] = [
    ['subject', {}, { subject: 'a "b"\n' }, String.raw`the token has "a \"b\"\n", the policy wants "s"`],
    [
      'a GitHub subject with ids',
      { subject: 'repo:a/b:pull_request' },
      { subject: 'repo:a@1/b@2:pull_request' },
      'the token has "repo:a@1/b@2:pull_request", the policy wants "repo:a/b:pull_request"; GitHub adds ids for repositories created or renamed since July 2026: use the token\'s sub if owner 1 and repository 2 are yours',
    ],
    ['one audience', {}, { audience: ['x'] }, 'the token has "x", the policy wants "a"'],
    ['audiences', {}, { audience: ['x y', 'z'] }, 'the token has ["x y","z"], the policy wants "a"'],
    ['no audience', {}, { audience: [] }, 'the token has [], the policy wants "a"'],
    ['missing scopes', { requiredScope: 'r' }, {}, 'the token has nothing, the policy wants "r"'],
    [
      'scopes of the wrong type',
      { requiredScope: 'r' },
      { scopes: 'r' },
      'the token has "r", the policy wants "r" in an array of strings',
    ],
    ['other scopes', { requiredScope: 'r' }, { scopes: ['q'] }, 'the token has ["q"], the policy wants "r"'],
    ['missing token_type', { requiredTokenType: 't' }, {}, 'the token has nothing, the policy wants "t"'],
    [
      'token_type of null',
      { requiredTokenType: 't' },
      { token_type: null },
      'the token has null, the policy wants "t"',
    ],
    ['another token_type', { requiredTokenType: 't' }, { token_type: 'T' }, 'the token has "T", the policy wants "t"'],
  ]
  for (const [name, rules, token, detail] of rows) {
    test(name, () => expect(refusalOf(rules, token)?.detail).toBe(detail))
  }

  test('cut where it is long, so that both sides fit, and never within a character', () => {
    const detail = refusalOf({ subject: 'p'.repeat(512) }, { subject: '🔑'.repeat(512) })?.detail ?? ''
    expect(detail).toMatch(/^the token has "(🔑){199}…, the policy wants "p{199}…$/u)
  })

  test('without a credential that slipped into a claim', () => {
    const jwt = 'eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl'
    expect(refusalOf({}, { subject: jwt })?.detail).not.toContain('eyJ')
  })
})

test('a token passes exactly when every rule of the policy holds, whatever the claims', () => {
  const word = fc.constantFrom('a', 'A', 's', 'r', 't', '')
  const claim = fc.oneof(word, fc.array(word, { maxLength: 2 }), fc.constantFrom(undefined, null, 1, {}))
  const optional = fc.option(fc.constantFrom('r', 't'))
  fc.assert(
    fc.property(
      word,
      fc.array(word, { maxLength: 2 }),
      claim,
      claim,
      optional,
      optional,
      (subject, audience, scopes, token_type, scope, type) => {
        const holds =
          subject === 's' &&
          audience.includes('a') &&
          (scope === null || (Array.isArray(scopes) && scopes.includes(scope))) &&
          (type === null || token_type === type)
        const reason = judge(
          { requiredScope: scope, requiredTokenType: type },
          { subject, audience, scopes, token_type },
        )
        expect(reason === undefined).toBe(holds)
      },
    ),
    { numRuns: 2_000 },
  )
})

describe('the condition of a policy', () => {
  const withCondition = (condition: string | null, environment = conditionEnvironment) =>
    conditionOf({ ...row, condition, conditionEnvironment: environment })

  test('is compiled once for all policies that share it', () => {
    expect(withCondition('subject == "shared"')).toBeObject()
    expect(withCondition('subject == "shared"')).toBe(withCondition('subject == "shared"'))
    expect(withCondition('subject == "other"')).not.toBe(withCondition('subject == "shared"'))
  })

  test('is compiled again when thousands of others were used meanwhile, and means the same', () => {
    const first = withCondition('subject == "s"')
    for (let index = 0; index < 2_100; index++) withCondition(`subject == "${index}"`)
    expect(withCondition('subject == "s"')).not.toBe(first)
    expect(refusalOf({ condition: 'subject == "s"', conditionEnvironment }, {})).toBeUndefined()
    expect(refusalOf({ condition: 'subject == "0"', conditionEnvironment }, {})?.refused).toBe('condition_false')
  })

  test('is a reason instead where it cannot be evaluated', () => {
    expect(withCondition(null)).toBeUndefined()
    expect(withCondition('subject ==')).toStartWith('condition: ')
    expect(withCondition('true', 99)).toBe('condition of environment 99: save it again')
  })
})
