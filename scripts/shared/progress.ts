// Shows the progress of a long operation on one line of standard error, if that is a terminal. Short ones show nothing.
import type { OnProgress } from '../../db/read/slices.ts'

type Stream = { isTTY?: boolean; write: (text: string) => unknown }
export type Progress = { onProgress: OnProgress /** Clears the line. */; end: () => void }

/** `MB`: the numbers are bytes. */
export type ProgressUnit = 'rows' | 'MB'

const silentMilliseconds = 1_000
const redrawMilliseconds = 200

export function createProgress(stream: Stream, monotonic: () => number, unit: ProgressUnit = 'rows'): Progress {
  const shown = (count: number) => Math.floor(unit === 'MB' ? count / 1e6 : count).toLocaleString('en-US')
  let drawAt = monotonic() + silentMilliseconds
  let isDrawn = false
  return {
    onProgress: (done, total) => {
      if (stream.isTTY !== true || monotonic() < drawAt) return
      drawAt = monotonic() + redrawMilliseconds
      isDrawn = true
      const percent = Math.floor((100 * done) / Math.max(total, 1))
      stream.write(`\r${shown(done)} of ${shown(total)} ${unit} (${percent} %)\x1b[K`)
    },
    end: () => {
      if (isDrawn) stream.write('\r\x1b[K')
      isDrawn = false
    },
  }
}
