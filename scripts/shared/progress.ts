// Shows the progress of a long report on one line of standard error, if that is a terminal. Short reports show nothing.
import type { OnProgress } from '../../db/slices.ts'

type Stream = { isTTY?: boolean; write: (text: string) => unknown }
export type Progress = { onProgress: OnProgress /** Clears the line. */; end: () => void }

const silentMilliseconds = 1_000
const redrawMilliseconds = 200

export function createProgress(stream: Stream, monotonic: () => number): Progress {
  let drawAt = monotonic() + silentMilliseconds
  let isDrawn = false
  return {
    onProgress: (done, total) => {
      if (stream.isTTY !== true || monotonic() < drawAt) return
      drawAt = monotonic() + redrawMilliseconds
      isDrawn = true
      const percent = Math.floor((100 * done) / Math.max(total, 1))
      stream.write(`\r${done.toLocaleString('en-US')} of ${total.toLocaleString('en-US')} rows (${percent} %)\x1b[K`)
    },
    end: () => {
      if (isDrawn) stream.write('\r\x1b[K')
      isDrawn = false
    },
  }
}
