// The one error type: what it tells has no credential in it, whoever wrote the text.
import { expect, test } from 'bun:test'
import { Fault, withoutSecrets } from '../src/fault.ts'

const key = `sk-lk-v1-${'0a1b'.repeat(16)}`
const token = `${Buffer.from('{"alg":"ES256"}').toString('base64url')}.${Buffer.from('{"sub":"s"}').toString('base64url')}.c2lnbmF0dXJl`

for (const [name, secret] of [
  ['a key', key],
  ['a key in capitals', key.toUpperCase()],
  ['a token', token],
  ['a token within a URL', encodeURIComponent(token).replaceAll('.', '%2E')],
  ['a token that was cut', token.slice(0, -12)],
] as const)
  test(`${name} is left out of message and reason, wherever it stands`, () => {
    for (const text of [secret, `x${secret}y`, `${'a '.repeat(300)}"${secret}"`, `${secret} and ${secret}`]) {
      const fault = new Fault('invalid', text, { reason: text })
      for (const told of [withoutSecrets(text), fault.message, fault.reason])
        expect(told.toLowerCase()).not.toContain(secret.slice(16, 40).toLowerCase())
    }
  })

test('a text that is none is told as it is, up to what a person would read', () => {
  expect(withoutSecrets('eyJ is how tokens begin; sk-lk-v1-12 is no key')).toBe(
    'eyJ is how tokens begin; sk-lk-v1-12 is no key',
  )
  expect(withoutSecrets('x'.repeat(100_000)).length).toBeLessThan(10_000)
})
