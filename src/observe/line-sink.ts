// Lines on their way to a file or to standard error. Nobody waits for them: a reader that stalls costs lines, which are counted, and no request.
import { closeSync, write } from 'node:fs'
import { setImmediate } from 'node:timers'
import { logQueueBytesMax } from '../limits.ts'

export type LineSink = {
  /** Hands a line over, with its line feed, or drops it while too much waits. Never waits and never fails. */
  write: (line: string) => void
  /** Resolves once everything was written or has failed, or when the time is over. */
  flush: (milliseconds: number) => Promise<void>
  /** How many lines were dropped or could not be written. */
  dropped: () => number
}

/** Writes all of a text, and calls back when it is written or cannot be. */
export type WriteText = (text: string, done: (error?: Error | null) => void) => void

type Environment = {
  now?: () => number
  bytesMax?: number
  /** Called with the first failure, and again with the first after a success. */
  onFailure?: (error: Error) => void
}

/** After dropping lines, it waits until half of the room is free, and then writes how many are missing. */
export function createLineSink(
  writeText: WriteText,
  { now = Date.now, bytesMax = logQueueBytesMax, onFailure = () => {} }: Environment = {},
): LineSink {
  let waiting = 0
  let dropped = 0
  let unreported = 0
  let isFull = false
  let isFailing = false
  const idle: (() => void)[] = []

  function hand(line: string, lines: number): void {
    const bytes = Buffer.byteLength(line)
    waiting += bytes
    writeText(line, (error) => {
      waiting -= bytes
      if (error != null) {
        dropped += lines
        if (!isFailing) onFailure(error)
      }
      isFailing = error != null
      if (waiting > 0) return
      for (const resolve of idle.splice(0)) resolve()
    })
  }

  function report(): void {
    if (unreported === 0) return
    const notice = {
      time: new Date(now()).toISOString(),
      level: 'error',
      event: 'log_lines_dropped',
      lines: unreported,
    }
    unreported = 0
    hand(`${JSON.stringify(notice)}\n`, 0)
  }

  return {
    write: (line) => {
      isFull = waiting > (isFull ? bytesMax / 2 : bytesMax)
      if (isFull) {
        dropped += 1
        unreported += 1
        return
      }
      report()
      hand(line, 1)
    },
    flush: async (milliseconds) => {
      const ended = Promise.withResolvers<void>()
      const timer = setTimeout(ended.resolve, milliseconds)
      for (;;) {
        if (waiting <= bytesMax / 2) report()
        if (waiting === 0) break
        const isIdle = new Promise<'idle'>((resolve) => idle.push(() => resolve('idle')))
        if ((await Promise.race([ended.promise, isIdle])) !== 'idle') break
      }
      clearTimeout(timer)
    },
    dropped: () => dropped,
  }
}

/** Standard error of this process, shared by everything that logs. */
export const standardError: LineSink = createLineSink((text, done) => {
  // Without a listener, a reader that has gone away would end the process.
  if (process.stderr.listenerCount('error') === 0) process.stderr.on('error', () => {})
  process.stderr.write(text, done)
})

export type FileWriter = { write: WriteText; close: () => void }

/** Appends to an open file, off the event loop: whatever waits is one write. `close` closes the file after the last. */
export function createFileWriter(file: number): FileWriter {
  let waiting: { text: string; done: (error?: Error | null) => void }[] = []
  let isWriting = false
  let isClosing = false
  /** A full disk took only part of a line: the next one begins on its own line. */
  let isCut = false

  function next(): void {
    const batch = waiting
    waiting = []
    isWriting = batch.length > 0
    if (!isWriting) {
      if (isClosing) closeSync(file)
      return
    }
    const text = batch.map((each) => each.text).join('')
    writeAll(file, Buffer.from(isCut ? `\n${text}` : text), (error, hasBegun) => {
      isCut = error === null ? false : isCut || hasBegun
      for (const { done } of batch) done(error)
      next()
    })
  }

  return {
    write: (text, done) => {
      waiting.push({ text, done })
      if (!isWriting) {
        isWriting = true
        // The lines of one turn of the event loop share a write.
        setImmediate(next)
      }
    },
    close: () => {
      isClosing = true
      if (!isWriting) closeSync(file)
    },
  }
}

/** A write may take only part of the bytes. After an error, `hasBegun` says whether it took any. */
function writeAll(
  file: number,
  bytes: Buffer,
  done: (error: Error | null, hasBegun: boolean) => void,
  hasBegun = false,
): void {
  write(file, bytes, 0, bytes.length, null, (error, written) => {
    if (error !== null || written === bytes.length) done(error, hasBegun)
    else writeAll(file, bytes.subarray(written), done, true)
  })
}
