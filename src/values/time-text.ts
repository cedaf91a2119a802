// Times as text: ISO 8601 dates, with or without a time of day.

const date = '([1-9][0-9]{3})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])'
const hours = '([01][0-9]|2[0-3])'
const sixtieths = '([0-5][0-9])'
const zone = `(Z|([+-])${hours}:${sixtieths})`

/** The form of such a time. It does not check that the day exists in its month. */
export const timeText = new RegExp(`^${date}(T${hours}:${sixtieths}(:${sixtieths}([.,]([0-9]{1,9}))?)?${zone}?)?$`)

/**
 * The time of a text such as `2027-01-01`, `2026-11-21T09:30:00Z` or `2026-11-21T10:30+01:00`, in milliseconds since 1970. Without a zone it
 * is UTC on every machine. Undefined for other forms, and for days that do not exist, which Date would change to other days.
 */
export function readTime(text: string): number | undefined {
  const found = timeText.exec(text)
  if (found === null) return undefined
  const [, year, month, day, , hour = '0', minute = '0', , second = '0', , fraction = ''] = found
  const [sign, zoneHour = '0', zoneMinute = '0'] = found.slice(12)
  const start = Date.UTC(Number(year), Number(month) - 1, Number(day))
  if (new Date(start).toISOString().slice(0, 10) !== `${year}-${month}-${day}`) return undefined
  const ahead = (Number(zoneHour) * 60 + Number(zoneMinute)) * (sign === '-' ? -1 : 1)
  const minutes = Number(hour) * 60 + Number(minute) - ahead
  return start + (minutes * 60 + Number(second)) * 1_000 + Number(fraction.padEnd(3, '0').slice(0, 3))
}
