// The totals that are written in the commit of usage rows: by key and day, and by hour with everything that budgets distinguish.
import type { InValue } from '@libsql/client'
import { getTableColumns, getTableName } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { type UsageHour, usageHours } from '../schema/budget-schema.ts'
import { type UsageDay, type UsageRow, usageDays } from '../schema/record-schema.ts'
import type { BoundStatement } from './rows.ts'

const hourMilliseconds = 60 * 60 * 1_000
const dayMilliseconds = 24 * hourMilliseconds

/** A table of totals: the columns that name a total, and those that are added up. */
type Totals<Total> = { fields: (keyof Total & string)[]; of: (totals: number) => string }

function totalsIn<Total>(table: SQLiteTable, names: readonly string[]): Totals<Total> {
  const columns = Object.entries(getTableColumns(table))
  const tuple = `(${columns.map(() => '?').join(',')})`
  const summed = columns.flatMap(([field, { name }]) => (names.includes(field) ? [] : [name]))
  const keys = columns.flatMap(([field, { name }]) => (names.includes(field) ? [name] : []))
  const into = `insert into ${getTableName(table)} (${columns.map(([, { name }]) => name).join(',')}) values `
  const added = ` on conflict (${keys.join(',')}) do update set ${summed.map((name) => `${name} = min(${name} + excluded.${name}, ${Number.MAX_SAFE_INTEGER})`).join(', ')}`
  const of = (totals: number) => into + new Array(totals).fill(tuple).join(',') + added
  const single = of(1)
  return {
    fields: columns.map(([field]) => field as keyof Total & string),
    of: (totals) => (totals === 1 ? single : of(totals)),
  }
}

const days = totalsIn<UsageDay>(usageDays, ['keyId', 'day'])
const hours = totalsIn<UsageHour>(usageHours, ['hour', 'keyId', 'policyId', 'attribution', 'model'])

/** Returns one statement for each table of totals that adds the rows of a commit. */
export function usageSums(rows: readonly UsageRow[]): BoundStatement[] {
  const byDay = new Map<string, UsageDay>()
  const byHour = new Map<string, UsageHour>()
  let before: { row: UsageRow; total: UsageHour } | undefined
  for (const row of rows) {
    addToDay(byDay, row)
    // Rows of one commit mostly have the same total, so that its name need not be made again.
    const total: UsageHour = before !== undefined && isSameHour(before.row, row) ? before.total : hourOf(byHour, row)
    before = { row, total }
    addToHour(total, row)
  }
  return [toStatement(days, byDay), toStatement(hours, byHour)]
}

function toStatement<Total>({ fields, of }: Totals<Total>, totals: Map<string, Total>): BoundStatement {
  const args: InValue[] = []
  for (const total of totals.values()) for (const field of fields) args.push(total[field] as string | number)
  return { sql: of(totals.size), args }
}

function addToDay(totals: Map<string, UsageDay>, row: UsageRow): void {
  const { keyId } = row
  const day = Math.floor(row.at / dayMilliseconds)
  const name = `${keyId} ${day}`
  let total = totals.get(name)
  if (total === undefined) {
    total = { keyId, day, requests: 0, promptTokens: 0, completionTokens: 0, totalTokens: 0, costNanodollars: 0 }
    totals.set(name, total)
  }
  total.requests += 1
  total.promptTokens = sumOf(total.promptTokens, row.promptTokens)
  total.completionTokens = sumOf(total.completionTokens, row.completionTokens)
  total.totalTokens = sumOf(total.totalTokens, row.totalTokens)
  total.costNanodollars = sumOf(total.costNanodollars, row.costNanodollars)
}

function isSameHour(one: UsageRow, other: UsageRow): boolean {
  return (
    one.keyId === other.keyId &&
    one.policyId === other.policyId &&
    one.attribution === other.attribution &&
    one.model === other.model &&
    Math.floor(one.at / hourMilliseconds) === Math.floor(other.at / hourMilliseconds)
  )
}

function hourOf(totals: Map<string, UsageHour>, row: UsageRow): UsageHour {
  const { keyId } = row
  const hour = Math.floor(row.at / hourMilliseconds)
  const [policyId, attribution, model] = [row.policyId ?? '', row.attribution ?? '', row.model ?? '']
  // Ids have no spaces. Only the last of two texts may end anywhere.
  const name = `${hour} ${keyId} ${policyId} ${attribution.length} ${attribution}${model}`
  let total = totals.get(name)
  if (total === undefined) {
    total = { hour, keyId, policyId, attribution, model, requests: 0, totalTokens: 0, costNanodollars: 0 }
    totals.set(name, total)
  }
  return total
}

function addToHour(total: UsageHour, row: UsageRow): void {
  total.requests += 1
  total.totalTokens = sumOf(total.totalTokens, row.totalTokens)
  total.costNanodollars = sumOf(total.costNanodollars, row.costNanodollars)
}

/** Adds up to the largest safe integer, because libSQL cannot read larger ones. */
function sumOf(known: number, more: number | null): number {
  return Math.min(known + (more ?? 0), Number.MAX_SAFE_INTEGER)
}
