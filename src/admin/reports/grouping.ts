// What totals of usage are grouped by: a column of the ledger, or a label of the keys.
import { type UsageGrouping, usageGroupings } from '../../../db/schema/usage-groupings.ts'
import { labelName } from '../../keys/key-shapes.ts'
import { type } from '../../values/shape.ts'

export type Grouping = UsageGrouping | `label:${string}`

const labelPrefix = 'label:'
const pattern = `^(${usageGroupings.join('|')}|${labelPrefix}${labelName.source.slice(1, -1)})$`

export const groupingShape = type('string')
  .narrow((text, context) => isGrouping(text) || context.mustBe(`one of ${usageGroupings.join(', ')} or label:NAME`))
  .configure({ pattern, says: `One of ${usageGroupings.join(', ')}, or \`label:NAME\` for a label of the keys` })

function isGrouping(text: string): text is Grouping {
  const label = labelIn(text)
  return label === undefined ? usageGroupings.some((name) => name === text) : labelName.test(label)
}

/** The label in `label:NAME`; undefined for a column. */
export function labelIn(by: string): string | undefined {
  return by.startsWith(labelPrefix) ? by.slice(labelPrefix.length) : undefined
}
