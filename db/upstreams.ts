// Inference servers, and what their models cost.
import { asc, eq, isNull } from 'drizzle-orm'
import type { Orm } from './open.ts'
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

export function putPrice(orm: Orm, row: Price): Statement {
  return orm.insert(prices).values(row).onConflictDoUpdate({ target: prices.model, set: row })
}

export function deletePrice(orm: Orm, model: string, now: number): Statement {
  return orm.update(prices).set({ deletedAt: now, updatedAt: now }).where(eq(prices.model, model))
}
