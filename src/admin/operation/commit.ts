// The one way to make an admin change: its rows and the record of who changed what are committed together, then memory is brought up to date.

import { isStale } from '../../../db/remote/refresh.ts'
import { serverFailureOf } from '../../../db/remote/server-errors.ts'
import { actorColumns, recordChanges, recordKnownChange, type TouchedRow } from '../../../db/tables/admin-changes.ts'
import type { Bulk, Statement } from '../../../db/write/rows.ts'
import type { Writer } from '../../../db/write/write.ts'
import { Fault } from '../../fault.ts'
import { changeOutcomeUnknown } from '../../nodes/database-unreachable.ts'
import type { CommitVersion, Preset } from '../../presets/drafts.ts'
import { keeping, putPreset } from '../../registry/registry.ts'
import type { Needs } from './context.ts'
import { checkDocumentLock } from './document-lock.ts'

/** What a change needs. Nothing is committed that was planned on a `basis` before a newer change of another node. */
export type ChangeContext = Needs<'writer' | 'orm' | 'registry' | 'now' | 'actor' | 'operation' | 'basis' | 'warn'>

/**
 * Commits the statements and a record of each row they touch, as it is before and after. Records with the same `groupId` belong to one
 * change. Then it loads these rows, and whatever else
 * `load` loads. When it resolves, the change is durable and in force.
 * @throws Fault `conflict` for a row that a configuration document locks; `internal` when the change is saved but cannot be loaded, and the
 * process then ends; `unavailable` when the database server stops responding after the commit
 */
export async function commit(
  context: ChangeContext & { groupId?: string },
  statements: (Statement | Bulk)[],
  touched: TouchedRow[],
  load: () => Promise<void> = async () => {},
): Promise<void> {
  const { writer, orm, registry, now, actor, operation, groupId, basis } = context
  const by = { at: now(), ...actorColumns(actor), operation, groupId }
  const idsByKind = [...Map.groupBy(touched, ({ kind }) => kind)].map(
    ([kind, rows]) => [kind, rows.map(({ id }) => id)] as const,
  )
  const records: Statement[] = []
  for (const [kind, ids] of idsByKind) {
    const known = await keeping[kind].read(registry, orm, ids)
    // A document compares owners itself.
    if (groupId === undefined) for (const id of ids) checkDocumentLock(context, kind, known.get(id))
    records.push(...recordChanges({ ...by, kind, targets: new Map(ids.map((id) => [id, known.get(id)])) }))
  }
  const loadAll = async () => {
    for (const [kind, ids] of idsByKind) await keeping[kind].load(registry, orm, ids)
    await load()
  }
  await writer.change(() => ({
    statements: [...statements, ...records],
    basis,
    load: () => loadAll().catch((cause: unknown) => failToLoad(writer, cause)),
  }))
}

/**
 * Memory may hold a key that is disabled by now: nothing is written or answered after this, and the process ends. On a
 * server database, the refresh before the next request loads the change.
 */
function failToLoad(writer: Writer, cause: unknown): never {
  if (serverFailureOf(cause) !== undefined) throw changeOutcomeUnknown('The database server does not respond', cause)
  writer.giveUp(new Error('The change is saved, but could not be loaded', { cause }))
  throw new Fault('internal', 'The change is saved, but the server could not load it and stops', { cause })
}

/** Commits new versions of presets, each planned when its transaction begins. What they leave is known, so nothing is read again. */
export function createCommitVersion({ writer, registry }: Pick<ChangeContext, 'writer' | 'registry'>): CommitVersion {
  return (plan) =>
    writer
      .change((transaction) => {
        const planned = plan(transaction)
        const { version, actor, operation, touched } = planned
        const { before, after } = version
        checkDocumentLock({ registry, actor }, 'preset', before)
        const by = { at: after.updatedAt, ...actorColumns(actor), operation }
        const record = recordKnownChange({
          ...by,
          kind: 'preset',
          targetId: after.id,
          organizationId: after.organizationId,
          before: before && numbersOf(before),
          after: numbersOf(after),
        })
        const others = touched.flatMap(({ kind, id }) => [
          ...recordChanges({ ...by, kind, targets: new Map([[id, undefined]]) }),
        ])
        return {
          ...planned,
          statements: [...planned.statements, ...others, record],
          load: () => putPreset(registry, after),
        }
      })
      .catch(mapStale)
}

/**
 * For a change that was planned again and again, and each time another node was faster.
 * @throws Fault `conflict` for it; any other error unchanged
 */
export function mapStale(error: unknown): never {
  if (!isStale(error)) throw error
  throw new Fault('conflict', 'Other nodes make many changes at the same time; try again', { cause: error })
}

/** What a new version changes of its preset. The version itself is kept forever. */
function numbersOf({ slug, designatedVersion, latestVersion }: Preset) {
  return { slug, designated_version: designatedVersion, latest_version: latestVersion }
}
