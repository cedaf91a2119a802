// What operations return of a webhook: its row, and how its deliveries fare.
import type { Webhook } from '../../../db/schema/alert-schema.ts'
import { type DeliveryState, readDeliveryStates } from '../../../db/tables/alerts.ts'
import { type } from '../../values/shape.ts'
import { responseOf, showFields } from '../kinds/fields.ts'
import { webhookFields } from '../kinds/webhook.ts'
import type { Needs } from '../operation/context.ts'
import { timeOf } from '../operation/references.ts'

export const webhookResponse = type(responseOf(webhookFields)).configure({ title: 'Webhook' })
/** `secret` is shown once, when it was made here. */
export const newWebhookResponse = type({ ...responseOf(webhookFields), 'secret?': 'string' }).configure({
  title: 'NewWebhook',
})
export const webhookTestResponse = type({
  id: 'string',
  ok: 'boolean',
  status: 'number.integer | null',
  problem: 'string | null',
  milliseconds: 'number.integer',
}).configure({ title: 'WebhookTest' })

type States = ReadonlyMap<string, DeliveryState>

export async function readStates({ orm }: Needs<'orm'>): Promise<States> {
  return new Map((await readDeliveryStates(orm)).map((state) => [state.webhookId, state]))
}

export function showWebhook(row: Readonly<Webhook>, states: States): typeof webhookResponse.infer {
  const state = states.get(row.id)
  const derived = {
    has_secret: row.credentialEncrypted !== null,
    waiting: state?.waiting ?? 0,
    delivered_at: timeOf(state?.deliveredAt ?? null),
    failing_since: timeOf(state?.failingSince ?? null),
    problem: state?.problem ?? null,
  }
  return showFields(webhookFields, row, derived) as typeof webhookResponse.infer
}
