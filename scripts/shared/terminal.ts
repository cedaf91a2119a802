// The terminal that a command prints to: its width and whether it shows colors.

export type Terminal = {
  /** Undefined if the output goes to a file or another program. */
  columns: number | undefined
  hasColor: boolean
}

/** Uses colors only on a terminal, and only if NO_COLOR is empty (no-color.org). */
export function readTerminal(): Terminal {
  const { isTTY, columns } = process.stdout
  const { NO_COLOR = '', TERM } = process.env
  const isScreen = isTTY === true
  return { columns: (isScreen && columns) || undefined, hasColor: isScreen && NO_COLOR === '' && TERM !== 'dumb' }
}

const codes = { bold: 1, red: 31, green: 32, yellow: 33, cyan: 36 }
export type Tone = keyof typeof codes

/** Colors a text, which must already be safe for a terminal. */
export function paint(text: string, tone: Tone | undefined, { hasColor }: Pick<Terminal, 'hasColor'>): string {
  return tone === undefined || !hasColor || text === '' ? text : `\u001b[${codes[tone]}m${text}\u001b[0m`
}

const tones: [Tone, RegExp][] = [
  ['green', /^(enabled|active|issued|signing|✓)$/],
  ['yellow', /^(paused|archived|published|retired)$/],
  ['red', /^(disabled|expired|refused|inactive.*|✗|[45]\d\d.*)$/],
]

/** Returns the color of a state or an outcome. */
export function stateTone(state: string): Tone | undefined {
  return tones.find(([, states]) => states.test(state))?.[0]
}
