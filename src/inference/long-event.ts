// An event of a stream that is too long to be kept: finds its end and its usage as its bytes pass.
import { createUsageScanner } from './usage-scanner.ts'

type Fields = Record<string, unknown>

const [lineFeed, carriageReturn] = [0x0a, 0x0d]
const dataField = Buffer.from('data:')
const byteOrderMark = Buffer.of(0xef, 0xbb, 0xbf)

export type LongEvent = {
  /** Takes bytes and returns where the event ends in them; undefined while it goes on. */
  take: (bytes: Uint8Array) => number | undefined
  /** What the event says, as `createUsageScanner`. */
  result: () => Fields
}

/** The bytes are those from the start of the event. */
export function openLongEvent(): LongEvent {
  const scanner = createUsageScanner()
  /** How many bytes of `data:` the line began with, as far as it has come; -1 for another line. */
  let matched = 0
  let isAfterReturn = false
  let isFirst = true
  /** Reads from `at` to the end of the line or of the bytes. */
  const readLine = (bytes: Uint8Array, from: number, end: number) => {
    let at = from
    while (at < end && matched >= 0 && matched < dataField.length) {
      matched = bytes[at] === dataField[matched] ? matched + 1 : -1
      at += 1
    }
    if (matched === dataField.length && at < end) scanner.take(bytes.subarray(at, end))
  }
  return {
    take: (bytes) => {
      let at = isFirst && byteOrderMark.equals(bytes.subarray(0, 3)) ? 3 : 0
      isFirst = false
      let nextReturn = -2
      while (at < bytes.length) {
        const isSecondHalf = isAfterReturn && bytes[at] === lineFeed
        isAfterReturn = false
        if (isSecondHalf) {
          at += 1
          continue
        }
        if (nextReturn !== -1 && nextReturn < at) nextReturn = bytes.indexOf(carriageReturn, at)
        const feed = bytes.indexOf(lineFeed, at)
        const ends = [feed, nextReturn].filter((end) => end >= 0)
        const end = ends.length === 0 ? bytes.length : Math.min(...ends)
        readLine(bytes, at, end)
        at = end + 1
        if (end === bytes.length) return undefined
        isAfterReturn = bytes[end] === carriageReturn
        const isEmpty = matched === 0
        matched = 0
        if (isEmpty) return isAfterReturn && bytes[at] === lineFeed ? at + 1 : at
      }
      return undefined
    },
    result: () => scanner.result(),
  }
}
