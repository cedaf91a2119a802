// Passes an upstream's response to the client chunk by chunk, and holds back its end until the usage is recorded.
import { clientIdleMillisecondsMax, usageWaitMillisecondsMax } from '../limits.ts'
import type { Peer } from '../runtime/listener.ts'
import { clearDeadline, type Deadline, setDeadline } from '../scheduling/deadlines.ts'
import { type Silence, watchSilence } from './silence.ts'
import type { Inspector } from './usage.ts'

/**
 * Whether the response was sent whole, and whether the client ended it. `callEnd`: when the upstream ends the call, if it had not yet; it may
 * never settle, as after an abort.
 */
export type PassageEnd = { completed: boolean; clientLeft: boolean; callEnd: Promise<void> | undefined }

export type ResponsePassage = {
  body: ReadableStream<Uint8Array>
  inspector: Inspector
  /** Aborts the upstream call. */
  abort: () => void
  /** Sets what happens when the client leaves, for runtimes that do not cancel its stream. */
  whenClientLeaves: (act: () => void) => void
  peer: Pick<Peer, 'isCut' | 'outlives'>
  /** After this time without a chunk, the upstream counts as hung. */
  idleMilliseconds: number
  /** After this time without taking a chunk, the client counts as gone. */
  clientIdleMilliseconds?: number
  /** How long a response is read on for its usage after the client has left. */
  usageMilliseconds?: number
  onFirstByte: () => void
  /** Asked for each chunk: the last bytes for a client that may no longer have the response, in place of the chunk. */
  refusal?: (() => Uint8Array | undefined) | undefined
  /** Called exactly once; the end of the response waits for it. */
  settle: (how: PassageEnd) => Promise<void>
}

/** `settle` also gets the response, undefined when the upstream broke it off. */
type WholePassage = Omit<ResponsePassage, 'body' | 'inspector' | 'refusal' | 'settle'> & {
  settle: (how: PassageEnd, bytes: Uint8Array | undefined) => Promise<void>
}
type WholeBody = Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>
type Controller = ReadableStreamDefaultController<Uint8Array>

/** A response in transit. */
type Passage = ResponsePassage & {
  readonly reader: ReadableStreamDefaultReader<Uint8Array>
  readonly silence: Silence
  readonly callEnd: PromiseWithResolvers<void>
  controller: Controller | undefined
  /** The pull in progress, or the last one. */
  pulling: Promise<void> | undefined
  /** Set once the client has left. */
  leaving: Promise<void> | undefined
  settling: Promise<void> | undefined
  /** Whether the client ended the response, and not the service. */
  clientLeft: boolean
  isOver: boolean
}

/**
 * A stream that pulls from the upstream. When the client leaves, the upstream call is aborted and what was used so far
 * is settled; when only the usage is missing, or the rest of a JSON response, it is read first.
 */
export function passThrough(passing: ResponsePassage): ReadableStream<Uint8Array> {
  const { idleMilliseconds, clientIdleMilliseconds = clientIdleMillisecondsMax } = passing
  const passage: Passage = {
    ...passing,
    reader: passing.body.getReader(),
    silence: watchSilence({
      upstream: { milliseconds: idleMilliseconds, onSilent: passing.abort },
      client: { milliseconds: clientIdleMilliseconds, onSilent: () => giveUp(passage) },
    }),
    callEnd: Promise.withResolvers(),
    controller: undefined,
    pulling: undefined,
    leaving: undefined,
    settling: undefined,
    clientLeft: false,
    isOver: false,
  }
  passing.whenClientLeaves(() => void leave(passage))
  return new ReadableStream({
    start: (controller) => {
      passage.controller = controller
    },
    pull: (controller) => {
      passage.pulling = pull(passage, controller)
      return passage.pulling
    },
    cancel: () => leave(passage),
  })
}

async function pull(passage: Passage, controller: Controller): Promise<void> {
  const { reader, inspector, silence, onFirstByte, refusal } = passage
  silence.waitFor('upstream')
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      silence.broken()
      onFirstByte()
      const released = inspector.take(value)
      rejectAfterLeaving(passage)
      const last = passage.settling === undefined ? refusal?.() : undefined
      if (last !== undefined) return await refuse(passage, last)
      if (inspector.isFinal()) await settleOnce(passage, true, passage.callEnd.promise)
      if (released.byteLength > 0) {
        silence.waitFor('client')
        return controller.enqueue(released)
      }
    }
    passage.callEnd.resolve()
    rejectAfterLeaving(passage)
    const rest = inspector.rest()
    await settleOnce(passage, inspector.isWhole(), undefined)
    if (rest.byteLength > 0) controller.enqueue(rest)
    close(passage)
  } catch (error) {
    silence.stop()
    if (passage.leaving === undefined) await settleOnce(passage, false, passage.callEnd.promise)
    throw error
  }
}

