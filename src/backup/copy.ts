// The holder's side of the child process that copies the database: holds checkpoints while the copy is completed, bounds the growth of the log, and
// ends the child when anything goes wrong.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import type { Database } from '../../db/file/open.ts'
import type { OnProgress } from '../../db/read/slices.ts'
import { Fault } from '../fault.ts'
import { backupLogBytesMax, diskReserveBytes } from '../limits.ts'
import { copyProcessWord, ownCommand, ownEnvironment } from '../runtime/own-process.ts'
import { every } from '../scheduling/every.ts'
import type { Manifest } from './backup-file.ts'
import type { CopyJob, CopyMessage, HeldState } from './copy-process.ts'
import { freeBytes, megabytes } from './space.ts'

type CopyOptions = { signal: AbortSignal; onProgress: OnProgress | undefined }

const watchMilliseconds = 100

/**
 * Resolves when the backup is on disk under its name. It contains the state of the database when `describe` is called.
 * @throws Fault, also the reason of the signal; Error with the words of the child process
 */
export async function startCopy(
  database: Pick<Database, 'holdCheckpoints'>,
  job: CopyJob,
  describe: () => HeldState,
  { signal, onProgress }: CopyOptions,
): Promise<{ manifest: Manifest; bytes: number }> {
  const [program, args] = ownCommand(copyProcessWord)
  const child = spawn(program, args, { env: ownEnvironment(), stdio: 'pipe' })
  // A child that has ended takes no further lines; its messages say why.
  child.stdin.on('error', () => {})
  child.stdin.write(`${JSON.stringify(job)}\n`)
  let isOver = false
  let release: (() => Promise<void>) | undefined
  const watch = watchCopy(job.database, { signal, onProgress }, () => release !== undefined)
  try {
    const follow = async () => {
      for await (const message of messagesOf(child)) {
        if ('drafted' in message) {
          release = await database.holdCheckpoints()
          if (isOver) await release()
          await checkLog(job.database)
          child.stdin.write(`${JSON.stringify(describe())}\n`)
        } else if ('progress' in message) {
          watch.note(message.progress)
        } else if ('copied' in message) {
          await release?.()
          release = undefined
          child.stdin.write('released\n')
        } else if ('failed' in message) {
          throw new Error(message.failed)
        } else return { manifest: message.done, bytes: message.bytes }
      }
      throw new Error('the process that copies the database ended without a result')
    }
    return await Promise.race([follow(), watch.stopped])
  } finally {
    isOver = true
    watch.end()
    // Checkpoints change the file that the child copies.
    await kill(child)
    await release?.()
  }
}

async function* messagesOf(child: ChildProcessWithoutNullStreams): AsyncGenerator<CopyMessage> {
  const errors: Buffer[] = []
  child.stderr.on('data', (piece: Buffer) => errors.length < 100 && errors.push(piece))
  const failed = new Promise<never>((_, reject) => child.on('error', reject))
  failed.catch(() => {})
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  for (;;) {
    const line = await Promise.race([lines.next(), failed])
    if (line.done === true) break
    yield JSON.parse(line.value) as CopyMessage
  }
  const said = Buffer.concat(errors).toString().trim()
  if (said !== '') throw new Error(said.slice(0, 1_000))
}

/** `stopped` rejects when the signal is aborted, the caller has gone, or the log or its disk is at its bound. */
function watchCopy(path: string | undefined, { signal, onProgress }: CopyOptions, isHeld: () => boolean) {
  const { promise: stopped, reject } = Promise.withResolvers<never>()
  stopped.catch(() => {})
  let known = { done: 0, total: 1 }
  const check = async () => {
    // It also keeps a caller on the socket from taking the silence for a failure.
    onProgress?.(known.done, known.total)
    if (isHeld()) await checkLog(path)
  }
  const stopWatching = every(watchMilliseconds, check, reject)
  const abort = () => reject(signal.reason)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort)
  return {
    stopped,
    note: (progress: typeof known) => {
      known = progress
    },
    end: () => {
      stopWatching()
      signal.removeEventListener('abort', abort)
    },
  }
}

/** @throws Fault `unavailable` */
async function checkLog(path: string | undefined): Promise<void> {
  // A database server has the log on its own machine.
  if (path === undefined) return
  const bytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
  if (bytes > backupLogBytesMax)
    throw new Fault(
      'unavailable',
      `The backup was stopped, because the write-ahead log grew beyond ${megabytes(backupLogBytesMax)} meanwhile; back up at a quieter time or to a faster disk`,
    )
  if ((await freeBytes(dirname(path))) < diskReserveBytes / 2)
    throw new Fault('unavailable', 'The backup was stopped, because the disk of the database is almost full')
}

async function kill(child: ChildProcessWithoutNullStreams): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
  const ended = new Promise((resolve) => child.once('close', resolve))
  child.kill('SIGKILL')
  await ended
}
