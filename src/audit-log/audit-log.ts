// The transparent audit log of a process: it gives rows their leaves, signs checkpoints and publishes them. Nothing waits for it, and
// whatever fails is tried again a minute later. Nodes need no lease: each plans on the size that it read, and leaves of one size exist once;
// two signatures of one checkpoint by one key are equal.
import { join } from 'node:path'
import type { LogCheckpoint } from '../../db/schema/log-schema.ts'
import { insertCheckpoint, newestCheckpoint, newestCosigned } from '../../db/tables/audit-checkpoints.ts'
import { isOvertaken } from '../../db/tables/audit-log.ts'
import { insertLogRecord } from '../../db/tables/log-records.ts'
import { listSigningKeys } from '../../db/tables/signing-keys.ts'
import { createRest } from '../archive/pace.ts'
import { describeError, Fault } from '../fault.ts'
import { every } from '../scheduling/every.ts'
import { createMutex, type ExclusiveRun } from '../scheduling/mutex.ts'
import { openMasterKey } from '../tokens/keyring.ts'
import { appendRows } from './append.ts'
import type { Epoch } from './epochs.ts'
import { publish, publishCheckpoint, replaceText } from './folder.ts'
import type { AuditLogSettings } from './mode.ts'
import { type AuditLogContext, checkpointFileFor, openLog, replaceKey } from './open-log.ts'
import { createRecentTiles, type RecentTiles } from './recent-tiles.ts'
import { checkpointText } from './transparency/checkpoint.ts'
import { formatNote, type SignerKey, signNote } from './transparency/note.ts'
import { rootOf } from './tree.ts'
import { createDayClosing } from './usage-days.ts'

/** How the log is doing, for doctor and metrics. */
export type AuditLogState = {
  /** When the schedule of this server began; undefined without one. */
  servingSince: number | undefined
  /** When everything was covered, in milliseconds since 1970 UTC. */
  checkpointAt: number | undefined
  /** When the newest checkpoint was signed that has a signature of a witness; undefined without one. */
  cosignedAt: number | undefined
  failure: string | undefined
  folderFailure: string | undefined
}

export type AuditLog = {
  settings: AuditLogSettings
  /**
   * Covers all rows, signs a checkpoint of them, and publishes it. Returns the newest checkpoint.
   * @throws Fault `configuration` if the log is off, or the master key does not fit
   */
  checkpoint: () => Promise<LogCheckpoint & { origin: string }>
  /** For a backup, which nothing here may stop: the newest checkpoint as it was signed, null without one. */
  signCheckpoint: () => Promise<string | null>
  /** Replaces the key. A last checkpoint has the signatures of both, so that who knows the old one learns to trust the new one. */
  rotateKey: () => Promise<LogCheckpoint & { origin: string }>
  /** Runs work that appends leaves, or relies on those that there are, alone. A stop waits for it: let long work end once `isOver`. */
  runExclusive: ExclusiveRun
  /** Whether a stop has waited for two seconds. */
  isOver: () => boolean
  /** Removes entries whose rows and salts are in finished archives. Returns how many. */
  prune: () => Promise<number>
  /** Begins the schedule of a server. `version` is that of this program. */
  begin: (version: string) => void
  state: () => AuditLogState
  /** Ends the schedule, with a last checkpoint of what can be covered within two seconds: the next start covers the rest. */
  stop: () => Promise<void>
}

const checkpointMilliseconds = 60_000
const atFirst: AuditLogState = {
  ...{ servingSince: undefined, checkpointAt: undefined, cosignedAt: undefined },
  ...{ failure: undefined, folderFailure: undefined },
}

/** How long a stop waits: ten million rows would take minutes. */
const lastMillisecondsDefault = 2_000

