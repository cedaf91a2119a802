// An upstream's answer on its way to the caller: byte by byte, with the end held back until what it cost is recorded.
import { clientIdleMillisecondsMax, usageWaitMillisecondsMax } from '../limits.ts'
import type { Peer } from '../runtime/listener.ts'
import type { Inspector } from './usage.ts'

/** Whether the answer went out whole, and whether it was the client that ended it. */
export type PassedThrough = { completed: boolean; clientLeft: boolean }

export type Passing = {
  body: ReadableStream<Uint8Array>
  inspector: Inspector
  /** Ends the upstream call. */
  abort: () => void
  /** Sets what happens when the client goes away, where its stream is not told. */
  whenClientLeaves: (act: () => void) => void
  peer: Pick<Peer, 'isCut' | 'outlives'>
  /** The upstream counts as hung when nothing comes for so long, and the client as gone when it takes nothing for so long. */
  idleMilliseconds: number
  clientIdleMilliseconds?: number
  /** How long a stream whose client has left is read on for its usage. */
  usageMilliseconds?: number
  onFirstByte: () => void
  /** Runs exactly once; whatever ends the answer for the client waits for it. */
  settle: (how: PassedThrough) => Promise<void>
}

/**
 * A stream that pulls from the upstream. A client that goes away ends the upstream call, and what was used by then is settled; where only
 * the usage is missing, that is waited for.
 */
export function passThrough(passing: Passing): ReadableStream<Uint8Array> {
  const { inspector, abort, onFirstByte, peer } = passing
  const reader = passing.body.getReader()
  const { idleMilliseconds, clientIdleMilliseconds = clientIdleMillisecondsMax } = passing
  const silence = watchSilence({
    upstream: { milliseconds: idleMilliseconds, onSilent: abort },
    client: { milliseconds: clientIdleMilliseconds, onSilent: giveUp },
  })
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  let pulling: Promise<void> | undefined
  let leaving: Promise<void> | undefined
  let settling: Promise<void> | undefined
  /** Whether it was the client that ended the answer, and not the service. */
  let clientLeft = false
  let isOver = false
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
        if (leaving !== undefined) throw new Error('The client has left')
        if (inspector.isFinal()) await settle(true)
        if (released.byteLength > 0) {
          silence.waitFor('client')
          return controller.enqueue(released)
        }
      }
      if (leaving !== undefined) throw new Error('The client has left')
      const rest = inspector.rest()
      await settle(inspector.isWhole())
      if (rest.byteLength > 0) controller.enqueue(rest)
      controller.close()
      silence.stop()
      isOver = true
    } catch (error) {
      silence.stop()
      if (leaving === undefined) await settle(false)
      throw error
    }
  }

  /** A client that reads no more would hold its upstream for ever. */
  function giveUp(): void {
    controller?.error(new Error('The client takes nothing any more'))
    void leave()
  }

  /** However, and however often, it is told. */
  async function leave(): Promise<void> {
    if (isOver) return
    leaving ??= goOn()
    await leaving
  }

  async function goOn(): Promise<void> {
    silence.stop()
    clientLeft = !peer.isCut()
    if (!clientLeft || settling !== undefined || !inspector.isUsageDue()) return end()
    const ending = readForUsage(reader, passing, pulling).then(end)
    peer.outlives(ending)
    await ending
  }

  async function end(): Promise<void> {
    abort()
    // First of all, since a read that is cancelled looks like the end of the answer.
    const settled = settle(false)
    await Promise.allSettled([settled, reader.cancel()])
  }

  passing.whenClientLeaves(() => void leave())
  return new ReadableStream({
    start: (given) => {
      controller = given
    },
    pull: (controller) => {
      pulling = pull(controller)
      return pulling
    },
    cancel: leave,
  })
}

/** Reads on until the usage is there, for a short time. What was asked for last is awaited first. */
async function readForUsage(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  { inspector, abort, usageMilliseconds = usageWaitMillisecondsMax }: Passing,
  asked: Promise<void> | undefined,
): Promise<void> {
  const timer = setTimeout(abort, usageMilliseconds)
  try {
    await asked?.catch(() => {})
    while (inspector.isUsageDue()) {
      const { done, value } = await reader.read()
      if (done) break
      inspector.take(value)
    }
  } catch {
    // What the upstream sent until then counts.
  } finally {
    clearTimeout(timer)
  }
}

/**
 * The same for a short answer of known length, in one piece, all of which has to come within `idleMilliseconds`: the upstream has it ready.
 * What it breaks off is broken off for the client as well.
 */
export async function passWhole(
  { inspector, abort, idleMilliseconds, onFirstByte, settle }: Omit<Passing, 'body' | 'whenClientLeaves' | 'peer'>,
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
