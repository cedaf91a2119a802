// Hash routes that can be shared: `#/policies/ID?tab=tests`. `href(['policies', id], { tab: 'tests' })` writes one,
// `readPlace()` reads the current one, `go(...)` opens one.

/** @typedef {{ path: string[], query: Record<string, string> }} Place */

/** @param {readonly string[]} path @param {Record<string, string | undefined>} [query] */
export function href(path, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
  const text = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString()
  return `#/${path.map(encodeURIComponent).join('/')}${text === '' ? '' : `?${text}`}`
}

/** @returns {Place} */
export function readPlace() {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split(/\?(.*)/s)
  return { path: path.split('/').filter(Boolean).map(decode), query: Object.fromEntries(new URLSearchParams(query)) }
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** @param {readonly string[]} path @param {Record<string, string | undefined>} [query] */
export function go(path, query) {
  location.hash = href(path, query)
}

/** Changes the address without a history entry. @param {readonly string[]} path @param {Record<string, string>} query */
export function replacePlace(path, query) {
  history.replaceState(history.state, '', href(path, query))
}

let index = 0

/** Numbers the place that is shown, so that `returnToPlace` knows the way back to it. */
export function markPlace() {
  const known = history.state?.index
  index = typeof known === 'number' ? known : index + 1
  if (known !== index) history.replaceState({ index }, '')
}

/** From where a link, Back or Forward led, to the place that was marked last. */
export function returnToPlace() {
  const there = history.state?.index
  const steps = typeof there === 'number' ? index - there : -1
  // No step would load the page again.
  if (steps !== 0) history.go(steps)
}
