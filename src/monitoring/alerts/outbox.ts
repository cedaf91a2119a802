// The outbox: delivers saved alerts to webhooks, each at least once, and again with the same id until it arrives or a day has passed.
import type { Orm } from '../../../db/file/open.ts'
import type { Webhook } from '../../../db/schema/alert-schema.ts'
import {
  claimDelivery,
  type DueDelivery,
  hasClaim,
  listDue,
  releaseClaims,
  removeOldAlerts,
  updateDelivery,
} from '../../../db/tables/alerts.ts'
import type { Writer } from '../../../db/write/write.ts'
import { describeError } from '../../fault.ts'
import { openCredential } from '../../inference/upstream/credentials.ts'
import type { Log } from '../../observe/log.ts'
import { type SendOutcome, type WebhookEvent, type WebhookTarget, webhookAnswerMillisecondsMax } from './send.ts'
import { secretsIn } from './signature.ts'

export type DeliveryOutcome = 'delivered' | 'failed' | 'given_up'

export type OutboxOptions = {
  orm: Orm
  writer: Pick<Writer, 'write'>
  registry: { readonly webhooks: ReadonlyMap<string, Readonly<Webhook>> }
  masterKey: CryptoKey
  send: (target: WebhookTarget, event: WebhookEvent, signal: AbortSignal) => Promise<SendOutcome>
  count: (outcome: DeliveryOutcome) => void
  random: () => number
  now: () => number
  log: Log
}

export type Outbox = {
  /** Makes due what this database's only process had claimed when it ended. */
  release: () => Promise<void>
  /** Delivers what is due, to all webhooks at the same time; resolves when nothing is left that could be sent now. Never rejects. */
  deliver: () => Promise<void>
  /** Removes alerts that ended, or were needed, a month ago. */
  clean: () => Promise<void>
  /** Begins nothing more, and ends what is on its way: it is sent again by the next start. */
  stop: () => Promise<void>
}

const deliveredAtOnce = 20
/** If this process ends while it sends, the event is sent again after this time. */
const claimMilliseconds = webhookAnswerMillisecondsMax + 15_000
const givenUpMilliseconds = 24 * 60 * 60 * 1_000
const keptMilliseconds = 30 * 24 * 60 * 60 * 1_000
const [firstRetryMilliseconds, retryMillisecondsMax] = [5_000, 60 * 60 * 1_000]

/** 5 s, 15 s, 45 s … up to an hour, give or take a fifth. */
export function retryDelay(attempts: number, random: number): number {
  const base = Math.min(firstRetryMilliseconds * 3 ** (attempts - 1), retryMillisecondsMax)
  return Math.round(base * (0.8 + 0.4 * random))
}

export function createOutbox(options: OutboxOptions): Outbox {
  const { orm, writer, registry, now, log } = options
  const stopping = new AbortController()
  const busy = new Map<string, { working: Promise<void>; again: boolean }>()

  function wake(webhook: Readonly<Webhook>): Promise<void> {
    const known = busy.get(webhook.id)
    if (known !== undefined) {
      // What became due meanwhile.
      known.again = true
      return known.working
    }
    const entry = { working: Promise.resolve(), again: true }
    busy.set(webhook.id, entry)
    const work = async () => {
      try {
        while (entry.again && !stopping.signal.aborted) {
          entry.again = false
          await deliverTo(options, webhook, stopping.signal)
        }
      } catch (error) {
        log('error', 'alerts_not_delivered', { reason: describeError(error) })
      } finally {
        // In the turn in which nothing was left, so that nobody wakes work that has ended.
        busy.delete(webhook.id)
      }
    }
    entry.working = work()
    return entry.working
  }

  return {
    release: async () => {
      if (registry.webhooks.size > 0) await writer.write([releaseClaims(orm, now())])
    },
    deliver: async () => {
      const wanted = [...registry.webhooks.values()].filter(({ enabled, deletedAt }) => enabled && deletedAt === null)
      await Promise.all(wanted.map(wake))
    },
    clean: () => writer.write(removeOldAlerts(orm, now() - keptMilliseconds)),
    stop: async () => {
      stopping.abort()
      await Promise.all([...busy.values()].map(({ working }) => working))
    },
  }
}

/** One after the other, so that a receiver that fails is asked once in a while and not for each alert that waits. */
async function deliverTo(options: OutboxOptions, webhook: Readonly<Webhook>, signal: AbortSignal): Promise<void> {
  for (;;) {
    const due = await listDue(options.orm, webhook.id, options.now(), deliveredAtOnce)
    for (const delivery of due) if (signal.aborted || !(await attempt(options, webhook, delivery, signal))) return
    if (due.length < deliveredAtOnce) return
  }
}

/** Returns whether the next one may be tried now. */
async function attempt(
  options: OutboxOptions,
  webhook: Readonly<Webhook>,
  delivery: DueDelivery,
  signal: AbortSignal,
): Promise<boolean> {
  const { orm, writer, send, masterKey, now } = options
  const claim = crypto.randomUUID()
  await writer.write([claimDelivery(orm, delivery, { claim, now: now(), until: now() + claimMilliseconds })])
  if (!(await hasClaim(orm, delivery, claim))) return true
  const event = { id: delivery.alertId, type: delivery.type, at: delivery.at, data: delivery.data }
  const secrets = await openSecrets(masterKey, webhook, now())
  const outcome: SendOutcome =
    secrets === undefined
      ? { ok: false, problem: 'its secret is missing or cannot be decrypted: set it again', isGone: false }
      : await send({ url: webhook.url, caPem: webhook.caPem, secrets }, event, signal)
  await record(options, webhook, delivery, outcome)
  return outcome.ok
}

async function record(
  { orm, writer, count, random, now, log }: OutboxOptions,
  webhook: Readonly<Webhook>,
  delivery: DueDelivery,
  outcome: SendOutcome,
): Promise<void> {
  const at = now()
  if (outcome.ok) {
    count('delivered')
    await writer.write([updateDelivery(orm, delivery, { dueAt: null, deliveredAt: at, problem: null, claim: null })])
    return
  }
  const { problem, isGone } = outcome
  const next = at + retryDelay(delivery.attempts + 1, random())
  const isGivenUp = isGone || next - delivery.at > givenUpMilliseconds
  count(isGivenUp ? 'given_up' : 'failed')
  const details = { webhook: webhook.name, alert: delivery.alertId, attempts: delivery.attempts + 1, reason: problem }
  log('warn', isGivenUp ? 'webhook_given_up' : 'webhook_failed', details)
  await writer.write([updateDelivery(orm, delivery, { dueAt: isGivenUp ? null : next, problem, claim: null })])
}

/** The secrets that sign at a time, the newest first; undefined if they are missing or cannot be decrypted. */
export async function openSecrets(
  masterKey: CryptoKey,
  { id, credentialEncrypted: sealed }: Pick<Webhook, 'id' | 'credentialEncrypted'>,
  now: number,
): Promise<string[] | undefined> {
  const text = sealed === null ? undefined : await openCredential(masterKey, id, sealed).catch(() => undefined)
  return text === undefined ? undefined : secretsIn(text, now)
}
