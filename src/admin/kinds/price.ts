// The fields of a price: US dollars per million tokens of the models that a pattern names.

import type { Price } from '../../../db/schema/schema.ts'
import { modelCharactersMax, priceDollarsMax } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import { moneyShape } from '../../values/shapes.ts'
import { type Fields, storedMoney, storedTime } from './fields.ts'

const dollars = moneyShape(priceDollarsMax)

export const priceFields = {
  model: { shape: type(`1 <= string <= ${modelCharactersMax}`), required: true, column: 'model', shown: 'string' },
  prompt: {
    shape: dollars,
    required: true,
    column: 'promptNanodollars',
    stored: storedMoney,
    shown: 'number',
    flag: { option: '--prompt <dollars>', says: 'US dollars per million prompt tokens', form: 'money' },
  },
  completion: {
    shape: dollars,
    required: true,
    column: 'completionNanodollars',
    stored: storedMoney,
    shown: 'number',
    flag: { option: '--completion <dollars>', says: 'US dollars per million completion tokens', form: 'money' },
  },
  cached: {
    shape: dollars.or('null'),
    column: 'cachedNanodollars',
    stored: storedMoney,
    shown: 'number | null',
    flag: {
      option: '--cached <dollars>',
      says: 'US dollars per million cached prompt tokens (default: the price of prompt tokens)',
      form: 'money',
    },
  },
  managed_by: { column: 'managedBy', shown: 'string | null' },
  updated_at: { column: 'updatedAt', stored: storedTime, shown: 'string' },
} as const satisfies Fields<Price>
