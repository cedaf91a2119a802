// What lists read of a row that is still packed.
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { headOfKey, headOfPolicy } from '../../src/registry/row-heads.ts'

test('the head of a packed row has any name', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (name) => {
      const key = JSON.stringify(['id', 'hash', '', 'org', null, name, 'label'])
      expect(headOfKey(key)).toEqual({ organizationId: 'org', isDeleted: false, name })
      expect(headOfPolicy(JSON.stringify(['id', 'key', 'issuer', 'org', name, null]))).toEqual({
        organizationId: 'org',
        name,
      })
    }),
    { numRuns: 100 },
  )
  expect(headOfKey('["id","hash","before","org",2,"gone"]').isDeleted).toBe(true)
})
