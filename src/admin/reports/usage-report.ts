// Usage of a bounded time for people: totals by key or another field, page by page, each with its days. Days are whole and in UTC.
import { mapInSlices } from '../../../db/read/pace.ts'
import {
  type DaysFilter,
  reportDays,
  type UsageGroup,
  type UsageTotals,
  valueNamesOf,
} from '../../../db/read/usage-report.ts'
import type { UsageGrouping } from '../../../db/schema/usage-groupings.ts'
import { Fault } from '../../fault.ts'
import { type } from '../../values/shape.ts'
import { offsetShape, timeShape } from '../../values/shapes.ts'
import type { Needs } from '../operation/context.ts'
import { operation } from '../operation/operation.ts'
import { findOrganization, organizationInput, timeOf } from '../operation/references.ts'
import { archivedResponse } from '../operation/responses.ts'
import { archivedOf } from './archived.ts'
import { type Grouping, groupingShape, labelIn } from './grouping.ts'
import { traits, traitsOf } from './report-page.ts'
import { createRowNames, type RowNames } from './row-names.ts'
import { dayText, groupOf } from './usage.ts'
import { showTotals } from './usage-figures.ts'
import { daysInOrder, daysOf, largestFirst, orders, otherDays, sumOf } from './usage-groups.ts'
import { readGroups, rowsReadMax } from './usage-sources.ts'
import { usedAtOf } from './usage-used-at.ts'

const dayMilliseconds = 24 * 60 * 60 * 1_000
const [daysDefault, daysMax] = [30, 92]
const [groupsDefault, groupsMax] = [100, 1_000]

const reportInput = type({
  '+': 'reject',
  ...organizationInput,
  ...traits,
  'by?': groupingShape,
  'since?': timeShape.configure({ says: 'The first day; 29 days before `until` if it is not sent' }),
  'until?': timeShape.configure({
    says: `The last day, at most ${daysMax} days with the first; today if it is not sent`,
  }),
  'per_day?': type('boolean').configure({ says: 'With the totals of each day' }),
  'last_used?': type('boolean').configure({ says: 'With when each group was last used; it takes longer' }),
  'order?': type
    .enumerated(...(Object.keys(orders) as (keyof typeof orders)[]))
    .configure({ says: 'What the largest groups, which come first, have most of; total_tokens if it is not sent' }),
  'days_of?': type(`1 <= number.integer <= ${groupsMax}`).configure({
    says: 'With per_day: only so many groups, the largest, have their days; other_days has the days of all others together',
  }),
  'offset?': offsetShape,
  'limit?': `1 <= number.integer <= ${groupsMax}`,
})

export const usageReportOperations = { 'usage.report': operation(reportInput, reportForCaller) }

/** Open pages ask again and again, so that over HTTP a slow report is kept for a while. */
function reportForCaller(
  context: Needs<'reader' | 'registry' | 'slowReports' | 'now' | 'actor' | 'onProgress'>,
  input: typeof reportInput.infer,
) {
  if (context.actor.kind !== 'key') return report(context, input)
  return context.slowReports(`usage ${JSON.stringify(input)}`, () => report(context, input))
}

async function report(
  context: Needs<'reader' | 'registry' | 'now' | 'onProgress'>,
  { by: asked = 'key', ...input }: typeof reportInput.infer,
) {
  const label = labelIn(asked)
  const by = label === undefined ? (asked as UsageGrouping) : 'key'
  const { registry, now } = context
  const { id: organizationId } = findOrganization(registry, input.organization)
  const { firstDay, lastDay } = daysBetween(input, now())
  const chosen = await traitsOf(context, input)
  const [since, until] = [firstDay * dayMilliseconds, (lastDay + 1) * dayMilliseconds]
  const filter = { ...chosen, organizationId, since, until, limit: 1 }
  const {
    offset = 0,
    limit = groupsDefault,
    per_day: isPerDay = false,
    days_of: daysOfMost,
    order = 'total_tokens',
  } = input
  const withDays = isPerDay && by !== 'day'
  const perDay = by === 'day' || (label !== undefined && withDays)
  const found = await readGroups(context, by, filter, { firstDay, lastDay, perDay, withDays })
  // Totals are kept when rows are archived.
  const archived = found.from === 'ledger' ? await archivedOf(context, { ...filter, kind: 'usage', isWhole: true }) : {}
  const names = createRowNames(registry)
  const wanted = label === undefined ? found.groups : await byLabel(found.groups, label, names)
  const groups = by === 'day' ? daysOf(wanted) : largestFirst(wanted, order)
  const page = groups.slice(offset, offset + limit)
  const withTheirDays = withDays ? new Set(page.slice(0, daysOfMost)) : new Set<UsageGroup>()
  const days = { organizationId, firstDay, lastDay }
  const shownDays = new Map(
    asked === 'key' && found.from === 'days' ? await daysOfKeys(context, withTheirDays, days) : withTheirDays.entries(),
  )
  const usedAt = input.last_used
    ? await usedAtOf(context, by, { ...filter, label, rowsMax: rowsReadMax }, names)
    : undefined
  const data = await mapInSlices(page, async (group) => ({
    ...(await groupOf(asked as Grouping, groupValues(by, group.values, label), names)),
    ...showTotals(group.totals),
    ...(usedAt && { last_used_at: timeOf(usedAt.get(JSON.stringify(group.values)) ?? null) }),
    ...(withTheirDays.has(group) ? { days: daysInOrder(shownDays.get(group)).map(showDay) } : {}),
  }))
  return {
    by: asked,
    since: dayText(firstDay),
    until: dayText(lastDay),
    counted_since: timeOf(Math.max(found.cutAt ?? since, since)),
    total: showTotals(sumOf([...groups.map(({ totals }) => totals), found.rest])),
    total_count: groups.length,
    data,
    ...(withDays && daysOfMost !== undefined
      ? { other_days: otherDays(found.days, shownDays.values()).map(showDay) }
      : {}),
    ...archived,
  }
}

