// The shapes of values and the JSON Schema that they give for the OpenAPI document refuse the same values.
import { describe, expect, test } from 'bun:test'
import Ajv2020 from 'ajv/dist/2020.js'
import fc from 'fast-check'
import type { Fault } from '../../src/fault.ts'
import { type Shape, schemaOf } from '../../src/http/operation-doc.ts'
import { errorMetadata } from '../../src/http/reply.ts'
import { keyBounds } from '../../src/keys/settable-limits.ts'
import { presetChanges, presetPage, slugShape } from '../../src/presets/shapes.ts'
import { checkShape, type } from '../../src/values/shape.ts'
import {
  claimValueShape,
  modelPatternsShape,
  moneyShape,
  nameShape,
  offsetShape,
  presetPatternsShape,
  rateShape,
  referenceShape,
  timeShape,
  uuidShape,
} from '../../src/values/shapes.ts'

const ajv = new Ajv2020({ strict: false })
const uuid = '5f0f1c1e-3f5b-4d0e-9c53-2f1b7a6c8d90'

const pieces = fc.constantFrom(
  ...[
    'a',
    'é',
    '😀',
    'x'.repeat(126),
    'x'.repeat(254),
    '😀'.repeat(510),
    ' ',
    '\n',
    '\0',
    '\u0007',
    '\u200b',
    '\ufeff',
  ],
  ...['.', '..', 'check', 'verify', ',', '*', '@preset/', uuid, uuid.toUpperCase(), 'ab'.repeat(32), 'AB'.repeat(32)],
  ...['2028', '-02', '-29', '-30', '-31', 'T09:30', ':15', '.123', 'Z', '+02:00', '+24:00', '2028-02-30', '0089-05-02'],
)
const text = fc.array(pieces, { maxLength: 4 }).map((parts) => parts.join(''))
const number = fc.oneof(
  fc.constantFrom(-1, 0, 1e-10, 1e-9, 0.5, 1, 1_000_000, 1_000_001, 1e9, 1e9 + 1, 2 ** 53 - 1, 2 ** 53),
  fc.integer(),
)
const value = fc.oneof(text, number, fc.array(text, { maxLength: 66 }), fc.constantFrom(null, true, {}))

const shapes: Record<string, Shape & ((value: unknown) => unknown)> = {
  name: nameShape,
  reference: referenceShape,
  'value of a claim': claimValueShape,
  UUID: uuidShape,
  slug: slugShape,
  'amount of money': moneyShape(1_000_000),
  rate: rateShape,
  offset: offsetShape,
  'list of models': modelPatternsShape,
  'list of presets': presetPatternsShape,
  bounds: type({ '+': 'reject', ...keyBounds }),
  'change of a preset': type({ '+': 'reject', ...presetChanges }),
  page: type({ '+': 'reject', ...presetPage }),
}

describe('the schema refuses what the shape refuses, and nothing else:', () => {
  for (const [name, shape] of Object.entries(shapes)) {
    test(name, () => {
      const { properties } = schemaOf(shape)
      const fits = ajv.compile(schemaOf(shape))
      const names = fc.constantFrom(...Object.keys(properties ?? { x: {} }), 'other')
      const input = properties === undefined ? value : fc.dictionary(names, value, { maxKeys: 2 })
      const agree = (input: unknown) => {
        const isTaken = !(shape(input) instanceof type.errors)
        // Which days exist is in the description.
        if (!isTaken && JSON.stringify(input).includes('-02-30')) return
        expect({ input, fits: fits(input) }).toEqual({ input, fits: isTaken })
      }
      fc.assert(fc.property(input, agree), { numRuns: 2_000 })
    })
  }
})

test('a time fits the schema when it is one, but for days that no month has', () => {
  const fits = ajv.compile(schemaOf(timeShape))
  fc.assert(
    fc.property(text, (text) => {
      const isTaken = !(timeShape(text) instanceof type.errors)
      // A schema does not know how long a month is.
      const isNoDay = /^....-(02-(29|30|31)|(04|06|09|11)-31)/.test(text)
      expect(isTaken ? [true] : [false, isNoDay]).toContain(fits(text))
    }),
    { numRuns: 2_000 },
  )
  for (const real of [
    '2028-02-29',
    '2026-11-21T09:30:00Z',
    '2026-11-21T10:30+01:00',
    '9999-12-31T23:59:59.999999999-23:59',
  ])
    expect([fits(real), timeShape(real) instanceof type.errors]).toEqual([true, false])
})

test('a message names a character that nobody sees, and does not have it', () => {
  const refused = () => checkShape(type({ name: nameShape }), { name: 'a\u202eb' })
  expect(refused).toThrow('‹U+202E›')
  expect(refused).not.toThrow('\u202e')
})

test('a refusal names each field that it is about, with a message for each', () => {
  const shape = type({ name: nameShape, 'rate?': rateShape, 'labels?': 'Record<string, string>' })
  const refusalOf = (value: unknown) => {
    try {
      return checkShape(shape, value)
    } catch (error) {
      return error
    }
  }
  const both = refusalOf({ name: '', rate: 0 })
  expect(both).toMatchObject({
    field: 'name',
    fields: { name: expect.stringContaining('1 to 128'), rate: expect.stringContaining('at least 1') },
  })
  expect(errorMetadata(both as Fault)).toHaveProperty('fields.rate')
  expect(refusalOf({ name: 'n', rate: 0 })).toMatchObject({ field: 'rate', fields: undefined })
})
