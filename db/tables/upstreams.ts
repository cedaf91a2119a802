// Upstreams (inference servers) and the prices of models.
import { and, asc, eq, gt, inArray, isNull } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { nextSlice } from '../read/pace.ts'
import { type Price, prices, type Upstream, upstreams } from '../schema/upstream-schema.ts'
import type { Statement } from '../write/rows.ts'
import { inChunks, insertion, insertRows } from '../write/rows.ts'

export function insertUpstream(orm: Orm, row: Upstream): Statement {
  return orm.insert(upstreams).values(row)
}

export function updateUpstream(orm: Orm, id: string, change: Partial<Upstream>): Statement {
  return orm.update(upstreams).set(change).where(eq(upstreams.id, id))
}

/** Prices read per slice. */
const pricesPerSlice = 250

/** Lists the current prices by model, in slices: the price list of a provider can have thousands. */
export async function listPrices(orm: Orm): Promise<Price[]> {
  const listed: Price[] = []
  for (;;) {
    const rows = await orm
      .select()
      .from(prices)
      .where(and(isNull(prices.deletedAt), gt(prices.model, listed.at(-1)?.model ?? '')))
      .orderBy(asc(prices.model))
      .limit(pricesPerSlice)
    listed.push(...rows)
    if (rows.length < pricesPerSlice) return listed
    await nextSlice()
  }
}

/** Finds the prices of these models in slices, including deleted ones. */
export async function findPrices(orm: Orm, models: string[]): Promise<Price[]> {
  const found: Price[] = []
  for (let start = 0; start < models.length; start += pricesPerSlice) {
    const some = models.slice(start, start + pricesPerSlice)
    found.push(...(await orm.select().from(prices).where(inArray(prices.model, some))))
    if (start + pricesPerSlice < models.length) await nextSlice()
  }
  return found
}

const newPrices = insertion(prices, 'insert or replace')

/** Replaces existing prices. If a model occurs twice, the last price wins. */
export function putPrices(rows: Price[]): Statement[] {
  return inChunks(rows).map((some) => insertRows(newPrices, some))
}

export function deletePrice(orm: Orm, model: string, now: number): Statement {
  return orm.update(prices).set({ deletedAt: now, updatedAt: now }).where(eq(prices.model, model))
}
