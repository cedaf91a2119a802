// Webhooks: where alerts are sent.
import { eq, inArray, isNull, sql } from 'drizzle-orm'
import type { Orm } from '../file/open.ts'
import { type Webhook, webhooks } from '../schema/alert-schema.ts'
import type { Statement } from '../write/rows.ts'

export function insertWebhook(orm: Orm, row: Webhook): Statement {
  return orm.insert(webhooks).values(row)
}

/** Leaves out the id and the organization, which never change. */
export function updateWebhook(
  orm: Orm,
  id: string,
  { id: _id, organizationId: _organizationId, ...change }: Partial<Webhook>,
): Statement {
  return orm.update(webhooks).set(change).where(eq(webhooks.id, id))
}

/** Lists the webhooks with these ids, deleted ones among them, or all that are not deleted, in the order in which they were inserted. */
export function listWebhooks(orm: Orm, ids?: readonly string[]): Promise<Webhook[]> {
  return orm
    .select()
    .from(webhooks)
    .where(ids === undefined ? isNull(webhooks.deletedAt) : inArray(webhooks.id, [...ids]))
    .orderBy(sql`${webhooks}.rowid`)
}
