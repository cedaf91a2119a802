// Alerts: saves what happened, once each, with its deliveries, and logs and counts it. The outbox sends what is saved.
import type { Orm } from '../../../db/file/open.ts'
import type { AlertType } from '../../../db/schema/alert-schema.ts'
import { type NewAlert, raiseAlerts, savedAlerts } from '../../../db/tables/alerts.ts'
import type { Statement } from '../../../db/write/rows.ts'
import type { Writer } from '../../../db/write/write.ts'
import { describeError } from '../../fault.ts'
import type { Log } from '../../observe/log.ts'

/** What happened. Of two with the same `subject`, only the first is saved, until it has ended. `neededUntil` as in the table. */
export type AlertDraft = {
  organizationId: string
  type: AlertType
  subject: string
  data: Record<string, unknown>
  neededUntil: number | null
}

export type Alerts = {
  /** Saves them soon, in their own commit; what fails is tried again with the next ones, and every few seconds. */
  raise: (drafts: readonly AlertDraft[]) => void
  /** Saves them in one commit with other statements. @throws the error of a failed commit */
  raiseWith: (drafts: readonly AlertDraft[], statements: readonly Statement[]) => Promise<void>
  /** Tries what failed before again. */
  retry: () => Promise<void>
  /** Waits until all that was raised is saved, or has failed. */
  settle: () => Promise<void>
}

type AlertsOptions = {
  orm: Orm
  writer: Pick<Writer, 'write'>
  now: () => number
  log: Log
  count: (type: AlertType) => void
  /** Called after a commit with new alerts. */
  onSaved: () => void
}

/** More than this wait only while no commit succeeds; they are found again at the next start. */
const waitingMax = 10_000
const savedAtOnce = 100

export function createAlerts(options: AlertsOptions): Alerts {
  const { log } = options
  let waiting: AlertDraft[] = []
  let saving: Promise<void> | undefined

  async function saveAll(): Promise<void> {
    // What else is raised in this turn of the event loop shares the commit.
    await new Promise((resolve) => setImmediate(resolve))
    while (waiting.length > 0) {
      const drafts = waiting.splice(0, savedAtOnce)
      try {
        await save(options, drafts, [])
      } catch (error) {
        waiting = [...drafts, ...waiting].slice(0, waitingMax)
        log('error', 'alerts_not_saved', { reason: describeError(error) })
        break
      }
    }
    // In the turn in which nothing was left, so that what is raised next begins to be saved.
    saving = undefined
  }

  const retry = () => {
    if (waiting.length === 0 && saving === undefined) return Promise.resolve()
    saving ??= saveAll()
    return saving
  }

  return {
    raise: (drafts) => {
      waiting.push(...drafts.slice(0, waitingMax - waiting.length))
      void retry()
    },
    raiseWith: (drafts, statements) => save(options, drafts, statements),
    retry,
    settle: retry,
  }
}

async function save(
  { orm, writer, now, log, count, onSaved }: AlertsOptions,
  drafts: readonly AlertDraft[],
  statements: readonly Statement[],
): Promise<void> {
  const at = now()
  const rows: NewAlert[] = drafts.map((draft) => ({ ...draft, id: newEventId(), at }))
  if (rows.length + statements.length === 0) return
  await writer.write([...statements, ...(rows.length === 0 ? [] : raiseAlerts(rows))])
  if (rows.length === 0) return
  const saved = await savedAlerts(
    orm,
    rows.map(({ id }) => id),
  )
  for (const { id, type, data } of rows.filter((row) => saved.has(row.id))) {
    count(type)
    log('warn', 'alert', { alert: id, type, ...data })
  }
  if (saved.size > 0) onSaved()
}

export function newEventId(): string {
  return `msg_${crypto.randomUUID().replaceAll('-', '')}`
}
