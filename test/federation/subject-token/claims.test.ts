// Claims on their own: the types that pass, the times to the fraction of a second, the lengths in code points (reference: Subject token).
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  checkLengths,
  checkTimes,
  type IssuerTimes,
  narrowSubjectToken,
  type SubjectToken,
  secondsLeft,
} from '../../../src/federation/subject-token/claims.ts'

const good = { iss: 'i', sub: 's', aud: 'a' }
const header = { alg: 'ES256', kid: 'k' }
const narrow = (payload: object, changedHeader: object = header) =>
  narrowSubjectToken({ header: { ...changedHeader }, payload: { ...payload }, hasDuplicateMembers: false })
const tokenWith = (payload: Record<string, unknown>): SubjectToken => {
  const token = narrow({ ...good, ...payload })
  if ('refused' in token) throw new Error(token.refused)
  return token
}

describe('the shape', () => {
  test('a single aud becomes a list of one', () => {
    expect(narrow(good)).toEqual({
      algorithm: 'ES256',
      kid: 'k',
      issuer: 'i',
      subject: 's',
      audience: ['a'],
      payload: good,
    })
  })

  test('of iss and sub is a string that is not empty, of aud a string or strings, and nothing else', () => {
    const isString = (value: unknown) => typeof value === 'string'
    const isName = (value: unknown) => isString(value) && value !== ''
    const isAudience = (value: unknown) => isString(value) || (Array.isArray(value) && value.every(isString))
    const value = fc.oneof(fc.string(), fc.array(fc.string()), fc.anything({ withNullPrototype: false }))
    fc.assert(
      fc.property(value, value, value, (iss, sub, aud) => {
        const fits = isName(iss) && isName(sub) && isAudience(aud)
        expect('refused' in narrow({ iss, sub, aud })).toBe(!fits)
      }),
    )
  })

  test('of the header: only the exact names of two algorithms', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.constantFrom('RS256', 'ES256', 'none', 'HS256', 'rs256', 'toString'), fc.anything()),
        (alg) => {
          expect('refused' in narrow(good, { alg })).toBe(alg !== 'RS256' && alg !== 'ES256')
        },
      ),
    )
  })

  test('duplicate members refuse before anything else is looked at', () => {
    expect(narrowSubjectToken({ header: {}, payload: {}, hasDuplicateMembers: true })).toEqual({
      refused: 'token_duplicate_member',
    })
  })
})

