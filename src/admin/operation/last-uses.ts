// When policies, keys, issuers and presets last worked, and when and why they were last refused. Requests write to maps
// in memory; what they hold is committed once a minute and at a clean stop. Nothing is read at a start.

import type { Orm } from '../../../db/file/open.ts'
import type { AuditRow, LastUseRow, UsageRow } from '../../../db/schema/record-schema.ts'

import { dropLastUses, putLastUses, readLastUses } from '../../../db/tables/last-uses.ts'
import type { Writer } from '../../../db/write/write.ts'
import type { Fault } from '../../fault.ts'
import { isAfterSignature, isReason, stepOf } from '../../federation/subject-token/refusal.ts'
import type { Registry } from '../../registry/registry.ts'

export type LastUses = {
  noteUse: (id: string, at: number) => void
  /** Notes the refusal if the fault names what refused. Returns its id. */
  noteFault: (fault: Fault, at: number) => string | undefined
  noteExchange: (row: AuditRow) => void
  noteInference: (row: UsageRow) => void
  /** The last use of each of these, if known, as of now. */
  read: (ids: readonly string[]) => Promise<Map<string, LastUseRow>>
  /** When it last worked, if that is not committed yet. Milliseconds. */
  usedLately: (id: string) => number | undefined
  /** Commits what was noted since the last time. What could not be committed is kept. */
  flush: () => Promise<void>
}

type LastRefusal = { at: number; reason: string }

/** A commit of so many rows takes about 8 ms. */
const rowsPerCommit = 1_000

/** Steps at which the token is not known to be the issuer's, or is not as the issuer should send it. */
const stepsOfIssuer: readonly string[] = ['keys', 'signature', 'times']

export function createLastUses(orm: Orm, writer: Pick<Writer, 'write'>, registry: Registry): LastUses {
  const used = new Map<string, number>()
  const refused = new Map<string, LastRefusal>()
  /** Rows that are being committed. */
  const committing = new Map<string, LastUseRow>()
  const deletions = trackDeletions(registry, writer)
  let flushing: Promise<void> = Promise.resolve()

  const rowOf = (id: string): LastUseRow => {
    const refusal = refused.get(id)
    return {
      id,
      usedAt: used.get(id) ?? null,
      refusedAt: refusal?.at ?? null,
      refusedReason: refusal?.reason ?? null,
    }
  }
  const noteRefusal = (id: string, reason: string, at: number) => void refused.set(id, { at, reason })

  async function commitSome(ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      committing.set(id, rowOf(id))
      used.delete(id)
      refused.delete(id)
    }
    try {
      await writer.write([putLastUses([...committing.values()])])
    } catch (error) {
      for (const { id, usedAt, refusedAt, refusedReason } of committing.values()) {
        if (usedAt !== null && !used.has(id)) used.set(id, usedAt)
        if (refusedAt !== null && !refused.has(id)) noteRefusal(id, refusedReason ?? '', refusedAt)
      }
      throw error
    } finally {
      committing.clear()
    }
  }

  async function flushAll(): Promise<void> {
    await deletions.drop()
    const ids = [...new Set([...used.keys(), ...refused.keys()])].filter(deletions.isNotDeleted)
    for (let start = 0; start < ids.length; start += rowsPerCommit)
      await commitSome(ids.slice(start, start + rowsPerCommit))
  }

  return {
    noteUse: (id, at) => void used.set(id, at),
    noteFault: ({ code, reason = code, subject }, at) => {
      if (subject !== undefined) noteRefusal(subject.id, reason, at)
      return subject?.id
    },
    noteExchange: (row) => noteExchange(row, used, noteRefusal),
    noteInference: ({ workspaceId, presetVersion, at }) => {
      if (presetVersion === null) return
      const slug = presetVersion.slice(0, presetVersion.lastIndexOf('@'))
      const preset = registry.presetsOf.get(workspaceId)?.get(slug)
      if (preset !== undefined) used.set(preset.id, at)
    },
    read: async (ids) => {
      // Taken before the database is read, because a commit can come in between.
      const known = ids.map((id) => mergeUses(committing.get(id), rowOf(id)))
      const stored = new Map((await readLastUses(orm, ids)).map((row) => [row.id, row]))
      return new Map(known.map((row) => [row.id, mergeUses(stored.get(row.id), row)]))
    },
    usedLately: (id) => used.get(id) ?? committing.get(id)?.usedAt ?? undefined,
    flush: () => {
      flushing = flushing.catch(() => {}).then(flushAll)
      return flushing
    },
  }
}

/** Rows of policies, keys and issuers that are deleted from now on go at the next flush, and none follow. */
function trackDeletions({ onDeleted }: Registry, writer: Pick<Writer, 'write'>) {
  const deleted = new Set<string>()
  const undropped = new Set<string>()
  onDeleted.push((id) => {
    deleted.add(id)
    undropped.add(id)
  })
  return {
    isNotDeleted: (id: string) => !deleted.has(id),
    drop: async () => {
      const ids = [...undropped]
      if (ids.length > 0) await writer.write([dropLastUses(ids)])
      for (const id of ids) undropped.delete(id)
    },
  }
}

function noteExchange(
  { at, policyId, issuerId, keyId, reason }: AuditRow,
  used: Map<string, number>,
  noteRefusal: (id: string, reason: string, at: number) => void,
): void {
  if (policyId === null || issuerId === null || keyId === null) return
  if (reason === null) {
    for (const id of [policyId, issuerId, keyId]) used.set(id, at)
    return
  }
  if (!isReason(reason)) return
  // Of any reason, as the counts of exchanges: an administrator compares the two.
  noteRefusal(policyId, reason, at)
  if (stepsOfIssuer.includes(stepOf(reason))) noteRefusal(issuerId, reason, at)
  else if (isAfterSignature(reason)) used.set(issuerId, at)
}

function mergeUses(older: LastUseRow | undefined, newer: LastUseRow): LastUseRow {
  if (older === undefined) return newer
  const refusal = newer.refusedAt === null ? older : newer
  return {
    ...newer,
    usedAt: newer.usedAt ?? older.usedAt,
    refusedAt: refusal.refusedAt,
    refusedReason: refusal.refusedReason,
  }
}

/** A writer whose audit and usage rows are noted. */
export function noteRows(writer: Writer, { noteExchange, noteInference }: LastUses): Writer {
  return {
    ...writer,
    appendAudit: async (row) => {
      await writer.appendAudit(row)
      noteExchange(row)
    },
    appendUsage: (row) => {
      noteInference(row)
      return writer.appendUsage(row)
    },
  }
}