export function createAuditLog(
  context: AuditLogContext,
  { lastMilliseconds = lastMillisecondsDefault }: { lastMilliseconds?: number } = {},
): AuditLog {
  const { writer, auditLog: settings, now, log } = context
  const { orm, reader } = context.database
  const { runExclusive } = createMutex()
  const state: AuditLogState = { ...atFirst }
  const recent = settings.folder === undefined ? undefined : createRecentTiles()
  const closeDays = createDayClosing(context)
  let opened: Promise<{ epoch: Epoch; signer: SignerKey }> | undefined
  const { isOver, beginEnd } = createEnd(lastMilliseconds)

  function openOnce(): Promise<{ epoch: Epoch; signer: SignerKey }> {
    if (settings.mode === 'off')
      throw new Fault('configuration', 'The audit log is off: set LATCHKEY_AUDIT_LOG to full or changes')
    opened ??= openLog(context).catch((error: unknown) => {
      opened = undefined
      throw error
    })
    return opened
  }

  /** `alsoBy`: a key that signed until now. */
  async function checkpoint(alsoBy: SignerKey[] = []): Promise<LogCheckpoint & { origin: string }> {
    const { epoch, signer } = await openOnce()
    if (settings.mode === 'full') await closeDays(isOver)
    const size = await appendRows({ orm, reader, writer, mode: settings.mode, recent, isOver })
    const signed = (await newestAt(epoch, size)) ?? (await sign(epoch, [signer, ...alsoBy], size))
    if (!isOver()) state.checkpointAt = now()
    const cosigned = await newestCosigned(orm, epoch.name)
    state.cosignedAt = cosigned?.at
    await publishAll(context, epoch, { signed, cosigned }, state, { recent, isOver })
    return { ...signed, origin: epoch.origin }
  }

  async function rotateKey(): Promise<LogCheckpoint & { origin: string }> {
    const { epoch, signer } = await openOnce()
    await replaceKey(context, await openMasterKey(context.masterKey, await listSigningKeys(orm)), epoch)
    opened = undefined
    return checkpoint([signer])
  }

  async function newestAt({ name }: Epoch, size: number): Promise<LogCheckpoint | undefined> {
    const newest = await newestCheckpoint(orm, name)
    return newest !== undefined && newest.size >= size ? newest : undefined
  }

  async function sign({ name, origin }: Epoch, signers: SignerKey[], size: number): Promise<LogCheckpoint> {
    const at = now()
    const text = checkpointText({ origin, size, root: await rootOf(orm, size) })
    const note = formatNote({ text, signatures: signers.map((signer) => signNote(text, signer, at)) })
    const signed = { epoch: name, size, at, note, cosignedAt: null }
    await writer.write([insertCheckpoint(orm, signed)]).catch((error: unknown) => {
      // Another node has signed the same.
      if (!isOvertaken(error)) throw error
    })
    // One line, so that a log server far away holds it too. A command prints the checkpoint itself.
    if (state.servingSince !== undefined)
      log('info', 'audit_checkpoint', { origin, size, root: text.split('\n')[2], note: signed.note })
    return signed
  }

  const run = () => runExclusive(() => checkpoint())
  return {
    settings,
    runExclusive,
    isOver,
    checkpoint: run,
    rotateKey: () => runExclusive(rotateKey),
    ...scheduled(context, { checkpoint: run, beginEnd }, state),
  }
}

/** Once an end has begun, it is over after so many milliseconds. */
function createEnd(milliseconds: number): { isOver: () => boolean; beginEnd: () => void } {
  let endsAt = Number.POSITIVE_INFINITY
  return {
    isOver: () => performance.now() >= endsAt,
    beginEnd: () => {
      endsAt = performance.now() + milliseconds
    },
  }
}

/** What a server does about its log, and how that goes. */
function scheduled(
  { database, writer, auditLog: settings, now, log }: AuditLogContext,
  { checkpoint, beginEnd }: Pick<AuditLog, 'checkpoint'> & { beginEnd: () => void },
  state: AuditLogState,
): Pick<AuditLog, 'signCheckpoint' | 'prune' | 'begin' | 'state' | 'stop'> {
  let stopTimers: (() => void)[] = []
  let pruning: Promise<unknown> = Promise.resolve()
  let isStopping = false
  const attempt = async (work: () => Promise<unknown>) => {
    try {
      await work()
      state.failure = undefined
    } catch (error) {
      state.failure = describeError(error)
      log('error', 'audit_log_failed', { reason: state.failure })
    }
  }
  const prune = async () => {
    const { pruneArchived } = await import('./prune.ts')
    return pruneArchived({ database, writer, now, rest: createRest(false), isStopping: () => isStopping })
  }
  return {
    prune,
    signCheckpoint: async () => {
      if (settings.mode === 'off') return null
      const signed = await checkpoint().catch((error: unknown) => {
        log('error', 'audit_log_failed', { reason: describeError(error) })
        return undefined
      })
      return signed?.note ?? null
    },
    begin: (version) => {
      if (settings.mode === 'off') return
      state.servingSince = now()
      const pruneInTurn = () => {
        pruning = prune().catch((error: unknown) =>
          log('error', 'audit_log_not_pruned', { reason: describeError(error) }),
        )
        return pruning
      }
      stopTimers = [
        every(checkpointMilliseconds, () => attempt(checkpoint)),
        every(checkpointMilliseconds, pruneInTurn),
      ]
      const record = insertLogRecord(database.orm, 'start', now(), { version, mode: settings.mode })
      void attempt(() => writer.write([record]))
    },
    state: () => ({ ...state }),
    stop: async () => {
      if (stopTimers.length === 0) return
      for (const stopTimer of stopTimers.splice(0)) stopTimer()
      isStopping = true
      beginEnd()
      await pruning
      await attempt(checkpoint)
    },
  }
}

/** A folder that cannot be written stops nothing: the doctor reports it, and the next checkpoint catches up. */
async function publishAll(
  { database, auditLog: settings, log }: AuditLogContext,
  { name }: Epoch,
  { signed, cosigned }: { signed: LogCheckpoint; cosigned: LogCheckpoint | undefined },
  state: AuditLogState,
  { recent, isOver }: { recent: RecentTiles | undefined; isOver: () => boolean },
): Promise<void> {
  const file = checkpointFileFor(database)
  try {
    if (file !== undefined) await replaceText(file, signed.note)
    if (settings.folder !== undefined) {
      const folder = join(settings.folder, name)
      await publish(database.orm, folder, signed, { recent, isOver })
      if (cosigned !== undefined) await publishCheckpoint(folder, cosigned)
    }
    state.folderFailure = undefined
  } catch (error) {
    state.folderFailure = describeError(error)
    log('error', 'audit_log_not_published', { folder: settings.folder, reason: state.folderFailure })
  } finally {
    recent?.clear()
  }
}
