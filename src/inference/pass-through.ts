// An upstream's answer on its way to the caller: byte by byte, with the end held back until what it cost is recorded.
import type { Inspector } from './usage.ts'

/** Whether the answer went out whole, and whether it was the client that ended it. */
export type PassedThrough = { completed: boolean; clientLeft: boolean }

export type Passing = {
  body: ReadableStream<Uint8Array>
  inspector: Inspector
  /** Ends the upstream call. */
  abort: () => void
  /** The upstream counts as hung when nothing comes for so long. */
  idleMilliseconds: number
  onFirstByte: () => void
  /** Runs exactly once; whatever ends the answer for the client waits for it. */
  settle: (how: PassedThrough) => Promise<void>
}

/** A stream that pulls from the upstream. A client that goes away ends the upstream call; what was used by then is settled. */
export function passThrough(passing: Passing): ReadableStream<Uint8Array> {
  let clientLeft = false
  const chunks = settled(passing, () => clientLeft)
  return new ReadableStream({
    pull: async (controller) => {
      const { done, value } = await chunks.next()
      if (done === true) controller.close()
      else controller.enqueue(value)
    },
    cancel: async () => {
      clientLeft = true
      passing.abort()
      await chunks.return(undefined).catch(() => {})
    },
  })
}

async function* settled(
  { body, inspector, abort, idleMilliseconds, onFirstByte, settle }: Passing,
  hasClientLeft: () => boolean,
): AsyncGenerator<Uint8Array> {
  let isSettled = false
  const settleOnce = async (completed: boolean) => {
    if (isSettled) return
    isSettled = true
    await settle({ completed, clientLeft: hasClientLeft() })
  }
  const idle = watchIdle(idleMilliseconds, abort)
  try {
    for await (const chunk of body) {
      idle.heard()
      onFirstByte()
      const released = inspector.take(chunk)
      if (inspector.isFinal()) await settleOnce(true)
      if (released.byteLength > 0) yield released
    }
    const rest = inspector.rest()
    await settleOnce(inspector.isWhole())
    if (rest.byteLength > 0) yield rest
  } finally {
    idle.stop()
    await settleOnce(false)
  }
}

/** Calls `onIdle` when nothing was heard for so long. One timer that looks again, since setting one anew with every chunk costs more than the chunk. */
function watchIdle(milliseconds: number, onIdle: () => void): { heard: () => void; stop: () => void } {
  let heardAt = performance.now()
  const look = () => {
    const left = heardAt + milliseconds - performance.now()
    if (left <= 0) onIdle()
    else timer = setTimeout(look, left)
  }
  let timer = setTimeout(look, milliseconds)
  return {
    heard: () => {
      heardAt = performance.now()
    },
    stop: () => clearTimeout(timer),
  }
}
