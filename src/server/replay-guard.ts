// Opens the guard against used subject tokens on what the database has of them.
import { findFilled } from '../../db/read/filled-tables.ts'
import { usedSubjectTokens } from '../../db/schema/record-schema.ts'
import * as subjectTokens from '../../db/tables/used-subject-tokens.ts'
import { isUsedElsewhere } from '../../db/write/ledger-tables.ts'
import type { Needs } from '../admin/operation/context.ts'
import { createReplayGuard, type ReplayGuard } from '../federation/replay.ts'

type ReplayContext = Needs<'database' | 'orm' | 'writer' | 'now' | 'monotonic'>

export async function openReplayGuard({ database, orm, writer, now, monotonic }: ReplayContext): Promise<ReplayGuard> {
  const isShared = database.shared !== undefined
  const isUsed = (await findFilled(orm, [usedSubjectTokens])).size > 0
  if (isUsed) await writer.write([subjectTokens.dropExpiredSubjectTokens(orm, now(), { isShared })])
  return createReplayGuard({
    known: isUsed ? await subjectTokens.listUsedSubjectTokens(orm, now()) : [],
    keep: (row) =>
      writer.appendUsedToken(row).then(
        () => true,
        (error: unknown) => {
          if (isUsedElsewhere(error)) return false
          throw error
        },
      ),
    drop: (tokens) => writer.write(subjectTokens.dropSubjectTokens(tokens, { isShared })),
    now: now(),
    monotonic,
  })
}