/** Of the keys, only those whose days are shown are read by day. */
async function daysOfKeys(
  { reader }: Needs<'reader'>,
  shown: ReadonlySet<UsageGroup>,
  range: Pick<DaysFilter, 'organizationId' | 'firstDay' | 'lastDay'>,
): Promise<[UsageGroup, UsageGroup][]> {
  if (shown.size === 0) return []
  const keyIds = [...shown].map(({ values }) => String(values[0]))
  const { groups } = await reportDays(reader, 'key', { ...range, perDay: true, keyIds })
  return [...shown].map((group) => [group, groups.get(JSON.stringify(group.values)) ?? group])
}

function daysBetween({ since, until }: typeof reportInput.infer, now: number): { firstDay: number; lastDay: number } {
  const dayOf = (time: number) => Math.floor(time / dayMilliseconds)
  const lastDay = dayOf(until?.getTime() ?? now)
  const firstDay = since === undefined ? lastDay - daysDefault + 1 : dayOf(since.getTime())
  if (firstDay > lastDay || lastDay - firstDay >= daysMax)
    throw new Fault('invalid', `since and until must span 1 to ${daysMax} days, with since first`)
  return { firstDay, lastDay }
}

function groupValues(
  by: UsageGrouping,
  values: UsageGroup['values'],
  label: string | undefined,
): Record<string, string | number | null> {
  if (label !== undefined) return { label: values[0] ?? null }
  if (by === 'day') return { day: values[0] ?? 0 }
  return Object.fromEntries(valueNamesOf(by).map((name, index) => [name, values[index] ?? null]))
}

/** The keys of each value of a label as one group, with its days. Keys without the label are one group too. */
async function byLabel(ofKeys: ReadonlyMap<string, UsageGroup>, label: string, names: RowNames) {
  const groups = new Map<string, UsageGroup>()
  for (const { values, totals, days } of ofKeys.values()) {
    const value = (await names.key(String(values[0])))?.labels?.[label] ?? null
    const name = JSON.stringify([value])
    const known = groups.get(name) ?? { values: [value], totals: sumOf([]), days: new Map<number, UsageTotals>() }
    groups.set(name, { ...known, totals: sumOf([known.totals, totals]) })
    for (const [day, ofDay] of days) known.days.set(day, sumOf([known.days.get(day) ?? sumOf([]), ofDay]))
  }
  return groups
}

function showDay([day, totals]: [number, UsageTotals]) {
  const { requests, total_tokens, cost, requests_without_cost } = showTotals(totals)
  return { day: dayText(day), requests, total_tokens, cost, requests_without_cost }
}

const totalsShape = {
  requests: 'number.integer',
  prompt_tokens: 'number.integer',
  completion_tokens: 'number.integer',
  total_tokens: 'number.integer',
  cost: 'number',
  requests_without_cost: 'number.integer',
} as const
const text = 'string | null'
const dayShape = type({
  day: 'string',
  requests: 'number.integer',
  total_tokens: 'number.integer',
  cost: 'number',
  requests_without_cost: 'number.integer',
})

/** `cost` is that of the requests whose cost is known. `counted_since` is later than `since` where there are too many requests to add up. */
export const usageReportResponse = type({
  by: 'string',
  since: 'string',
  until: 'string',
  counted_since: 'string',
  total: totalsShape,
  total_count: 'number.integer',
  data: type({
    'key_id?': text,
    'key_name?': text,
    'key_deleted?': 'boolean',
    'policy_id?': text,
    'policy_name?': text,
    'issuer_id?': text,
    'issuer_url?': text,
    'subject?': text,
    'attribution?': text,
    'label?': text,
    'user?': text,
    'session_id?': text,
    'model?': text,
    'workspace_id?': text,
    'preset_version?': text,
    'upstream?': text,
    'day?': 'string',
    ...totalsShape,
    'last_used_at?': 'string | null',
    'days?': dayShape.array(),
  }).array(),
  'other_days?': dayShape.array(),
  'archived?': archivedResponse.array(),
}).configure({ title: 'UsageReport' })
