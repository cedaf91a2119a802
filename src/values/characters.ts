// The length of text as every limit counts it: in Unicode code points (reference: Limits).

/** Whether a text has more than `max` code points. They are counted only where the UTF-16 length leaves it open. */
export function isLonger(text: string, max: number): boolean {
  return text.length > max && (text.length > 2 * max || [...text].length > max)
}
