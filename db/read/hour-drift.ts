// Compares the two totals of the ledger, to which the same commits add: by hour, which budgets are read from, and by key and day.
import { sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { readHours } from '../tables/budgets.ts'

type KeyDay = { keyId: string; day: number }
type Sums = [requests: number, tokens: number, nanodollars: number]

const daysAtOnce = 2_000

/**
 * Returns the days of keys whose totals by hour differ from those by day. A day that seems to differ is read again by one statement: requests
 * that end meanwhile are no drift.
 */
export async function findHourDrift(orm: Orm): Promise<KeyDay[]> {
  const sums = new Map<string, Sums>()
  const add = (name: string, values: Sums, sign: 1 | -1) => {
    const known = sums.get(name) ?? [0, 0, 0]
    sums.set(name, known.map((value, index) => value + sign * (values[index] ?? 0)) as Sums)
  }
  for await (const { totals } of readHours(orm, 0))
    for (const [hour, keyId, , , , requests, tokens, nanodollars] of totals)
      add(`${keyId} ${Math.floor(hour / 24)}`, [requests, tokens, nanodollars], 1)
  for (let [last, lastDay] = ['', 0]; ; ) {
    const rows = await orm.all<{
      keyId: string
      day: number
      requests: number
      tokens: number
      nanodollars: number
    }>(sql`
      select key_id as "keyId", day, requests, total_tokens as tokens, cost_nanodollars as nanodollars from day_totals
      where (key_id, day) > (${last}, ${lastDay}) order by key_id, day limit ${daysAtOnce}`)
    for (const { keyId, day, requests, tokens, nanodollars } of rows)
      add(`${keyId} ${day}`, [requests, tokens, nanodollars], -1)
    const end = rows.at(-1)
    if (end === undefined || rows.length < daysAtOnce) break
    ;[last, lastDay] = [end.keyId, end.day]
  }
  const drift: KeyDay[] = []
  for (const [name, values] of sums) {
    const at = name.lastIndexOf(' ')
    const keyDay = { keyId: name.slice(0, at), day: Number(name.slice(at + 1)) }
    if (values.some((value) => value !== 0) && (await isDrift(orm, keyDay))) drift.push(keyDay)
  }
  return drift
}

async function isDrift(orm: Orm, { keyId, day }: KeyDay): Promise<boolean> {
  const [found] = await orm.all<{ same: number }>(sql`
    select (select json_array(coalesce(sum(requests), 0), coalesce(sum(total_tokens), 0), coalesce(sum(cost_nanodollars), 0))
      from hour_totals where hour >= ${day * 24} and hour < ${day * 24 + 24} and key_id = ${keyId})
    = (select json_array(coalesce(sum(requests), 0), coalesce(sum(total_tokens), 0), coalesce(sum(cost_nanodollars), 0))
      from day_totals where key_id = ${keyId} and day = ${day}) as same`)
  return found?.same !== 1
}
