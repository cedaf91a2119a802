import { beforeEach, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { isSignedBy, signJwt } from '../../src/tokens/jws.ts'
import { isLoneSignature, runOnPool } from '../../src/tokens/signature-load.ts'

/** After two turns without a signature, nothing of an earlier test counts. */
beforeEach(async () => {
  isLoneSignature()
  await nextTurn()
  await nextTurn()
})

const signatures = (count: number) => Array.from({ length: count }, isLoneSignature)

test('two signatures in a turn are verified at once, turn after turn', async () => {
  for (let turn = 0; turn < 5; turn++) {
    expect(signatures(2)).toEqual([true, true])
    await nextTurn()
  }
})

test('more signatures in one turn go to the pool, and so do those of the next turn', async () => {
  expect(signatures(5)).toEqual([true, true, false, false, false])
  await nextTurn()
  expect(signatures(2)).toEqual([false, false])
  await nextTurn()
  expect(signatures(2)).toEqual([true, true])
})

test('after a crowd and a quiet turn, a lone signature is verified at once', async () => {
  signatures(50)
  await nextTurn()
  await nextTurn()
  await nextTurn()
  expect(signatures(2)).toEqual([true, true])
})

test('while the pool is at work, every signature goes there', async () => {
  const work = Promise.withResolvers<string>()
  const running = runOnPool(() => work.promise)
  expect(signatures(1)).toEqual([false])
  await nextTurn()
  expect(signatures(1)).toEqual([false])
  work.resolve('done')
  expect(await running).toBe('done')
  await nextTurn()
  expect(signatures(1)).toEqual([true])
})

test('work on the pool that fails is over, too', async () => {
  await expect(runOnPool(() => Promise.reject(new Error('No')))).rejects.toThrow('No')
  expect(signatures(1)).toEqual([true])
})

test('a signature is valid either way, and a changed one is not', async () => {
  const { privateKey: privateKeyObject, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const curve = { name: 'ECDSA', namedCurve: 'P-256' }
  const pkcs8 = privateKeyObject.export({ format: 'der', type: 'pkcs8' })
  const privateKey = await crypto.subtle.importKey('pkcs8', pkcs8, curve, false, ['sign'])
  const jwk = publicKey.export({ format: 'jwk' }) as JsonWebKey
  const imported = await crypto.subtle.importKey('jwk', jwk, curve, true, ['verify'])
  const key = { cryptoKey: async () => imported }

  const sign = (index: number) => signJwt({ alg: 'ES256' }, { index }, { privateKey, privateKeyObject })
  const verify = (text: string) => isSignedBy(text, 'ES256', key)
  const texts = await Promise.all(Array.from({ length: 6 }, (_, index) => sign(index)))
  // The first two of a turn are verified at once, the others on the pool.
  await nextTurn()
  await nextTurn()
  expect(await Promise.all(texts.map(verify))).toEqual(texts.map(() => true))
  await nextTurn()
  const changed = texts.map((text) => text.replace(/\.([^.]{2})/, '.AA'))
  expect(await Promise.all(changed.map(verify))).toEqual(texts.map(() => false))
  await nextTurn()
  for (const text of texts) {
    expect(await verify(text)).toBe(true)
    await nextTurn()
  }
})
