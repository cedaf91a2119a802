// The limits that can be set on an API key, for the commands and the key endpoints.
import { limitResets } from '../../db/schema/value-names.ts'
import { keyLimitDollarsMax } from '../limits.ts'
import { type } from '../values/shape.ts'
import { modelPatternsShape, moneyShape, presetPatternsShape, rateShape, timeShape } from '../values/shapes.ts'

/** The limits of a key; null removes a limit. Money in US dollars. */
export const keyBounds = {
  'expires_at?': timeShape.or('null'),
  'limit?': moneyShape(keyLimitDollarsMax).or('null'),
  'limit_reset?': type.enumerated(...limitResets).or('null'),
  'requests_per_minute?': rateShape.or('null'),
  'tokens_per_minute?': rateShape.or('null'),
  'allowed_models?': modelPatternsShape.or('null'),
  'allowed_presets?': presetPatternsShape.or('null'),
} as const
