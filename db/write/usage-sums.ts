// The totals that are written in the commit of usage rows: by key and day, and by hour with everything that budgets distinguish.
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
export function usageSums(rows: UsageRow[]): BoundStatement[] {
  return [toStatement(days, sumUp(rows, dayOf, addToDay)), toStatement(hours, sumUp(rows, hourOf, addToHour))]
}

function toStatement<Total extends object>({ fields, of }: Totals<Total>, totals: Total[]): BoundStatement {
  const args = totals.flatMap((total) => fields.map((field) => total[field] as string | number))
  return { sql: of(totals.length), args }
}

function sumUp<Total>(
  rows: UsageRow[],
  totalOf: (row: UsageRow) => { name: string; total: () => Total },
  add: (total: Total, row: UsageRow) => void,
): Total[] {
  const totals = new Map<string, Total>()
  for (const row of rows) {
    const { name, total } = totalOf(row)
    const known = totals.get(name) ?? total()
    totals.set(name, known)
    add(known, row)
  }
  return [...totals.values()]
}

function dayOf({ keyId, at }: UsageRow) {
  const day = Math.floor(at / dayMilliseconds)
  const none = { requests: 0, promptTokens: 0, completionTokens: 0, totalTokens: 0, costNanodollars: 0 }
  return { name: `${keyId} ${day}`, total: (): UsageDay => ({ keyId, day, ...none }) }
}

function addToDay(total: UsageDay, row: UsageRow): void {
  total.requests += 1
  total.promptTokens = sumOf(total.promptTokens, row.promptTokens)
  total.completionTokens = sumOf(total.completionTokens, row.completionTokens)
  total.totalTokens = sumOf(total.totalTokens, row.totalTokens)
  total.costNanodollars = sumOf(total.costNanodollars, row.costNanodollars)
}

function hourOf({ at, keyId, ...row }: UsageRow) {
  const hour = Math.floor(at / hourMilliseconds)
  const [policyId = '', attribution = '', model = ''] = [row.policyId ?? '', row.attribution ?? '', row.model ?? '']
  const names = { hour, keyId, policyId, attribution, model }
  const total = (): UsageHour => ({ ...names, requests: 0, totalTokens: 0, costNanodollars: 0 })
  return { name: JSON.stringify(Object.values(names)), total }
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
