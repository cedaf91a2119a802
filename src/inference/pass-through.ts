// An upstream's answer on its way to the caller: byte by byte, with the end held back until what it cost is recorded.
import { clientIdleMillisecondsMax } from '../limits.ts'
import type { Inspector } from './usage.ts'

/** Whether the answer went out whole, and whether it was the client that ended it. */
export type PassedThrough = { completed: boolean; clientLeft: boolean }

export type Passing = {
  body: ReadableStream<Uint8Array>
  inspector: Inspector
  /** Ends the upstream call. */
  abort: () => void
  /** The upstream counts as hung when nothing comes for so long, and the client as gone when it takes nothing for so long. */
  idleMilliseconds: number
  clientIdleMilliseconds?: number
  onFirstByte: () => void
  /** Runs exactly once; whatever ends the answer for the client waits for it. */
  settle: (how: PassedThrough) => Promise<void>
}

/** A stream that pulls from the upstream. A client that goes away ends the upstream call; what was used by then is settled. */
export function passThrough(passing: Passing): ReadableStream<Uint8Array> {
  const { inspector, abort, onFirstByte } = passing
  const reader = passing.body.getReader()
  const { idleMilliseconds, clientIdleMilliseconds = clientIdleMillisecondsMax } = passing
  const silence = watchSilence({
    upstream: { milliseconds: idleMilliseconds, onSilent: abort },
    client: { milliseconds: clientIdleMilliseconds, onSilent: giveUp },
  })
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  let clientLeft = false
  let settling: Promise<void> | undefined
  const settle = (completed: boolean) => {
    settling ??= passing.settle({ completed, clientLeft })
    return settling
  }

  async function pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    silence.waitFor('upstream')
    try {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) break
        silence.broken()
        onFirstByte()
        const released = inspector.take(value)
        if (inspector.isFinal()) await settle(true)
        if (released.byteLength > 0) {
          silence.waitFor('client')
          return controller.enqueue(released)
        }
      }
      const rest = inspector.rest()
      await settle(inspector.isWhole())
      if (rest.byteLength > 0) controller.enqueue(rest)
      controller.close()
      silence.stop()
    } catch (error) {
      silence.stop()
      await settle(false)
      throw error
    }
  }

  /** A client that reads no more would hold its upstream for ever. */
  function giveUp(): void {
    controller?.error(new Error('The client takes nothing any more'))
    cancel().catch(() => {})
  }

  async function cancel(): Promise<void> {
    clientLeft = true
    silence.stop()
    abort()
    // First of all, since the read that is cancelled looks like the end of the answer.
    const settled = settle(false)
    await Promise.allSettled([settled, reader.cancel()])
  }

  const start = (given: ReadableStreamDefaultController<Uint8Array>) => {
    controller = given
  }
  return new ReadableStream({ start, pull, cancel })
}

/**
 * The same for a short answer of known length, in one piece, all of which has to come within `idleMilliseconds`: the upstream has it ready.
 * What it breaks off is broken off for the client as well.
 */
export async function passWhole(
  { inspector, abort, idleMilliseconds, onFirstByte, settle }: Omit<Passing, 'body'>,
  response: Response,
): Promise<Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>> {
  const idle = setTimeout(abort, idleMilliseconds)
  let bytes: Uint8Array<ArrayBuffer>
  try {
    bytes = await response.bytes()
  } catch (error) {
    await settle({ completed: false, clientLeft: false })
    // In a later turn, or the connection would close without the head of the answer, and the runtime would print the error.
    const pull = () => new Promise<void>((_, reject) => setTimeout(() => reject(error)))
    return new ReadableStream({ pull })
  } finally {
    clearTimeout(idle)
  }
  onFirstByte()
  inspector.take(bytes)
  await settle({ completed: true, clientLeft: false })
  return bytes
}

/** How often in its time a silence is looked for. */
const looks = 4

type Side = 'upstream' | 'client'
type Silence = {
  /** Begins to wait for a side. */
  waitFor: (side: Side) => void
  /** The side that is waited for has said something. */
  broken: () => void
  stop: () => void
}

/**
 * Tells when the side that is waited for was silent for its time, or up to a quarter longer. One timer that looks again: to set one anew,
 * or to read the clock, with every chunk costs more than the chunk.
 */
function watchSilence(sides: Record<Side, { milliseconds: number; onSilent: () => void }>): Silence {
  const step = Math.min(sides.upstream.milliseconds, sides.client.milliseconds) / looks
  let side: Side = 'upstream'
  let silentLooks = 0
  const timer = setInterval(() => {
    silentLooks += 1
    const { milliseconds, onSilent } = sides[side]
    if (silentLooks * step > milliseconds) onSilent()
  }, step)
  return {
    waitFor: (next) => {
      side = next
      silentLooks = 0
    },
    broken: () => {
      silentLooks = 0
    },
    stop: () => clearInterval(timer),
  }
}
