// The rules of the values of a budget that have more than a type.

import { type BudgetWindow, budgetPeriods } from '../../../db/schema/budget-schema.ts'
import { labelName, labelsShape } from '../../keys/key-shapes.ts'
import { countMax } from '../../limits.ts'
import { type } from '../../values/shape.ts'
import { modelPatternsShape, moneyShape, referenceShape, textShape } from '../../values/shapes.ts'

const [namesMax, overridesMax] = [500, 1_000]
export const dollarsMax = 1_000_000_000
const reasonCharactersMax = 500

const names = referenceShape.array().moreThanLength(0).atMostLength(namesMax)

export const scopeShape = type({
  '+': 'reject',
  'workspaces?': names,
  'keys?': names,
  'labels?': labelsShape,
  'policies?': names,
  'models?': modelPatternsShape,
}).configure({
  says: 'Which requests count: all that is given must match. Workspaces, keys and policies by name or id, models as patterns',
})

const pattern = `^(key|policy|attribution|session|label:${labelName.source.slice(1, -1)})$`
export const eachShape = type('string')
  .narrow(
    (text, context) =>
      new RegExp(pattern).test(text) || context.mustBe('key, policy, attribution, session or label:NAME'),
  )
  .configure({ pattern, says: 'A counter for each key, policy, attribution, session, or value of a label' })

const counts = type(`0 <= number.integer <= ${countMax * 1_000}`)
const amounts = { 'usd?': moneyShape(dollarsMax), 'tokens?': counts, 'requests?': counts } as const
const hasAmount = ({ usd, tokens, requests }: Omit<BudgetWindow, 'per'>) =>
  [usd, tokens, requests].some((amount) => amount !== undefined)

const windowShape = type({ '+': 'reject', per: type.enumerated(...budgetPeriods), ...amounts }).narrow(
  (window, context) =>
    hasAmount(window) || context.mustBe(`a ${window.per} with an amount: add usd, tokens or requests`),
)

export const windowsShape = windowShape
  .array()
  .atMostLength(budgetPeriods.length)
  .narrow((windows, context) => {
    const periods = windows.map(({ per }) => per)
    const twice = periods.find((per, index) => periods.indexOf(per) !== index)
    return twice === undefined || context.mustBe(`without a second ${twice}: put its amounts into one window`)
  })
  .configure({ says: 'What may be used in each period. All of them apply' })

const [alertsMax, percentMax] = [10, 1_000]
export const alertsShape = type(`1 <= number.integer <= ${percentMax}`)
  .array()
  .atMostLength(alertsMax)
  .configure({ says: 'Percents of what a window allows' })

export const overridesShape = type({ '[string]': windowsShape })
  .narrow(
    (overrides, context) =>
      Object.keys(overrides).length <= overridesMax || context.mustBe(`for at most ${overridesMax} values`),
  )
  .configure({ says: 'Other amounts for single values of `each`' })

/** What a top-up adds. */
export const topUpAmounts = amounts
export const topUpReason = textShape(1, reasonCharactersMax)
export const isTopUp = hasAmount

const shownAmounts = { 'usd?': 'number', 'tokens?': 'number.integer', 'requests?': 'number.integer' } as const
export const shownWindow = type({ per: type.enumerated(...budgetPeriods), ...shownAmounts })
export const shownTopUp = type({
  ...shownAmounts,
  until: 'string',
  because: 'string',
  'value?': 'string',
  at: 'string',
})
