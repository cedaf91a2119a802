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

/** What the view of a place is opened for. @type {{ hash: string, act: string }} */
let wanted = { hash: '', act: '' }

/**
 * Opens a place to do something there, which its view knows by name (`takeWanted`). It is not in the address: a link that somebody sends must
 * do nothing. @param {readonly string[]} path @param {string} act
 */
export function goToDo(path, act) {
  wanted = { hash: href(path), act }
  if (location.hash === wanted.hash) dispatchEvent(new HashChangeEvent('hashchange'))
  else go(path)
}

/** What this place was opened for, once. */
export function takeWanted() {
  const { hash, act } = wanted
  wanted = { hash: '', act: '' }
  return hash === location.hash ? act : ''
}

/** Opens one in the place of this one, so that Back does not lead here again. @param {readonly string[]} path */
export function goInstead(path) {
  location.replace(href(path))
}

/** Changes the address without a history entry. @param {readonly string[]} path @param {Record<string, string>} query */
export function replacePlace(path, query) {
  history.replaceState(history.state, '', href(path, query))
}

let index = 0
/** What was in view at the places of this tab, by their number. @type {Map<number, Kept>} */
const kept = new Map()
const keptMax = 50

/** @typedef {{ top: number, listTop: number, focus: string | undefined, rows: number }} Kept `focus` is the address of the link that had it */

/** Keeps what is in view, before another place is shown. */
export function keepView() {
  const focused = /** @type {HTMLElement | null} */ (document.activeElement?.closest('main a[href]'))
  kept.delete(index)
  kept.set(index, {
    top: scrollY,
    listTop: document.querySelector('main .list')?.scrollTop ?? 0,
    focus: focused?.getAttribute('href') ?? undefined,
    rows: Number(document.querySelector('main [data-rows]')?.getAttribute('data-rows') ?? 0),
  })
  const [oldest = 0] = kept.keys()
  if (kept.size > keptMax) kept.delete(oldest)
}

/** What was in view here before, after Back or Forward. @returns {Kept | undefined} */
export const keptView = () => (typeof history.state?.index === 'number' ? kept.get(history.state.index) : undefined)

/** So many rows a list had here before. */
export const rowsKept = () => keptView()?.rows ?? 0

/** Numbers the place that is shown, so that `returnToPlace` knows the way back to it. */
export function markPlace() {
  const known = history.state?.index
  index = typeof known === 'number' ? known : index + 1
  // Nobody has left a new place before.
  if (known !== index) kept.delete(index)
  if (known !== index) history.replaceState({ index }, '')
}

/** From where a link, Back or Forward led, to the place that was marked last. */
export function returnToPlace() {
  const there = history.state?.index
  const steps = typeof there === 'number' ? index - there : -1
  // No step would load the page again.
  if (steps !== 0) history.go(steps)
}
