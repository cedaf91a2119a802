// The progress of a long operation over the local socket: lines of JSON, `{"progress":{"done":…,"total":…}}` from time to time,
// `{"waiting":true}` while it reports nothing, and `{"answer":…}` at the end. A short one is a plain response.
import type { OnProgress } from '../../../db/read/slices.ts'
import { Fault } from '../../fault.ts'
import { every } from '../../scheduling/every.ts'

/** A client that accepts it understands the lines. */
export const progressMediaType = 'application/x-ndjson'
const progressEveryMilliseconds = 1_000
/** A command gives up on a server that is silent for a minute. */
const silentMillisecondsMax = 10_000

type Line = { progress: { done: number; total: number } } | { waiting: true } | { answer: unknown }

/**
 * Returns the response of `run`, which never rejects. If `run` reports progress first, or takes long, the response is a
 * stream of lines.
 */
export function respondWithProgress(
  request: Request,
  run: (onProgress?: OnProgress) => Promise<Response>,
  everyMilliseconds = progressEveryMilliseconds,
  silentMilliseconds = silentMillisecondsMax,
): Promise<Response> {
  if (request.headers.get('accept') !== progressMediaType) return run()
  return new Promise((resolve) => {
    const lines = new TransformStream<Uint8Array, Uint8Array>()
    const writer = lines.writable.getWriter()
    const write = (text: string) => writer.write(new TextEncoder().encode(text))
    let isStreaming = false
    let isGone = false
    let reportedAt = performance.now()
    const writeLine = (line: Line) => {
      reportedAt = performance.now()
      if (!isStreaming) resolve(new Response(lines.readable, { headers: { 'content-type': progressMediaType } }))
      isStreaming = true
      // A closed connection shows at the next write.
      write(`${JSON.stringify(line)}\n`).catch(() => {
        isGone = true
      })
    }
    const onProgress: OnProgress = (done, total) => {
      if (isGone || request.signal.aborted) throw new Fault('unavailable', 'The client closed the connection')
      if (performance.now() - reportedAt >= everyMilliseconds) writeLine({ progress: { done, total } })
    }
    const stop = every(silentMilliseconds, () => {
      if (performance.now() - reportedAt >= silentMilliseconds && !isGone) writeLine({ waiting: true })
    })
    const end = async (response: Response) => {
      stop()
      if (!isStreaming) return resolve(response)
      await write('{"answer":')
      for await (const chunk of response.body ?? []) await writer.write(chunk)
      await write('}\n')
      await writer.close()
    }
    void run(onProgress)
      .then(end)
      .catch(() => {})
  })
}

/** Reads such lines in pieces; `answer` returns the answer after the last one. @throws SyntaxError for invalid JSON */
export function createLineReader(onProgress: OnProgress): { take: (piece: Buffer) => void; answer: () => unknown } {
  let line: Buffer[] = []
  let answer: unknown
  const takeLine = () => {
    const read = JSON.parse(Buffer.concat(line).toString()) as Line
    if ('progress' in read) onProgress(read.progress.done, read.progress.total)
    else if ('answer' in read) answer = read.answer
    line = []
  }
  return {
    take: (piece) => {
      let start = 0
      for (let end = piece.indexOf('\n'); end >= 0; end = piece.indexOf('\n', start)) {
        line.push(piece.subarray(start, end))
        takeLine()
        start = end + 1
      }
      line.push(piece.subarray(start))
    },
    answer: () => answer,
  }
}
