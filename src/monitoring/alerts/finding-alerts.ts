// Turns the findings of the doctor into alerts: one when a finding appears, and one when it is gone.
import { createHash } from 'node:crypto'
import type { Orm } from '../../../db/file/open.ts'
import { endAlerts, listOpenFindings, markSeen } from '../../../db/tables/alerts.ts'
import type { AlertDraft, Alerts } from './alerts.ts'

/** A finding of the doctor, and whose it is. */
export type FoundFinding = {
  organizationId: string
  level: string
  area: string
  code: string
  message: string
  action: string
  names: readonly string[]
}

/** `goneMilliseconds`: nodes do not see the same, so a finding is gone when no node has seen it for so long. */
export type FindingAlertOptions = { orm: Orm; alerts: Alerts; now: () => number; goneMilliseconds: number }

/** Compares what was found with what was open before. @throws the error of a failed commit */
export async function noteFindings(
  { orm, alerts, now, goneMilliseconds }: FindingAlertOptions,
  found: readonly FoundFinding[],
): Promise<void> {
  const at = now()
  const current = new Map(found.map((finding) => [`${finding.organizationId} ${subjectOf(finding)}`, finding]))
  const open = await listOpenFindings(orm)
  const nameOf = ({ organizationId, subject }: { organizationId: string; subject: string }) =>
    `${organizationId} ${subject}`
  const known = new Set(open.map(nameOf))
  const seen = open.filter((row) => current.has(nameOf(row)))
  const gone = open.filter((row) => !current.has(nameOf(row)) && at - row.seenAt >= goneMilliseconds)
  const opened = [...current]
    .filter(([name]) => !known.has(name))
    .map(([, { organizationId, ...finding }]): AlertDraft => {
      const subject = subjectOf(finding)
      return { organizationId, type: 'finding.opened', subject, data: finding, neededUntil: null }
    })
  const closed = gone.map(
    ({ id, organizationId, data }): AlertDraft => ({
      ...{ organizationId, type: 'finding.closed', subject: `closed ${id}`, neededUntil: at },
      data: { ...data, opened_as: id },
    }),
  )
  const ids = (rows: typeof open) => rows.map(({ id }) => id)
  await alerts.raiseWith(
    [...opened, ...closed],
    [
      ...(gone.length === 0 ? [] : [endAlerts(orm, ids(gone), at)]),
      ...(seen.length === 0 ? [] : [markSeen(orm, ids(seen), at)]),
    ],
  )
}

/** A message has durations, so what it is about names a finding. */
function subjectOf({ code, names }: Pick<FoundFinding, 'code' | 'names'>): string {
  const about = createHash('sha256').update(JSON.stringify(names)).digest('base64url')
  return `finding ${code} ${about}`
}
