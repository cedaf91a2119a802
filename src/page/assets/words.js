// Messages of the API in the words of a form: the label instead of the name, and an empty field instead of null.

/** @param {string} label @param {string} name of the field @param {string} message */
export function inFormWords(label, name, message) {
  const [found = '', part = ''] = new RegExp(`^${name}(?:\\.(\\S+)|(?=[\\s[(]|$))`).exec(message) ?? []
  if (found === '') return message
  const rest = message
    .slice(found.length)
    .replace(/^\[(\d+)\]/, (_, index) => `, entry ${Number(index) + 1},`)
    // A whole value of several parts is what stands in the field.
    .replace(/ \(was [[{].*\)$/, '')
    .replace(new RegExp(` or ${name} must be null$`), '')
    .replace(/ or null(?= \(was |$)/, ' or empty')
  return `${label}${part === '' ? '' : ` "${part}"`}${rest}`
}
