// Times as people and programs write them: ISO 8601 dates, alone or with a time of day.

const form = /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(Z|([+-])(\d{2}):(\d{2}))?)?$/

/**
 * The time that a text such as `2027-01-01`, `2026-11-21T09:30:00Z` or `2026-11-21T10:30+01:00` tells, in milliseconds since 1970. What names
 * no zone is UTC, wherever this runs. Undefined for other forms, and for days and hours that no clock tells, which Date would move.
 */
export function readTime(text: string): number | undefined {
  const found = form.exec(text)
  if (found === null) return undefined
  const [, year, month, day, hour = '0', minute = '0', second = '0', fraction = '', , sign, zoneHour, zoneMinute] =
    found
  const date = Date.UTC(Number(year), Number(month) - 1, Number(day))
  if (new Date(date).toISOString().slice(0, 10) !== `${year}-${month}-${day}`) return undefined
  const [hours, minutes, seconds] = [Number(hour), Number(minute), Number(second)]
  const [aheadHours, aheadMinutes] = [Number(zoneHour ?? 0), Number(zoneMinute ?? 0)]
  if (hours > 23 || minutes > 59 || seconds > 59 || aheadHours > 23 || aheadMinutes > 59) return undefined
  const ahead = (aheadHours * 60 + aheadMinutes) * (sign === '-' ? -1 : 1)
  return date + ((hours * 60 + minutes - ahead) * 60 + seconds) * 1_000 + Number(fraction.padEnd(3, '0').slice(0, 3))
}
