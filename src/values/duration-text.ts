// Durations as text, the same for settings, options and whatever else reads one.

const unitMilliseconds: Partial<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Units of values that have always been written as plain numbers too. */
export const plainUnits = { seconds: 1_000, days: 86_400_000 } as const
export type PlainUnit = keyof typeof plainUnits

/** What a person should write. */
export const durationForms = '90s, 15m, 24h or 7d'

/** Milliseconds of a whole number and a unit: `90s`, `15m`, `24h`, `7d` or `500ms`. Undefined for other texts. */
export function readDuration(text: string): number | undefined {
  const [, number, unit] = /^(\d{1,6})(ms|[smhd])$/.exec(text) ?? []
  const milliseconds = Number(number) * (unitMilliseconds[unit ?? ''] ?? Number.NaN)
  return Number.isNaN(milliseconds) ? undefined : milliseconds
}

/** A plain number counts whole units; a duration must be a whole number of them. Undefined for other texts. */
export function readWhole(text: string, unit: PlainUnit): number | undefined {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  const count = (readDuration(text) ?? Number.NaN) / plainUnits[unit]
  return Number.isInteger(count) ? count : undefined
}
