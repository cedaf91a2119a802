// The fields of a price: US dollars per million tokens, and for what is not counted in tokens, of the models that a
// pattern names.

import type { Price } from '../../../db/schema/upstream-schema.ts'
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
  character: {
    shape: dollars.or('null'),
    column: 'characterNanodollars',
    stored: storedMoney,
    shown: 'number | null',
    flag: { option: '--character <dollars>', says: 'US dollars per million characters of speech', form: 'money' },
  },
  image: {
    shape: dollars.or('null'),
    column: 'imageNanodollars',
    stored: storedMoney,
    shown: 'number | null',
    flag: { option: '--image <dollars>', says: 'US dollars per image', form: 'money' },
  },
  audio_second: {
    shape: dollars.or('null'),
    column: 'audioSecondNanodollars',
    stored: storedMoney,
    shown: 'number | null',
    flag: { option: '--audio-second <dollars>', says: 'US dollars per second of audio', form: 'money' },
  },
  managed_by: { column: 'managedBy', shown: 'string | null' },
  updated_at: { column: 'updatedAt', stored: storedTime, shown: 'string' },
} as const satisfies Fields<Price>
