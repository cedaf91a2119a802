// What an admin may save as a policy, and whose policies a check lists.
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Explanation } from '../../../src/admin/policies/explain.ts'
import { policyBoundsBytesMax } from '../../../src/limits.ts'
import type { Row } from '../../support/latchkey.ts'
import { issuerUrl, type PastedIssuer, startWithPastedIssuer } from '../../support/pasted-issuer.ts'

let latchkey: PastedIssuer
beforeAll(async () => {
  latchkey = await startWithPastedIssuer()
})
afterAll(() => latchkey.stop())

let made = 0
const policy = (change: object) => ({
  name: `p${made++}`,
  issuer: 'idp',
  key: 'target',
  audience: 'a',
  subject: 's',
  ...change,
})
const namesOf = async () => {
  const { data } = await latchkey.admin<{ data: Row[] }>('policies.list')
  return data.map(({ name }) => name)
}

describe('where an issuer has no client of the page, a policy cannot target', () => {
  for (const kind of ['management', 'management_read_only']) {
    test(`a ${kind} key, neither when it is made nor later`, async () => {
      await latchkey.admin('keys.create', { name: kind, kind })
      const before = await namesOf()
      for (const dry_run of [false, true])
        await expect(latchkey.admin('policies.create', policy({ key: kind, dry_run }))).rejects.toThrow(
          'has no client with which people sign in, which a policy',
        )
      await expect(latchkey.admin('policies.update', { policy: 'policy', key: kind })).rejects.toThrow(
        'has no client with which people sign in, which a policy',
      )
      expect(await namesOf()).toEqual(before)
      expect(await latchkey.admin('policies.show', { policy: 'policy' })).toMatchObject({ key_name: 'target' })
    })
  }
})

describe('a policy is refused alike when it should be saved and when it is only tried:', () => {
  const rows: [name: string, change: object, message: string][] = [
    ['no subject and no condition', { subject: null }, 'A policy must restrict its subjects'],
    ['a condition that is no expression', { condition: 'subject ==' }, 'The condition cannot be saved'],
    ['a condition that is not allowed', { condition: 'subject.matches("a")' }, 'matches() is not available'],
    ['a name that is taken', { name: 'policy' }, 'A policy named "policy" already exists'],
    ['an unknown issuer', { issuer: 'other' }, 'There is no issuer "other"'],
    ['an unknown key', { key: 'other' }, 'There is no key "other"'],
    ['models that take too many bytes', { allowed_models: models(4_097) }, 'must take at most 4096 bytes'],
    ['a subject that is too long', { subject: 'x'.repeat(513) }, '1 to 512 characters long'],
    ['an audience that is too long', { audience: '𐀀'.repeat(513) }, '1 to 512 characters long'],
    ['a lifetime that is too long', { max_lifetime_seconds: 901 }, 'max_lifetime_seconds must be at most 900'],
    ['a lifetime that is too short', { max_lifetime_seconds: 59 }, 'max_lifetime_seconds must be at least 60'],
  ]
  for (const [name, change, message] of rows) {
    test(name, async () => {
      const before = await namesOf()
      for (const dry_run of [false, true])
        await expect(latchkey.admin('policies.create', policy({ ...change, dry_run }))).rejects.toThrow(message)
      expect(await namesOf()).toEqual(before)
    })
  }
})

/** Patterns whose JSON takes so many bytes, `character` repeated. */
function models(bytes: number, character = 'x'): string[] {
  const size = Buffer.byteLength(character)
  const list: string[] = []
  for (let left = bytes - '[]'.length; left > 0; ) {
    const overhead = list.length === 0 ? '""'.length : '"",'.length
    const characters = Math.min(Math.floor((left - overhead) / size), 100)
    const rest = left - overhead - characters * size
    // What is left over has to be a whole pattern, or none.
    const fill = rest < size ? rest : 0
    list.push(character.repeat(characters) + 'x'.repeat(fill))
    left = rest - fill
  }
  return list
}

describe('the models and presets of a policy take at most 4,096 bytes in its tokens,', () => {
  for (const [name, character] of [
    ['of ASCII', 'x'],
    ['of two bytes', 'é'],
    ['of three bytes', '€'],
    ['of four bytes', '𐀀'],
  ] as const) {
    test(`in names ${name}`, async () => {
      const [most, more] = [models(policyBoundsBytesMax, character), models(policyBoundsBytesMax + 1, character)]
      expect([most, more].map((list) => Buffer.byteLength(JSON.stringify(list)))).toEqual([4_096, 4_097])
      await latchkey.admin('policies.create', policy({ allowed_models: most, dry_run: true }))
      const tooMany = latchkey.admin('policies.create', policy({ allowed_models: more, dry_run: true }))
      await expect(tooMany).rejects.toThrow('at most 4096 bytes')
    })
  }

  test('both lists together', async () => {
    const [allowed_models, allowed_presets] = [models(2_100), models(2_100)]
    await latchkey.admin('policies.create', policy({ allowed_models, dry_run: true }))
    await latchkey.admin('policies.create', policy({ allowed_presets, dry_run: true }))
    const both = latchkey.admin('policies.create', policy({ allowed_models, allowed_presets, dry_run: true }))
    await expect(both).rejects.toThrow('at most 4096 bytes')
  })
})

describe('a pattern of models has at most 256 characters,', () => {
  for (const [name, character] of [
    ['of ASCII', 'x'],
    ['of two bytes', 'é'],
    ['outside the basic plane', '𐀀'],
  ] as const) {
    test(name, async () => {
      const key = (characters: number) => ({ name: `k${made++}`, allowed_models: [character.repeat(characters)] })
      expect(await latchkey.admin('keys.create', key(256))).toMatchObject({ kind: 'inference' })
      await expect(latchkey.admin('keys.create', key(257))).rejects.toThrow('1 to 256 characters long')
    })
  }
})

test('a check without a policy lists those of its organization alone, and none that is deleted', async () => {
  const jwks = { keys: [latchkey.pairs.es.publicJwk] }
  const organization = 'other'
  await latchkey.admin('organizations.create', { name: organization })
  await latchkey.admin('issuers.add', { organization, name: 'idp', issuer_url: issuerUrl, jwks })
  await latchkey.admin('keys.create', { organization, name: 'target' })
  const fits = { audience: 'latchkey-tests', subject: 'workload-1' }
  const theirs = await latchkey.admin('policies.create', { ...policy(fits), organization })
  const deleted = await latchkey.admin('policies.create', policy(fits))
  await latchkey.admin('policies.delete', { policy: deleted.id })

  const check = async (token: string, input: object) => {
    const { data } = await latchkey.admin<{ data: Explanation[] }>('policies.check', { token, ...input })
    return data.map(({ policy_id }) => policy_id)
  }
  for (const token of [await latchkey.sign(), await latchkey.sign({ iss: 'https://elsewhere' }), 'x.y.z']) {
    expect(await check(token, { organization })).toEqual([theirs.id])
    expect(await check(token, {})).toEqual([latchkey.policy.id])
    await expect(check(token, { organization, policy: latchkey.policy.id })).rejects.toThrow('There is no policy')
  }
})
