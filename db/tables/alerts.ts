// Alerts, and their deliveries to webhooks. The unique name of an alert makes it happen once, on whichever nodes and however often it is noticed.
import { and, asc, desc, eq, gte, inArray, isNotNull, isNull, lt, lte, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import {
  type Alert,
  type AlertDelivery,
  type AlertType,
  alertDeliveries,
  alerts,
  type Webhook,
} from '../schema/alert-schema.ts'
import { insertion, insertRows, type Statement } from '../write/rows.ts'

export type NewAlert = Pick<Alert, 'id' | 'organizationId' | 'type' | 'subject' | 'data' | 'at' | 'neededUntil'>

const newAlerts = insertion(alerts, 'insert or ignore')
/** A webhook that does not respond for long loses what is newer than this many. */
const waitingMax = 10_000

/**
 * Saves the alerts that are new, each with a delivery for every webhook that wants it. One that exists and has not ended stays as it is,
 * and gets no delivery.
 */
export function raiseAlerts(rows: readonly NewAlert[]): Statement[] {
  const values = rows.map((row) => ({ ...row, data: JSON.stringify(row.data), seenAt: row.at, endedAt: null }))
  const deliveries = `insert or ignore into alert_deliveries (alert_id, webhook_id, attempts, due_at)
    select alerts.id, webhooks.id, 0, alerts.at
    from json_each(?) as raised
      join alerts on alerts.id = raised.value
      join webhooks on webhooks.organization_id = alerts.organization_id
    where webhooks.deleted_at is null and webhooks.enabled = 1
      and exists (select 1 from json_each(webhooks.events) as wanted where wanted.value in ('*', alerts.type))
      and (select count(*) from alert_deliveries as waiting
        where waiting.webhook_id = webhooks.id and waiting.due_at is not null) < ${waitingMax}`
  const params = [JSON.stringify(rows.map(({ id }) => id))]
  return [insertRows(newAlerts, values), { toSQL: () => ({ sql: deliveries, params }) }]
}

/** Which of these ids were saved. */
export async function savedAlerts(orm: Orm, ids: readonly string[]): Promise<Set<string>> {
  const rows = await orm
    .select({ id: alerts.id })
    .from(alerts)
    .where(inArray(alerts.id, [...ids]))
  return new Set(rows.map(({ id }) => id))
}

/** The findings that are open. */
export function listOpenFindings(orm: Orm) {
  const { id, organizationId, subject, data, seenAt } = alerts
  return orm
    .select({ id, organizationId, subject, data, seenAt })
    .from(alerts)
    .where(and(eq(alerts.type, 'finding.opened'), isNull(alerts.endedAt)))
}

export function markSeen(orm: Orm, ids: readonly string[], at: number): Statement {
  return orm
    .update(alerts)
    .set({ seenAt: at })
    .where(inArray(alerts.id, [...ids]))
}

export function endAlerts(orm: Orm, ids: readonly string[], at: number): Statement {
  return orm
    .update(alerts)
    .set({ endedAt: at })
    .where(and(inArray(alerts.id, [...ids]), isNull(alerts.endedAt)))
}

export type DueDelivery = Pick<AlertDelivery, 'alertId' | 'webhookId' | 'attempts'> &
  Pick<Alert, 'type' | 'data' | 'at' | 'organizationId'>

/** The deliveries of a webhook that are due, the longest due first. */
export function listDue(orm: Orm, webhookId: string, now: number, most: number): Promise<DueDelivery[]> {
  const { alertId, attempts } = alertDeliveries
  const { type, data, at, organizationId } = alerts
  return orm
    .select({ alertId, webhookId: alertDeliveries.webhookId, attempts, type, data, at, organizationId })
    .from(alertDeliveries)
    .innerJoin(alerts, eq(alerts.id, alertDeliveries.alertId))
    .where(and(eq(alertDeliveries.webhookId, webhookId), lte(alertDeliveries.dueAt, now)))
    .orderBy(asc(alertDeliveries.dueAt), asc(alerts.at))
    .limit(most)
}

type Delivery = Pick<AlertDelivery, 'alertId' | 'webhookId'>

/** Only one of several nodes gets its claim in. `until`: when others may try, should this process end. */
export function claimDelivery(
  orm: Orm,
  { alertId, webhookId, attempts }: Delivery & { attempts: number },
  { claim, until, now }: { claim: string; until: number; now: number },
): Statement {
  return orm
    .update(alertDeliveries)
    .set({ claim, attempts: attempts + 1, triedAt: now, dueAt: until })
    .where(
      and(
        eq(alertDeliveries.alertId, alertId),
        eq(alertDeliveries.webhookId, webhookId),
        eq(alertDeliveries.attempts, attempts),
        lte(alertDeliveries.dueAt, now),
      ),
    )
}

export async function hasClaim(orm: Orm, { alertId, webhookId }: Delivery, claim: string): Promise<boolean> {
  const [row] = await orm
    .select({ claim: alertDeliveries.claim })
    .from(alertDeliveries)
    .where(and(eq(alertDeliveries.alertId, alertId), eq(alertDeliveries.webhookId, webhookId)))
  return row?.claim === claim
}

/** Makes due what a process claimed that has ended: of a database that only this process has. */
export function releaseClaims(orm: Orm, now: number): Statement {
  return orm
    .update(alertDeliveries)
    .set({ claim: null, dueAt: now })
    .where(and(isNotNull(alertDeliveries.claim), isNotNull(alertDeliveries.dueAt)))
}

export function updateDelivery(
  orm: Orm,
  { alertId, webhookId }: Delivery,
  change: Partial<Pick<AlertDelivery, 'dueAt' | 'deliveredAt' | 'problem' | 'claim'>>,
): Statement {
  return orm
    .update(alertDeliveries)
    .set(change)
    .where(and(eq(alertDeliveries.alertId, alertId), eq(alertDeliveries.webhookId, webhookId)))
}

/** How a webhook fares. Times in milliseconds. */
export type DeliveryState = {
  webhookId: string
  waiting: number
  deliveredAt: number | null
  /** Of the alerts that failed since the last one that was delivered. */
  failingSince: number | null
  attempts: number | null
  problem: string | null
}

export function readDeliveryStates(orm: Orm): Promise<DeliveryState[]> {
  const failed = sql.raw('delivery.delivered_at is null and delivery.tried_at > coalesce(last.at, 0)')
  return orm.all<DeliveryState>(sql`
    select delivery.webhook_id as "webhookId", count(delivery.due_at) as waiting, last.at as "deliveredAt",
      min(alerts.at) filter (where ${failed}) as "failingSince",
      max(delivery.attempts) filter (where ${failed}) as attempts,
      max(delivery.problem) filter (where ${failed}) as problem
    from alert_deliveries as delivery
      join alerts on alerts.id = delivery.alert_id
      join (select webhook_id, max(delivered_at) as at from alert_deliveries group by 1) as last
        on last.webhook_id = delivery.webhook_id
    group by delivery.webhook_id`)
}

/** Since and until: milliseconds, the first included and the second not. */
export type AlertFilter = { organizationId: string; type?: AlertType | undefined } & {
  since?: number | undefined
  until?: number | undefined
  limit: number
}
/** An alert, with how many of its deliveries arrived, wait, and were given up. */
export type ListedAlert = Pick<Alert, 'id' | 'type' | 'data' | 'at' | 'endedAt'> &
  Record<'delivered' | 'waiting' | 'givenUp', number>

/** Lists alerts, newest first. Reads the whole table: call it with the connection for slow reads. */
export function listAlerts(
  reader: Orm,
  { organizationId, type, since, until, limit }: AlertFilter,
): Promise<ListedAlert[]> {
  const { id, data, at, endedAt } = alerts
  const count = (what: string) =>
    sql<number>`(select count(${sql.raw(what)}) from alert_deliveries where alert_id = ${alerts.id})`
  return reader
    .select({
      ...{ id, type: alerts.type, data, at, endedAt, delivered: count('delivered_at'), waiting: count('due_at') },
      givenUp: count('case when delivered_at is null and due_at is null then 1 end'),
    })
    .from(alerts)
    .where(
      and(
        eq(alerts.organizationId, organizationId),
        type === undefined ? undefined : eq(alerts.type, type),
        since === undefined ? undefined : gte(alerts.at, since),
        until === undefined ? undefined : lt(alerts.at, until),
      ),
    )
    .orderBy(desc(alerts.at), desc(alerts.id))
    .limit(limit)
}

/** The alerts of budgets whose value is one of these: of an attribution or a session. Call it with the connection for slow reads. */
export async function listAlertsOfValues(
  reader: Orm,
  organizationId: string,
  values: readonly string[],
): Promise<string[]> {
  const rows = await reader
    .select({ id: alerts.id })
    .from(alerts)
    .where(
      and(
        eq(alerts.organizationId, organizationId),
        sql`${alerts.data} ->> 'each' in ('attribution', 'session')`,
        sql`${alerts.data} ->> 'value' in (select value from json_each(${JSON.stringify(values)}))`,
      ),
    )
  return rows.map(({ id }) => id)
}

/** Empties whom alerts are about. `ids`: some hundreds at a time. */
export function eraseAlertValues(ids: readonly string[]): Statement {
  const sql = `update alerts set data = json_set(data, '$.value', null) where id in (select value from json_each(?))`
  return { toSQL: () => ({ sql, params: [JSON.stringify(ids)] }) }
}

const removedAtOnce = 1_000

/** Removes some of the alerts that ended, or were needed, before this time. */
export function removeOldAlerts(orm: Orm, before: number): Statement[] {
  const old = orm
    .select({ id: alerts.id })
    .from(alerts)
    .where(sql`coalesce(${alerts.endedAt}, ${alerts.neededUntil}) < ${before}`)
    .orderBy(asc(alerts.id))
    .limit(removedAtOnce)
  return [
    orm.delete(alertDeliveries).where(inArray(alertDeliveries.alertId, old)),
    orm.delete(alerts).where(inArray(alerts.id, old)),
  ]
}

/** What is due of a webhook that is gone is given up. */
export function dropDeliveries(orm: Orm, { id }: Pick<Webhook, 'id'>): Statement {
  return orm.update(alertDeliveries).set({ dueAt: null }).where(eq(alertDeliveries.webhookId, id))
}
