// Inference servers, and what their models cost.
import { asc, eq, inArray, isNull } from 'drizzle-orm'
import type { Orm } from './open.ts'
import { insertion, insertRows } from './rows.ts'
import { type Price, prices, type Upstream, upstreams } from './schema.ts'
import type { Statement } from './write.ts'

export function insertUpstream(orm: Orm, row: Upstream): Statement {
  return orm.insert(upstreams).values(row)
}

export function updateUpstream(orm: Orm, id: string, change: Partial<Upstream>): Statement {
  return orm.update(upstreams).set(change).where(eq(upstreams.id, id))
}

export function listPrices(orm: Orm): Promise<Price[]> {
  return orm.select().from(prices).where(isNull(prices.deletedAt)).orderBy(asc(prices.model))
}

/** Those of these models, deleted ones included. */
export function findPrices(orm: Orm, models: string[]): Promise<Price[]> {
  return orm.select().from(prices).where(inArray(prices.model, models))
}

const newPrices = insertion(prices, 'insert or replace')
const rowsPerStatement = 1_000

/** One that is there already is replaced; of two for one model the last stays. */
export function putPrices(rows: Price[]): Statement[] {
  const statements: Statement[] = []
  for (let start = 0; start < rows.length; start += rowsPerStatement)
    statements.push(insertRows(newPrices, rows.slice(start, start + rowsPerStatement)))
  return statements
}

export function deletePrice(orm: Orm, model: string, now: number): Statement {
  return orm.update(prices).set({ deletedAt: now, updatedAt: now }).where(eq(prices.model, model))
}
