// Whose usage the requests of an access token are (reference: Attribution): the text that a policy makes of a verified
// token. It is compiled and bounded like a condition.
import { attributionProblem } from '../values/attribution-text.ts'
import { deferCache } from '../values/deferred-cache.ts'
import { activationOf } from './condition/activation.ts'
import {
  type Condition,
  compileText,
  conditionEnvironment,
  describeEvaluationError,
  isConditionFault,
} from './condition/compile.ts'
import type { Policy } from './policy.ts'
import type { SubjectToken } from './subject-token/claims.ts'
import { isRefusal, type Refusal, refuse } from './subject-token/refusal.ts'

type AttributionInput = Pick<Policy, 'attributeTo' | 'attributeEnvironment'>

/** The most recently used expressions by source, because policies often share one. */
const compiled = deferCache<Condition>(2_000)

/**
 * Returns what a policy attributes to, compiled at first use, undefined if it says nothing, or a string with the reason
 * why it cannot be evaluated.
 */
export function attributionOf({ attributeTo, attributeEnvironment }: AttributionInput): Condition | string | undefined {
  if (attributeTo === null) return undefined
  if (attributeEnvironment !== conditionEnvironment)
    return `attribute_to of environment ${attributeEnvironment}: save it again`
  const known = compiled().get(attributeTo)
  if (known !== undefined) return known
  const expression = compileText(attributeTo)
  if (isConditionFault(expression)) return `attribute_to: ${expression.message}`
  compiled().set(attributeTo, expression)
  return expression
}

/** Returns the attribution of a token under a policy that has one; anything but a short text refuses the exchange. */
export function attribute(policy: AttributionInput, token: SubjectToken): string | Refusal {
  const expression = attributionOf(policy)
  if (expression === undefined) return token.subject
  if (typeof expression === 'string') return refuse('attribution_failed', expression)
  const view = activationOf(token, expression.usesClaims)
  if (isRefusal(view)) return refuse('attribution_failed', `${view.refused} ${view.detail ?? ''}`.trim())
  try {
    const value = expression.evaluate(view)
    const problem = attributionProblem(value)
    return problem === undefined ? String(value) : refuse('attribution_failed', `The result ${problem}`)
  } catch (error) {
    return refuse('attribution_failed', describeEvaluationError(error))
  }
}
