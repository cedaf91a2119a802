// The zone in which the page shows times: that of the browser, or UTC, which somebody chooses in the navigation and the browser keeps. Fields
// for times stay in that of the browser, so that the choice changes nothing that somebody typed.

const key = 'latchkey zone'
const own = new Intl.DateTimeFormat().resolvedOptions().timeZone
let isUtc = localStorage.getItem(key) === 'UTC'

/** Whether the zone of the browser is a different one from UTC. */
export const hasOwnZone = () => !['UTC', 'Etc/UTC', 'GMT', 'Etc/GMT'].includes(own)
export const isInUtc = () => isUtc || !hasOwnZone()

export function changeZone() {
  isUtc = !isUtc
  localStorage.setItem(key, isUtc ? 'UTC' : 'own')
}

/** @type {Map<string, Intl.DateTimeFormat>} making one takes longer than rendering a row */
const formats = new Map()

/** @param {string} zone @param {Intl.DateTimeFormatOptions} options */
function formatOf(zone, options) {
  const name = JSON.stringify([zone, options])
  const format = formats.get(name) ?? new Intl.DateTimeFormat(undefined, { ...options, timeZone: zone })
  formats.set(name, format)
  return format
}

const shown = () => (isInUtc() ? 'UTC' : own)
/** @type {Intl.DateTimeFormatOptions} */
const whole = { dateStyle: 'medium', timeStyle: 'medium' }

/** A zone with its distance from UTC, such as `Europe/Berlin, GMT+1`. */
function nameOf(zone = own) {
  if (!hasOwnZone() || zone === 'UTC') return 'UTC'
  const parts = formatOf(zone, { timeZoneName: 'shortOffset' }).formatToParts(new Date())
  return `${zone.replaceAll('_', ' ')}, ${parts.find(({ type }) => type === 'timeZoneName')?.value}`
}

/** The zone of the times that are shown. */
export const zoneText = () => nameOf(shown())
/** The zone of fields. */
export const fieldZoneText = () => nameOf()

/** Date and time in the zone that is shown. @param {Date} date */
export const timeText = (date) => formatOf(shown(), whole).format(date)

/** Hours and minutes in the zone that is shown. @param {string} iso */
export function hourText(iso) {
  return formatOf(shown(), { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(new Date(iso))
}

/** The same time in UTC and, where it differs, in the zone of the browser. @param {Date} date */
export function bothTimes(date) {
  const utc = `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`
  return hasOwnZone() ? `${utc} · ${formatOf(own, whole).format(date)} ${nameOf()}` : utc
}
