// Texts of the server in the words of the page: messages about a field with its label, advice without its commands, what
// changed, and why requests were refused.

/** @param {string} label @param {string} name of the field @param {string} message */
export function inFormWords(label, name, message) {
  const [found = '', part = ''] = new RegExp(`^${name}(?:\\.(\\S+)|(?=[\\s[(]|$))`).exec(message) ?? []
  if (found === '') return message
  if (part === '' && / \(was (?:missing|null)\)$/.test(message)) return `${label} is empty`
  const rest = message
    .slice(found.length)
    .replace(/^\[(\d+)\]/, (_, index) => `, entry ${Number(index) + 1},`)
    // A whole value of several parts is what stands in the field.
    .replace(/ \(was [[{].*\)$/, '')
    .replace(new RegExp(` or ${name} must be null$`), '')
    .replace(/ or null(?= \(was |$)/, ' or empty')
  return `${label}${part === '' ? '' : ` "${part}"`}${rest}`
}

/** Advice that commands and the page share, without the commands, which stand in parentheses. @param {string} text */
export const withoutCommands = (text) => text.replaceAll(/ \(`(?:latchkey |--)[^)]*\)/g, '')

/**
 * What somebody at the page does about a finding: in words, and the topics of the manual that it names. The words are empty where the advice
 * is a command alone.
 * @param {string} action
 */
export function adviceOf(action) {
  const topics = [...action.matchAll(/latchkey help ([\w-]+)/g)].map(([, topic = '']) => topic)
  const words =
    action.split('latchkey ')[0]?.replace(/(?:[,;:]? (?:or see|then run|with|see|or)|^Run)?[:,;]? *$/, '') ?? ''
  return { words, topics }
}

const [fieldsShown, valueCharacters] = [3, 40]

/** Rows have their times in milliseconds, and 0 for no time. @param {string} name of the field @param {unknown} value */
export function readable(name, value) {
  if (typeof value !== 'number' || !/_(?:at|until)$/.test(name)) return value
  return value === 0 ? null : `${new Date(value).toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** @param {unknown} value */
function valueText(value) {
  if (value === undefined || value === null || value === '') return 'none'
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return text.length > valueCharacters ? `${text.slice(0, valueCharacters)}…` : text
}

/** What a change did, from what to what. @param {Record<string, unknown> | null} before @param {Record<string, unknown> | null} after */
export function changeText(before, after) {
  if (before === null) return 'Created'
  if (after === null) return 'Deleted'
  const names = Object.keys({ ...before, ...after }).filter(
    (name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]),
  )
  const shown = names.slice(0, fieldsShown).map((name) => {
    const what = name.replaceAll('_', ' ')
    return `${what}: ${valueText(readable(name, before[name]))} → ${valueText(readable(name, after[name]))}`
  })
  if (names.length > fieldsShown) shown.push(`${names.length - fieldsShown} more`)
  return shown.join('; ') || 'Nothing differs'
}

/** Why requests were refused before any server got them. @type {Readonly<Record<string, string>>} */
export const refusalWords = {
  key_limit_spent: 'Budget of the key spent',
  budget_spent: 'Budget spent',
  budget_held: 'Budget held by open requests',
  budget_values_exceeded: 'Budget has too many values',
  key_rate: 'Rate of the key reached',
  queue_full: 'Too many waiting requests',
  model_not_allowed: 'Model not allowed',
  preset_not_allowed: 'Preset not allowed',
  model_unpriced: 'Model without a price',
  attribution_header: 'Attribution missing or invalid',
}

/** A reason without its own words reads as its name. @param {string} reason */
export function refusalText(reason) {
  const text = refusalWords[reason] ?? reason.replaceAll('_', ' ')
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`
}
