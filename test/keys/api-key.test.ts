// The text of API keys (reference: Credentials): its form, its randomness, its hash, and a label that gives nothing
// away; and whether one is in force.
import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import type { ApiKey } from '../../db/schema/schema.ts'
import { checkEligibility } from '../../src/federation/policy-binding.ts'
import { checkKeyState, createApiKeyText, hashApiKey, isApiKeyText, labelApiKey } from '../../src/keys/api-key.ts'
import { organizationRows } from '../support/rows.ts'

describe('a new key', () => {
  test('is sk-lk-v1- and 64 hex digits, and another one each time', () => {
    const keys = Array.from({ length: 1_000 }, createApiKeyText)
    for (const key of keys) expect(key).toMatch(/^sk-lk-v1-[0-9a-f]{64}$/)
    expect(new Set(keys).size).toBe(1_000)
  })

  test('uses every digit at every place', () => {
    const keys = Array.from({ length: 1_000 }, () => createApiKeyText().slice('sk-lk-v1-'.length))
    for (let place = 0; place < 64; place++) expect(new Set(keys.map((key) => key[place])).size).toBe(16)
  })

  test('is recognized, and nothing else is', () => {
    const key = createApiKeyText()
    expect(isApiKeyText(key)).toBe(true)
    for (const other of [
      key.slice(1),
      key.slice(0, -1),
      `${key}0`,
      key.toUpperCase(),
      ` ${key}`,
      `${key}\n`,
      key.replace('v1', 'v2'),
      '',
    ])
      expect(isApiKeyText(other)).toBe(false)
    fc.assert(fc.property(fc.string(), (text) => expect(isApiKeyText(text)).toBe(false)))
  })
})

describe('its hash', () => {
  test('is the SHA-256 of the whole text in hex', () => {
    const key = createApiKeyText()
    expect(hashApiKey(key)).toBe(createHash('sha256').update(key, 'utf8').digest('hex'))
    expect(hashApiKey('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  })
})

describe('its label', () => {
  test('shows eight digits of 64', () => {
    const key = `sk-lk-v1-0a1b${'c'.repeat(56)}9f8e`
    expect(labelApiKey(key)).toBe('sk-lk-v1-0a1b…9f8e')
    expect(isApiKeyText(labelApiKey(key))).toBe(false)
  })
})

/** What a function returns, or the text of what it throws. */
function resultOf(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    return String(error)
  }
}

describe('a key', () => {
  const { key } = organizationRows('acme')
  const rows: [name: string, change: Partial<ApiKey>, isInForce: boolean][] = [
    ['that never expires is in force', {}, true],
    ['that expires a moment from now is in force', { expiresAt: 1_001 }, true],
    ['is refused at its very expiry', { expiresAt: 1_000 }, false],
    ['is refused after its expiry', { expiresAt: 999 }, false],
    ['is refused while it is disabled', { disabled: true }, false],
    ['is refused once it is deleted', { deletedAt: 2_000 }, false],
  ]
  for (const [name, change, isInForce] of rows) {
    test(name, () => {
      const changed = { ...key, ...change }
      const outcome = resultOf(() => checkKeyState(changed, 1_000))
      expect<unknown>(outcome).toEqual(isInForce ? changed : expect.stringContaining('Invalid credentials'))
    })

    test(`${name}, also as the target of a policy`, () => {
      const { organization, issuer, policy } = organizationRows('acme')
      const binding = {
        organization,
        issuer: { ...issuer, lastKeySet: null },
        policy,
        key: { ...key, ...change },
      }
      expect(checkEligibility(binding, 1_000) === undefined).toBe(isInForce)
    })
  }

  test('that no longer exists is refused', () =>
    expect(() => checkKeyState(undefined, 0)).toThrow('Invalid credentials'))
})