describe('times', () => {
  const now = 1_800_000_000_500
  /** The reason for which shape or times refuse a token with these claims. */
  const judge = (payload: object, issuer: IssuerTimes): string | undefined => {
    const token = narrow({ ...good, ...payload })
    return 'refused' in token ? token.refused : checkTimes(token, now, issuer)?.refused
  }
  const rows: [name: string, payload: object, reason: string | undefined][] = [
    ['exp a second ahead', { exp: 1_800_000_001.5 }, undefined],
    ['exp less than a second ahead', { exp: 1_800_000_001.499 }, 'expired'],
    ['exp at this moment', { exp: 1_800_000_000.5 }, 'expired'],
    ['exp in this second but past', { exp: 1_800_000_000 }, 'expired'],
    ['exp 0', { exp: 0 }, 'expired'],
    ['exp in the year 9999', { exp: 253_402_300_799 }, undefined],
    ['exp in the year 10000', { exp: 253_402_300_800 }, 'exp_invalid'],
    ['exp NaN', { exp: Number.NaN }, 'exp_invalid'],
    ['exp infinite', { exp: Number.POSITIVE_INFINITY }, 'exp_invalid'],
    ['exp an object', { exp: { valueOf: () => 9e9 } }, 'exp_invalid'],
    ['nbf at the skew', { exp: 9e9, nbf: 1_800_000_030.5 }, undefined],
    ['nbf past the skew', { exp: 9e9, nbf: 1_800_000_030.501 }, 'not_yet_valid'],
    ['iat at the skew', { exp: 9e9, iat: 1_800_000_030.5 }, undefined],
    ['iat past the skew', { exp: 9e9, iat: 1_800_000_030.501 }, 'issued_in_future'],
    ['iat long ago', { exp: 9e9, iat: 0 }, undefined],
    ['sub empty', { exp: 9e9, sub: '' }, 'token_claim_type'],
    ['iss empty', { exp: 9e9, iss: '' }, 'token_claim_type'],
    ['iat true', { exp: 9e9, iat: true }, 'token_claim_type'],
    ['nbf null', { exp: 9e9, nbf: null }, 'token_claim_type'],
    ['nbf negative', { exp: 9e9, nbf: -1 }, 'token_claim_type'],
  ]
  for (const [name, payload, reason] of rows) {
    test(`${name}: ${reason ?? 'accepted'}`, () => {
      expect(judge(payload, { clockSkewSeconds: 30, maxTokenAgeSeconds: null })).toBe(reason)
    })
  }

  test('the skew of the issuer does not lengthen exp', () => {
    const issuer = { clockSkewSeconds: 600, maxTokenAgeSeconds: null }
    expect(judge({ exp: now / 1_000 - 0.001 }, issuer)).toBe('expired')
  })

  const ages: [name: string, payload: Record<string, unknown>, reason: string | undefined][] = [
    ['as long as the cap', { iat: now / 1_000, exp: now / 1_000 + 600 }, undefined],
    ['longer than the cap', { iat: now / 1_000, exp: now / 1_000 + 601 }, 'token_age_too_long'],
    ['longer, though little of it is left', { iat: now / 1_000 - 900, exp: now / 1_000 + 1 }, 'token_age_too_long'],
    ['unknown', { exp: now / 1_000 + 1 }, 'token_age_unknown'],
    ['negative', { iat: now / 1_000 + 20, exp: now / 1_000 + 10 }, undefined],
  ]
  for (const [name, payload, reason] of ages) {
    test(`a life from iat to exp that is ${name}: ${reason ?? 'accepted'}`, () => {
      const capped = { clockSkewSeconds: 30, maxTokenAgeSeconds: 600 }
      expect(judge(payload, capped)).toBe(reason)
      expect(judge(payload, { ...capped, maxTokenAgeSeconds: null })).toBeUndefined()
    })
  }

  test('the seconds left never reach past exp', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e6, noNaN: true }), fc.nat(1e9), (ahead, at) => {
        const exp = at / 1_000 + ahead
        const left = secondsLeft({ exp }, at)
        expect(Number.isInteger(left)).toBe(true)
        expect(Math.floor(at / 1_000) + left).toBeLessThanOrEqual(exp)
      }),
    )
  })
})

describe('lengths', () => {
  const reasonOf = (payload: Record<string, unknown>) => checkLengths(tokenWith(payload))?.refused
  /** One code point each: one UTF-16 unit, two, and two code points that make one visible character. */
  const letters = { ascii: 's', astral: '𝕏', flag: '🇦', lone: '\ud800' }
  for (const [kind, letter] of Object.entries(letters)) {
    test(`512 code points pass and 513 do not (${kind})`, () => {
      const longest = letter.repeat(512)
      const long = letter.repeat(513)
      expect([...long]).toHaveLength(513)
      for (const [at, tooLong] of [
        [longest, undefined],
        [long, 'claim_too_long'],
      ] as const) {
        expect(reasonOf({ sub: at })).toBe(tooLong)
        expect(reasonOf({ aud: at })).toBe(tooLong)
        expect(reasonOf({ aud: ['a', at] })).toBe(tooLong)
        expect(reasonOf({ scopes: ['a', at] })).toBe(tooLong)
      }
    })
  }

  test('16 scopes pass and 17 do not, whatever they are', () => {
    expect(reasonOf({ scopes: Array(16).fill('') })).toBeUndefined()
    expect(reasonOf({ scopes: Array(17).fill('') })).toBe('claim_too_long')
    expect(reasonOf({ scopes: Array(17).fill(1) })).toBe('claim_too_long')
  })

  test('other claims have no bound, and scopes that are no list have no length', () => {
    expect(reasonOf({ other: 'x'.repeat(10_000), scopes: 'x'.repeat(10_000) })).toBeUndefined()
  })

  test('a text is too long exactly when it has more than 512 code points', () => {
    const text = fc.string({ unit: 'binary', minLength: 505, maxLength: 520 })
    fc.assert(
      fc.property(text, (sub) => {
        expect(reasonOf({ sub }) === 'claim_too_long').toBe([...sub].length > 512)
      }),
    )
  })
})
