// How far a long report is, on its way over the local socket: lines of JSON, `{"progress":{"done":…,"total":…}}` from time to time and at
// the end `{"answer":…}`. What ends soon is answered as it always was.
import type { OnProgress } from '../../../db/slices.ts'
import { Fault } from '../../fault.ts'

/** Whoever asks for it understands the lines. */
export const progressMediaType = 'application/x-ndjson'
/** A command gives up on a server that says nothing for a minute. */
const tellEveryMilliseconds = 1_000

type Line = { progress: { done: number; total: number } } | { answer: unknown }

/** Answers with what `run` does, which never rejects: at once when it ends before it has told of progress, and otherwise line by line. */
export function respondWithProgress(
  request: Request,
  run: (onProgress?: OnProgress) => Promise<Response>,
  everyMilliseconds = tellEveryMilliseconds,
): Promise<Response> {
  if (request.headers.get('accept') !== progressMediaType) return run()
  return new Promise((resolve) => {
    const lines = new TransformStream<Uint8Array, Uint8Array>()
    const writer = lines.writable.getWriter()
    const write = (text: string) => writer.write(new TextEncoder().encode(text))
    let isStreaming = false
    let isGone = false
    let toldAt = performance.now()
    const onProgress: OnProgress = (done, total) => {
      if (isGone || request.signal.aborted) throw new Fault('unavailable', 'Nobody waits for the answer')
      if (performance.now() - toldAt < everyMilliseconds) return
      toldAt = performance.now()
      if (!isStreaming) resolve(new Response(lines.readable, { headers: { 'content-type': progressMediaType } }))
      isStreaming = true
      // A reader that is gone shows at the next write.
      write(`${JSON.stringify({ progress: { done, total } } satisfies Line)}\n`).catch(() => {
        isGone = true
      })
    }
    const end = async (response: Response) => {
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

/** Takes such lines in pieces as they come, and gives the answer once the last has come. @throws SyntaxError for what is no JSON */
export function createLineReader(onProgress: OnProgress): { take: (piece: Buffer) => void; answer: () => unknown } {
  let line: Buffer[] = []
  let answer: unknown
  const takeLine = () => {
    const read = JSON.parse(Buffer.concat(line).toString()) as Line
    if ('progress' in read) onProgress(read.progress.done, read.progress.total)
    else answer = read.answer
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
