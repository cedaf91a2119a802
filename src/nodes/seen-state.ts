// What this machine has seen of its database, in a small file beside the master key: a start notices that the database has gone back to an
// older state, in which keys that were revoked are valid again. An operator can accept it.
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { Database } from '../../db/file/open.ts'
import { refreshFrom } from '../../db/remote/refresh.ts'
import { firstPosition, type Position, type RefreshResult } from '../../db/remote/shared-database.ts'
import { describeError, Fault } from '../fault.ts'
import type { Log } from '../observe/log.ts'
import { every } from '../scheduling/every.ts'
import type { MasterKeySource } from '../tokens/master-key.ts'
import { setbackOf } from './setback.ts'

/** A master key from the environment has no place beside it: nothing is remembered then. */
export function seenFileFor(masterKey: MasterKeySource): string | undefined {
  return masterKey.kind === 'file' ? `${masterKey.path}.seen` : undefined
}

type SeenState = { installation: string; position: Position }

/** Undefined if the file is missing or cannot be read: then it is written again. */
function readSeen(file: string): SeenState | undefined {
  try {
    const { installation, revision, lineage, request, exchange } = JSON.parse(readFileSync(file, 'utf8')) as Record<
      string,
      unknown
    >
    if (typeof installation !== 'string' || typeof lineage !== 'string') return undefined
    if (![revision, request, exchange].every(Number.isSafeInteger)) return undefined
    // Numbers of commits begin again in a copy.
    const ids = { usageId: Number(request), auditId: Number(exchange), commit: 0 }
    return { installation, position: { revision: { id: Number(revision), lineage }, ...ids } }
  } catch {
    return undefined
  }
}

function writeSeen(file: string, { installation, revision, usageId, auditId }: RefreshResult): void {
  const text = JSON.stringify({
    installation,
    revision: revision.id,
    lineage: revision.lineage,
    request: usageId,
    exchange: auditId,
  })
  writeFileSync(`${file}.new`, `${text}\n`, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

export type SeenOptions = { database: Pick<Database, 'client'>; file: string }

/** What the database shows, without what was spent. */
function look({ client }: Pick<Database, 'client'>, known: Position): Promise<RefreshResult> {
  return refreshFrom(client, { ...known, usageId: Number.MAX_SAFE_INTEGER })
}

/**
 * Compares the database with what this machine has seen of it. The same master key can belong to another database, which is not compared.
 * @throws Fault `conflict` if it has gone back
 */
export async function rejectOlder({ database, file }: SeenOptions): Promise<void> {
  const seen = readSeen(file)
  if (seen === undefined) return
  const found = await look(database, seen.position)
  if (found.installation !== seen.installation) return
  const setback = setbackOf(found, seen.position, seen.installation)
  if (setback === undefined) return
  const what = `${setback}. What was revoked since may be valid again, and what was spent since is forgotten`
  throw new Fault(
    'conflict',
    `${what}. Bring the newer state back, or accept this one: latchkey database accept-older`,
    {
      reason: 'database_older',
    },
  )
}

/** Takes the database as it is for the newest state. Returns what was seen before, where that differs. */
export async function acceptOlder({
  database,
  file,
}: SeenOptions): Promise<{ before: Position | undefined; now: Position }> {
  const seen = readSeen(file)
  const now = await look(database, firstPosition)
  writeSeen(file, now)
  const isSame = seen?.installation === now.installation
  return { before: isSame ? seen.position : undefined, now }
}

/** For a database that was put in place on purpose. */
export function forgetSeen(masterKey: MasterKeySource): void {
  const file = seenFileFor(masterKey)
  if (file !== undefined) rmSync(file, { force: true })
}

/** What is lost if the process is killed is at most what happened in this time. */
const keepMilliseconds = 5_000

/**
 * Remembers what the database shows, now and on a timer. Returns a function that does so for the last time. A folder that cannot be written
 * is reported once.
 */
export function keepSeen({ database, file, log }: SeenOptions & { log: Log }): () => Promise<void> {
  let last = ''
  let hasFailed = false
  const keep = async () => {
    try {
      const found = await look(database, firstPosition)
      const text = JSON.stringify([found.revision, found.usageId, found.auditId])
      if (text === last) return
      writeSeen(file, found)
      last = text
    } catch (error) {
      if (!hasFailed) log('warn', 'seen_state_not_written', { file, reason: describeError(error) })
      hasFailed = true
    }
  }
  void keep()
  const stop = every(keepMilliseconds, keep)
  return async () => {
    stop()
    await keep()
  }
}
