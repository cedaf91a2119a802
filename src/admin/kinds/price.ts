// The fields of a price: US dollars per million tokens, and for what is not counted in tokens, of the models that a
// pattern names.

import type { Price } from '../../../db/schema/upstream-schema.ts'
import { countMax, modelCharactersMax, priceDollarsMax } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import { moneyShape, timeShape } from '../../values/shapes.ts'
import { type Fields, type StoredForm, storedMoney, storedTime } from './fields.ts'

const dollars = moneyShape(priceDollarsMax)
export const laterPricesMax = 20

/** What a price can be at a time, in US dollars. */
const amounts = {
  prompt: dollars,
  completion: dollars,
  'cached?': dollars.or('null'),
  'character?': dollars.or('null'),
  'image?': dollars.or('null'),
  'audio_second?': dollars.or('null'),
} as const
const laterShape = type({ '+': 'reject', from: timeShape, ...amounts })
  .array()
  .atMostLength(laterPricesMax)
  .narrow((list, context) => {
    const times = new Set(list.map(({ from }) => from.getTime()))
    return times.size === list.length || context.mustBe('without a second price from the same time')
  })
  .configure({ says: 'Prices that take effect later, each instead of all amounts before' })
export type LaterPrice = (typeof laterShape.infer)[number]

/** As JSON, by time, without what is null. */
const storedLater: StoredForm = {
  toColumn: (value) => {
    const list = (value ?? []) as LaterPrice[]
    if (list.length === 0) return null
    const sorted = list.toSorted((one, other) => one.from.getTime() - other.from.getTime())
    return JSON.stringify(sorted.map((each) => omitNulls({ ...each, from: each.from.toISOString() })))
  },
  toShown: (value) => JSON.parse(String(value)),
}

/** What the column has. */
export function laterPricesIn(later: string | null): LaterPrice[] {
  const list = JSON.parse(later ?? '[]') as (Omit<LaterPrice, 'from'> & { from: string })[]
  return list.map((each) => ({ ...each, from: new Date(each.from) }))
}

function omitNulls(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== null && each !== undefined))
}

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
  max_output_tokens: {
    shape: type(`1 <= number.integer <= ${countMax}`).or('null'),
    column: 'maxOutputTokens',
    shown: 'number.integer | null',
    flag: {
      option: '--max-output-tokens <count>',
      says: 'the most tokens that a response has, which budgets with --hold worst hold',
      form: 'number',
    },
  },
  later: {
    shape: laterShape.or('null'),
    column: 'later',
    stored: storedLater,
    shown: type({
      from: 'string',
      prompt: 'number',
      completion: 'number',
      'cached?': 'number',
      'character?': 'number',
      'image?': 'number',
      'audio_second?': 'number',
    })
      .array()
      .or('null'),
    flag: {
      option: '--later <file>',
      says: 'JSON file with prices that take effect later: [{ "from": "2027-01-01", "prompt": 0.2, "completion": 0.8 }]',
      form: 'json-file',
    },
  },
  managed_by: { column: 'managedBy', shown: 'string | null' },
  updated_at: { column: 'updatedAt', stored: storedTime, shown: 'string' },
} as const satisfies Fields<Price>
