// The scales of a chart: the lines behind its bars, and which bars have a label.

/** The smallest of 1, 2, 2.5, 5, 10 … that needs at most four lines; of whole numbers where `isWhole`. @param {number} most */
export function niceStep(most, isWhole = false) {
  if (most <= 0) return 1
  const size = 10 ** Math.floor(Math.log10(most / 4))
  const steps = [1, 2, 2.5, 5, 10].map((factor) => factor * size)
  return steps.find((step) => step * 4 >= most && (!isWhole || Number.isInteger(step))) ?? 10 * size
}

const timesMax = 6

/** The bars that have a label below them, at the same distances. @param {number} bars */
export function labeledBars(bars) {
  const step = Math.max(1, Math.ceil(bars / timesMax))
  return Array.from({ length: Math.ceil(bars / step) }, (_, index) => index * step)
}