function close(passage: Passage): void {
  passage.controller?.close()
  passage.silence.stop()
  passage.isOver = true
}

/** Ends the response before its end. What was used until then is settled, as for a client that leaves. */
async function refuse(passage: Passage, last: Uint8Array): Promise<void> {
  passage.silence.stop()
  if (passage.inspector.isUsageDue()) await readForUsage(passage, undefined)
  rejectAfterLeaving(passage)
  passage.abort()
  await settleOnce(passage, false, passage.callEnd.promise)
  passage.controller?.enqueue(last)
  close(passage)
}

function rejectAfterLeaving({ leaving }: Passage): void {
  if (leaving !== undefined) throw new Error('The client has left')
}

function settleOnce(passage: Passage, completed: boolean, callEnd: Promise<void> | undefined): Promise<void> {
  passage.settling ??= passage.settle({ completed, clientLeft: passage.clientLeft, callEnd })
  return passage.settling
}

/** A client that stops reading would otherwise hold its upstream forever. */
function giveUp(passage: Passage): void {
  passage.controller?.error(new Error('The client stopped reading'))
  void leave(passage)
}

/** Ends the passage once, whichever of the signals arrives first. */
async function leave(passage: Passage): Promise<void> {
  if (passage.isOver) return
  passage.leaving ??= goOn(passage)
  await passage.leaving
}

async function goOn(passage: Passage): Promise<void> {
  passage.silence.stop()
  passage.clientLeft = !passage.peer.isCut()
  if (!passage.clientLeft || passage.settling !== undefined || !passage.inspector.isUsageDue()) return end(passage)
  const ending = readForUsage(passage, passage.pulling).then(() => end(passage))
  passage.peer.outlives(ending)
  await ending
}

async function end(passage: Passage): Promise<void> {
  passage.abort()
  // Settled before the reader is canceled: a canceled read looks like the end of the response.
  const settled = settleOnce(passage, false, passage.callEnd.promise)
  await Promise.allSettled([settled, passage.reader.cancel()])
}

/** Reads on until the usage has arrived, for a short time, after `pulling`. */
async function readForUsage(passage: Passage, pulling: Promise<void> | undefined): Promise<void> {
  const { inspector, reader, abort, usageMilliseconds = usageWaitMillisecondsMax } = passage
  const timer = setTimeout(abort, usageMilliseconds)
  try {
    await pulling?.catch(() => {})
    while (inspector.isUsageDue()) {
      const { done, value } = await reader.read()
      if (done) passage.callEnd.resolve()
      if (done) break
      inspector.take(value)
    }
  } catch {
    // The usage that has arrived counts.
  } finally {
    clearTimeout(timer)
  }
}

/**
 * The same for a short response of known length, in one piece. All of it must arrive within `idleMilliseconds`, and
 * within `usageMilliseconds` of the time when the client leaves. When the upstream breaks it off, the client sees a
 * broken response too.
 */
export async function passWhole(passing: WholePassage, response: Response): Promise<WholeBody> {
  const { abort, idleMilliseconds, onFirstByte, settle } = passing
  const limit = setDeadline(idleMilliseconds, abort)
  let usageLimit: Deadline | undefined
  let clientLeft = false
  passing.whenClientLeaves(() => {
    clientLeft = !passing.peer.isCut()
    if (!clientLeft) return abort()
    usageLimit ??= setDeadline(passing.usageMilliseconds ?? usageWaitMillisecondsMax, abort)
  })
  let bytes: Uint8Array<ArrayBuffer>
  try {
    bytes = await response.bytes()
  } catch (error) {
    await settle({ completed: false, clientLeft, callEnd: new Promise(() => {}) }, undefined)
    // In a later turn: otherwise the connection closes before the status is sent, and the runtime prints the error.
    const pull = () => new Promise<void>((_, reject) => setTimeout(() => reject(error)))
    return new ReadableStream({ pull })
  } finally {
    clearDeadline(limit)
    if (usageLimit !== undefined) clearDeadline(usageLimit)
  }
  onFirstByte()
  await settle({ completed: !clientLeft, clientLeft, callEnd: undefined }, bytes)
  return bytes
}
