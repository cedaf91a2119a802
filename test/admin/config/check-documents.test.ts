// Documents are checked a few entries at a time, with the result and the messages of a check of the whole.
import { expect, test } from 'bun:test'
import { checkDocuments } from '../../../src/admin/config/check-documents.ts'
import { documentBounds, documentShape } from '../../../src/admin/config/document.ts'
import type { Fault } from '../../../src/fault.ts'
import { checkShape, type } from '../../../src/values/shape.ts'
import { rejectionOf } from '../../support/rejection.ts'

const shape = type({
  '+': 'reject',
  'document?': documentShape,
  'documents?': documentShape.array(),
  'prune?': 'boolean',
})
const check = (value: unknown) => checkDocuments(shape, value)
const keys = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ name: `key-${index}`, expires_at: '2027-01-01T00:00:00Z' }))
const document = { latchkey: 1, owner: 'platform', keys: keys(120), issuers: [] }
const presets = [{ slug: 'support', config: { model: 'm' } }]

/** What a check of the whole throws. */
function faultOf(value: unknown): Fault {
  try {
    checkShape(shape, value, documentBounds)
  } catch (error) {
    return error as Fault
  }
  throw new Error('It was not refused')
}

test.each([
  ['one document', { document, prune: true }],
  ['several', { documents: [document, { latchkey: 1, owner: 'team', presets }] }],
  ['no document', {}],
  ['a collection that is empty, and one that is left out', { document: { latchkey: 1, keys: [] } }],
])('%s: the result is that of a check of the whole', async (_, value) => {
  const before = JSON.stringify(value)
  expect(await check(value)).toEqual(checkShape(shape, value, documentBounds))
  expect(JSON.stringify(value)).toBe(before)
})

const withWrong = (index: number, wrong: object) =>
  keys(120).map((key, at) => (at === index ? { ...key, ...wrong } : key))
test.each([
  ['an entry at the end', { document: { ...document, keys: withWrong(117, { name: 7 }) } }],
  ['an entry with two wrong fields', { document: { ...document, keys: withWrong(60, { name: 7, limit: 'x' }) } }],
  ['an unknown field', { document: { ...document, keys: withWrong(3, { nam: 'x' }) } }],
  [
    'an entry of the second document',
    { documents: [document, { ...document, owner: 'b', keys: withWrong(51, { limit: -1 }) }] },
  ],
  ['an entry that is no object', { document: { ...document, keys: [...keys(70), 'key'] } }],
  ['a collection that is no list', { document: { ...document, keys: {} } }],
  ['a document that is none', { document: 7 }],
  ['documents that are no list', { documents: {} }],
  ['an unknown field of the document', { document: { ...document, kes: [] } }],
  ['an unknown field of the input', { document, prun: true }],
  ['too many entries', { document: { ...document, keys: keys(5_001) } }],
  ['another version', { document: { ...document, latchkey: 2 } }],
  ['no input', null],
  ['a list', [document]],
  ['a character that libSQL cuts at', { document: { ...document, keys: withWrong(99, { name: 'a\0b' }) } }],
])('%s is refused with the message of a check of the whole', async (_, value) => {
  const expected = faultOf(value)
  const found = await rejectionOf(check(value))
  expect([found.code, found.message]).toEqual([expected.code, expected.message])
  expect((found as Fault & { field?: string }).field).toBe((expected as Fault & { field?: string }).field)
})
