// What can be set on an API key beside its name, for the commands and the key endpoints.
import { fairBys, limitResets, queueClasses } from '../../db/schema/value-names.ts'
import { keyLimitDollarsMax } from '../limits.ts'
import { queueSecondsShape, runningRequestsShape, weightShape } from '../values/queue-bounds.ts'
import { type } from '../values/shape.ts'
import { modelPatternsShape, moneyShape, presetPatternsShape, rateShape, timeShape } from '../values/shapes.ts'
import { attributionHeaderShape, labelsShape } from './key-shapes.ts'

/** Null removes what is set. Money in US dollars. */
export const keyBounds = {
  'expires_at?': timeShape.or('null'),
  'limit?': moneyShape(keyLimitDollarsMax).or('null'),
  'limit_reset?': type.enumerated(...limitResets).or('null'),
  'requests_per_minute?': rateShape.or('null'),
  'tokens_per_minute?': rateShape.or('null'),
  'allowed_models?': modelPatternsShape.or('null'),
  'allowed_presets?': presetPatternsShape.or('null'),
  'labels?': labelsShape.or('null'),
  'attribute_from_header?': attributionHeaderShape.or('null'),
  'concurrent_requests?': runningRequestsShape,
  'queue_class?': type.enumerated(...queueClasses),
  'queue_weight?': weightShape,
  'fair_by?': type.enumerated(...fairBys),
  'queue_seconds?': queueSecondsShape,
} as const
