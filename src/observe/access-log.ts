// The access log: one JSON line for each request, in a file or on standard error. It never gets a body, a query or a credential.
import { openSync, statSync } from 'node:fs'
import { Fault } from '../fault.ts'
import { logFlushMillisecondsMax } from '../limits.ts'
import { createFileWriter, createLineSink, type LineSink, standardError } from './line-sink.ts'
import type { Log } from './log.ts'

export type AccessLogTarget = { kind: 'stderr' } | { kind: 'file'; path: string }

/** `path` is the route, such as `/v1/keys/{hash}`; null when no route matches. */
export type AccessRecord = {
  requestId: string
  traceId: string | undefined
  method: string
  path: string | null
  status: number
  milliseconds: number
  keyId: string | undefined
  clientAddress: string | null
}

export type AccessLog = {
  isOn: () => boolean
  /** Never waits and never fails: a line that cannot be written is reported in the log. */
  write: (now: number, line: object) => void
  /**
   * Opens a target, also the one in use, whose file may have been moved away. The returned function starts using it.
   * @throws Fault `configuration` when the file cannot be opened; the one in use stays
   */
  prepare: (target: AccessLogTarget | undefined) => { use: () => void; discard: () => void }
  /** How many lines are missing in files; standard error counts its own. */
  dropped: () => number
  /** Resolves when the last line is written. */
  close: () => Promise<void>
}

type Environment = { databasePath: string; log: Log }

type Target = Pick<LineSink, 'write' | 'flush' | 'dropped'> & { close: () => void }

/** @throws Fault `configuration` when the file cannot be opened */
export function openAccessLog(target: AccessLogTarget | undefined, environment: Environment): AccessLog {
  let current = openTarget(target, environment)
  let droppedBefore = 0
  const replace = (next: Target | undefined) => {
    droppedBefore += current?.dropped() ?? 0
    current?.close()
    current = next
  }
  return {
    isOn: () => current !== undefined,
    write: (now, line) => current?.write(`${JSON.stringify({ time: new Date(now).toISOString(), ...line })}\n`),
    prepare: (next) => {
      const opened = openTarget(next, environment)
      return { use: () => replace(opened), discard: () => opened?.close() }
    },
    dropped: () => droppedBefore + (current?.dropped() ?? 0),
    close: async () => {
      await current?.flush(logFlushMillisecondsMax)
      replace(undefined)
    },
  }
}

function openTarget(target: AccessLogTarget | undefined, { databasePath, log }: Environment): Target | undefined {
  if (target === undefined) return undefined
  if (target.kind === 'stderr') return { ...standardError, dropped: () => 0, close: () => {} }
  const { write, close } = createFileWriter(openFile(target.path, databasePath))
  const onFailure = ({ message }: Error) => log('error', 'access_log_failed', { reason: message })
  return { ...createLineSink(write, { onFailure }), close }
}

/** @throws Fault `configuration` */
function openFile(path: string, databasePath: string): number {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    const database = statSync(databasePath, { throwIfNoEntry: false })
    // Closing any descriptor of the database file would drop this process's lock on it.
    if (found !== undefined && found.ino === database?.ino && found.dev === database.dev)
      throw cannotUse(path, 'it is the database; name another file')
    if (found !== undefined && !found.isFile())
      throw cannotUse(path, 'it is not a regular file; name a file, or stderr')
    return openSync(path, 'a', 0o600)
  } catch (error) {
    throw error instanceof Fault ? error : cannotUse(path, (error as Error).message)
  }
}

function cannotUse(path: string, why: string): Fault {
  return new Fault('configuration', `LATCHKEY_ACCESS_LOG is ${JSON.stringify(path)}, which cannot be used: ${why}`)
}

/** A request as its line has it. */
export function accessLine({
  requestId,
  traceId,
  method,
  path,
  status,
  milliseconds,
  ...caller
}: AccessRecord): Record<string, unknown> {
  return {
    request_id: requestId,
    trace_id: traceId,
    method,
    path,
    status,
    milliseconds: Math.round(milliseconds * 10) / 10,
    key_id: caller.keyId ?? null,
    client_address: caller.clientAddress,
  }
}
