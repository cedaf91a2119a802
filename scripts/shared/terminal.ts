// What is known of the screen that a command prints to: its width, and whether colors are welcome.

export type Terminal = {
  /** Undefined where the output goes to a file or another program, which have no width. */
  columns: number | undefined
  hasColor: boolean
}

/** Colors are for a screen alone, and not where NO_COLOR has a value (no-color.org). */
export function readTerminal(): Terminal {
  const { isTTY, columns } = process.stdout
  const { NO_COLOR = '', TERM } = process.env
  const isScreen = isTTY === true
  return { columns: (isScreen && columns) || undefined, hasColor: isScreen && NO_COLOR === '' && TERM !== 'dumb' }
}

const codes = { bold: 1, red: 31, green: 32, yellow: 33, cyan: 36 }
export type Tone = keyof typeof codes

/** For text that is harmless already. */
export function paint(text: string, tone: Tone | undefined, { hasColor }: Pick<Terminal, 'hasColor'>): string {
  return tone === undefined || !hasColor || text === '' ? text : `\u001b[${codes[tone]}m${text}\u001b[0m`
}

const tones: [Tone, RegExp][] = [
  ['green', /^(enabled|active|issued|signing|✓)$/],
  ['yellow', /^(paused|archived|published|retired)$/],
  ['red', /^(disabled|expired|refused|inactive.*|✗|[45]\d\d.*)$/],
]

/** For columns of states and outcomes. */
export function stateTone(state: string): Tone | undefined {
  return tones.find(([, states]) => states.test(state))?.[0]
}
