// What is served without the database, and the usage that waits for it. Rules only.
import { type Finding, finding } from './findings.ts'

/** Of LATCHKEY_DATABASE_GRACE: the requests whose usage waits in the file on this machine, and files that no program applies. */
export type GraceFacts = { path: string; milliseconds: number; waiting: number; refused: readonly string[] }

/** What an operator should know of it: that it was chosen, and what is not in the ledger. */
export function judgeGrace(grace: GraceFacts | undefined): Finding[] {
  if (grace === undefined) return []
  const { path, milliseconds, waiting, refused } = grace
  const seconds = milliseconds / 1_000
  const about = { area: 'nodes' } as const
  const waits: Finding = finding({
    ...about,
    level: 'warning',
    code: 'usage_waits',
    message: `The usage of ${waiting} requests is not in the database yet: it waits in ${JSON.stringify(path)}`,
    action:
      'Bring the database back, and let the node of this machine run: it applies the file and does not count it before',
  })
  return [
    finding({
      ...about,
      level: 'note',
      code: 'database_grace',
      message: `Inference without budgets is served for up to ${seconds} s without the database: what was revoked meanwhile still works`,
      action: 'Unset LATCHKEY_DATABASE_GRACE if every change must be obeyed at once',
    }),
    ...(waiting > 0 ? [waits] : []),
    ...refused.map((file) =>
      finding({
        ...about,
        level: 'error',
        code: 'usage_refused',
        message: `Usage in ${JSON.stringify(file)} could not be applied to the database`,
        action: 'Read the log at usage_refused, then move the file away: latchkey help availability',
      }),
    ),
  ]
}
