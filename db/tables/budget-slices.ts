// The slices of budgets that nodes of a server database have taken. A node renews them every second, and has none five seconds after it is gone.
import { and, eq, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { budgetSlices } from '../schema/budget-schema.ts'
import { databaseTime, nodeMilliseconds } from '../schema/node-schema.ts'
import type { Statement } from '../write/rows.ts'

/** One counter of a budget. */
export type SlicedCounter = { budgetId: string; counter: string }
/** Amounts of a slice: whole numbers; zero for what the budget does not limit. */
export type SliceAmounts = { requests: number; tokens: number; nanodollars: number }
/**
 * `held`: what running requests of the node hold. `own`: what one more needs. `wanted`: the slice that would do for some more. `left`: what
 * the ledger leaves of the budget, as far as the node knows.
 */
export type SliceRequest = Record<'held' | 'own' | 'wanted' | 'left', SliceAmounts>

const isTaken = `until > ${databaseTime}`
const units = ['requests', 'tokens', 'nanodollars'] as const

/**
 * Gives a node a larger slice if the slices of other live nodes leave room for one more request, or if no request runs anywhere. Otherwise its
 * slice becomes what it holds. Parameters: budget, counter, node, then held, own, wanted and left of each unit.
 */
const take = (() => {
  const parameter = (unit: number, name: number) => `?${4 + unit * 4 + name}`
  const [others, isAlone] = [(unit: string) => `others.${unit}`, `(others.requests = 0 and ${parameter(0, 0)} = 0)`]
  const room = (unit: string, index: number) => `${parameter(index, 3)} - ${others(unit)}`
  const needed = (index: number) => `${parameter(index, 0)} + ${parameter(index, 1)}`
  const fits = units.map((unit, index) => `${needed(index)} <= ${room(unit, index)}`).join(' and ')
  const granted = units.map((unit, index) => {
    const larger = `max(${needed(index)}, min(${parameter(index, 2)}, ${room(unit, index)}))`
    return `iif((${fits}) or ${isAlone}, ${larger}, ${parameter(index, 0)})`
  })
  const sums = units.map((unit) => `coalesce(sum(${unit}), 0) as ${unit}`)
  return `insert into budget_slices (budget_id, counter, node_id, ${units.join(', ')}, until)
    select ?1, ?2, ?3, ${granted.join(', ')}, ${databaseTime} + ${nodeMilliseconds} from (
      select ${sums.join(', ')} from budget_slices
      where budget_id = ?1 and counter = ?2 and node_id <> ?3 and ${isTaken}
    ) as others where true
    on conflict (budget_id, counter, node_id) do update set
      ${[...units, 'until'].map((name) => `${name} = excluded.${name}`).join(', ')}`
})()

export function takeSlice(nodeId: string, { budgetId, counter }: SlicedCounter, asked: SliceRequest): Statement {
  const { held, own, wanted, left } = asked
  const amounts = units.flatMap((unit) => [held[unit], own[unit], wanted[unit], left[unit]])
  return statement(take, [budgetId, counter, nodeId, ...amounts])
}

/** Lists the slices of a counter that nodes have. */
export function listSlices(
  orm: Orm,
  { budgetId, counter }: SlicedCounter,
): Promise<(SliceAmounts & { nodeId: string })[]> {
  const { nodeId, requests, tokens, nanodollars } = budgetSlices
  return orm
    .select({ nodeId, requests, tokens, nanodollars })
    .from(budgetSlices)
    .where(and(eq(budgetSlices.budgetId, budgetId), eq(budgetSlices.counter, counter), sql.raw(isTaken)))
}

/** Renews the slices of a node until `milliseconds` from now, with these as they are now, and removes those of zero requests and of lost nodes. */
export function renewSlices(
  nodeId: string,
  slices: readonly (SlicedCounter & SliceAmounts)[],
  milliseconds = nodeMilliseconds,
): Statement[] {
  const until = `${databaseTime} + ${milliseconds}`
  const rows = slices.map((slice) => [slice.budgetId, slice.counter, slice.requests, slice.tokens, slice.nanodollars])
  const put = `insert or replace into budget_slices (budget_id, counter, node_id, requests, tokens, nanodollars, until)
    select value ->> 0, value ->> 1, ?1, value ->> 2, value ->> 3, value ->> 4, 0 from json_each(?2)`
  return [
    ...(rows.length === 0 ? [] : [statement(put, [nodeId, JSON.stringify(rows)])]),
    statement(`update budget_slices set until = ${until} where node_id = ?`, [nodeId]),
    statement(`delete from budget_slices where not ${isTaken} or (node_id = ? and requests = 0)`, [nodeId]),
  ]
}

/** Removes the slices of a node that has ended. */
export function dropSlices(nodeId: string): Statement {
  return statement('delete from budget_slices where node_id = ?', [nodeId])
}

function statement(sql: string, params: (string | number)[]): Statement {
  return { toSQL: () => ({ sql, params }) }
}
