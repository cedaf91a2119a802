// The owner's side of the second connection to its database file (reader-thread.ts). Its thread is started when it is first needed.
import type { Worker } from 'node:worker_threads'
import { type InStatement, LibsqlError, type ResultSet, type Row } from '@libsql/core/api'
import type { CheckpointResult, ReaderRequest, ReaderResponse } from './reader-thread.ts'

export type Reader = {
  /**
   * Reads a snapshot that begins after the call, so it has every commit that was acknowledged before. Undefined if there is no thread and
   * none can be started.
   * @throws LibsqlError as the client would
   */
  read: (statement: InStatement) => Promise<ResultSet | undefined>
  /**
   * Runs a checkpoint if anything was committed since the last one of this thread, before waiting reads; undefined if nothing was. With
   * `isAlone`, it runs in any case: nothing may be committed until it resolves.
   */
  checkpoint: (isAlone: boolean) => Promise<CheckpointResult | undefined>
  /** Whether a thread has the connection, or is about to. */
  isOpen: () => boolean
  /** Whether a thread can be started. */
  isUsable: () => boolean
  /** When the read that runs began, by `performance.now()`; undefined between reads. */
  readingSince: () => number | undefined
  /** Ends the thread after what it does. Returns whether its connection is closed. */
  close: () => Promise<boolean>
}

type Options = {
  /** Called before a thread is started. */
  onStart: () => Promise<void>
  /** Called when a thread has ended unasked; `isHopeless` if it never answered, after which no other one is started. */
  onEnded: (reason: string, isHopeless: boolean) => void
  /** The module of the thread. */
  module?: string | URL
}

type Request = {
  asked: ReaderRequest
  resolve: (answered: ReaderResponse) => void
  reject: (error: Error) => void
  isAgain: boolean
}

const closeMillisecondsMax = 10_000

export function createReader(path: string, options: Options): Reader {
  let isHopeless = false
  let isClosing = false
  const { ask, isOpen, runningSince } = createThread(path, options, (error, hasAnswered) => {
    if (isClosing) return
    isHopeless = !hasAnswered
    options.onEnded(error.message, isHopeless)
  })

  return {
    read: async (statement) => {
      if (isHopeless || isClosing) return undefined
      try {
        return toResult(await ask({ read: statement }))
      } catch (error) {
        if (isHopeless) return undefined
        throw error
      }
    },
    checkpoint: async (isAlone) => {
      const answered = await ask(isAlone ? 'checkpoint-alone' : 'checkpoint')
      if (typeof answered === 'object' && 'error' in answered) throw toError(answered)
      return typeof answered === 'object' && 'checkpointed' in answered ? answered.checkpointed : undefined
    },
    isOpen,
    isUsable: () => !isHopeless && !isClosing,
    readingSince: runningSince,
    close: async () => {
      if (!isOpen()) return true
      isClosing = true
      const { promise: late, resolve } = Promise.withResolvers<false>()
      const timer = setTimeout(() => resolve(false), closeMillisecondsMax)
      // A thread that ends meanwhile has closed its connection too.
      const closed = ask('close').then(
        () => true,
        () => true,
      )
      const isClosed = await Promise.race([closed, late])
      clearTimeout(timer)
      return isClosed
    },
  }
}

/** Asks one thing at a time, in a thread that is started when it is needed. `onEnd` is called when a thread has ended. */
function createThread(
  path: string,
  { onStart, module = threadModule() }: Options,
  onEnd: (error: Error, hasAnswered: boolean) => void,
) {
  let current: { worker: Promise<Worker> } | undefined
  let hasAnswered = false
  let running: (Request & { since: number }) | undefined
  const waiting: Request[] = []

  function next(): void {
    if (running !== undefined) return
    const request = waiting.shift()
    if (request === undefined) return
    running = { ...request, since: performance.now() }
    current ??= start()
    const post = (worker: Worker) => {
      worker.ref()
      worker.postMessage(request.asked)
    }
    current.worker.then(post, () => {})
  }

  function start(): { worker: Promise<Worker> } {
    const begun = { worker: onStart().then(() => startWorker(module, path, answer, (error) => end(begun, error))) }
    begun.worker.catch((error: Error) => end(begun, error))
    return begun
  }

  function answer(worker: Worker, answered: ReaderResponse): void {
    const request = running
    running = undefined
    hasAnswered = true
    worker.unref()
    if (answered === 'closed') void worker.terminate()
    request?.resolve(answered)
    next()
  }

  /** What was lost is asked once more, in the next thread: it may be what ended this one. Without hope, nothing more is asked. */
  function end(ended: typeof current, error: Error): void {
    if (current !== ended) return
    current = undefined
    const lost = running
    running = undefined
    onEnd(error, hasAnswered)
    const given = new Error(`The thread that reads the database has ended: ${error.message}`)
    if (hasAnswered && lost !== undefined && !lost.isAgain && lost.asked !== 'close')
      waiting.unshift({ ...lost, isAgain: true })
    else lost?.reject(given)
    if (!hasAnswered) for (const { reject } of waiting.splice(0)) reject(given)
    next()
  }

  return {
    ask: (asked: ReaderRequest): Promise<ReaderResponse> =>
      new Promise((resolve, reject) => {
        const request = { asked, resolve, reject, isAgain: false }
        if (asked === 'checkpoint' || asked === 'checkpoint-alone') waiting.unshift(request)
        else waiting.push(request)
        next()
      }),
    isOpen: () => current !== undefined,
    runningSince: () => running?.since,
  }
}

async function startWorker(
  module: string | URL,
  path: string,
  onAnswer: (worker: Worker, answered: ReaderResponse) => void,
  onEnd: (error: Error) => void,
): Promise<Worker> {
  // A start needs no thread.
  const { Worker } = await import('node:worker_threads')
  const worker = new Worker(module, { workerData: { path } })
  worker.on('message', (answered: ReaderResponse) => onAnswer(worker, answered))
  worker.on('error', onEnd)
  worker.on('exit', () => onEnd(new Error('it was stopped')))
  return worker
}

/** The compiled program has the module under its path in the repository. */
function threadModule(): string | URL {
  return import.meta.url.includes('$bunfs')
    ? './db/file/reader-thread.ts'
    : new URL('reader-thread.ts', import.meta.url)
}

function toResult(answered: ReaderResponse): ResultSet {
  if (answered === 'closed' || !('columns' in answered)) throw toError(answered)
  const { columns, rows } = answered
  const result = { columns, columnTypes: [], rows: rows.map((values) => toRow(columns, values)) }
  return { ...result, rowsAffected: 0, lastInsertRowid: undefined, toJSON: () => answered }
}

/** As the client makes it: values by number, which are not enumerable, and by name. */
function toRow(columns: readonly string[], values: unknown[]): Row {
  const row = Object.defineProperty({}, 'length', { value: values.length }) as Row
  for (const [index, column] of columns.entries()) {
    Object.defineProperty(row, index, { value: values[index] })
    if (!Object.hasOwn(row, column)) row[column] = values[index] as Row[string]
  }
  return row
}

function toError(answered: ReaderResponse): Error {
  if (answered === 'closed' || !('error' in answered)) return new Error('The database is closed')
  const { message, code, extendedCode, rawCode } = answered.error
  return new LibsqlError(message, code, extendedCode, rawCode)
}
