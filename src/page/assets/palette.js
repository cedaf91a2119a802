// The command palette and the keys. Ctrl K (or Command K) opens it: views, actions, and objects by name; a request id opens its exchange.
// Outside of fields, `/` goes to the search of a list, `g` and a letter to a view, `n` to a new object of this list, `?` to this help.
/** @import { Session } from '../types.ts' */
import { get } from './client.js'
import { openDialog } from './dialog.js'
import { html, nothing } from './lit-html.js'
import { stored } from './parts.js'
import { go, readPlace } from './router.js'
import { groups } from './views.js'

/** The letter after `g`. @type {Record<string, string>} */
const letters = {
  o: 'overview',
  f: 'start',
  p: 'policies',
  i: 'issuers',
  t: 'try',
  e: 'exchanges',
  k: 'keys',
  b: 'budgets',
  d: 'presets',
  r: 'requests',
  u: 'usage',
  s: 'upstreams',
  c: 'changes',
  l: 'audit-log',
  a: 'webhooks',
  y: 'system',
  m: 'manual',
}

/** Lists whose objects have a name, and what may be created there. */
const kinds = [
  { view: 'policies', path: '/workload-identity/policies', act: 'policies.create', create: 'New policy', id: 'id' },
  { view: 'issuers', path: '/workload-identity/issuers', act: 'issuers.add', create: 'Add issuer', id: 'id' },
  { view: 'keys', path: '/keys', act: 'keys.create', create: 'Create key', id: 'hash' },
  { view: 'budgets', path: '/budgets', act: 'budgets.create', create: 'Create budget', id: 'id' },
  { view: 'presets', path: '/presets', act: 'presets.save', create: 'New preset', id: 'slug' },
]

/** What is done to one of a list, and where the list is. */
const deeds = [
  { act: 'keys.rotate', title: 'Rotate a key', view: 'keys' },
  { act: 'keys.disable', title: 'Disable a key', view: 'keys' },
  { act: 'budgets.top_up', title: 'Top up a budget', view: 'budgets' },
  { act: 'policies.pause', title: 'Pause a policy', view: 'policies' },
]

/** @typedef {{ title: string, kind: string, open: () => void }} Choice */

const [foundMax, shownMax, searchDelayMilliseconds] = [5, 12, 80]
const requestId = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

/** What needs no request. @param {Session} session @returns {Choice[]} */
function ownChoices({ may }) {
  const views = groups.flatMap(({ entries }) => entries)
  const created = kinds.filter(({ act }) => may.includes(act))
  return [
    ...views.map(({ name, title }) => ({ title, kind: 'view', open: () => go([name]) })),
    ...created.map(({ view, create }) => ({ title: create, kind: 'action', open: () => go([view, 'new']) })),
    ...deeds
      .filter(({ act }) => may.includes(act))
      .map(({ title, view }) => ({ title, kind: 'action', open: () => go([view]) })),
    ...(may.includes('keys.create')
      ? [{ title: 'Invite a colleague', kind: 'action', open: () => go(['keys', 'invite']) }]
      : []),
  ]
}

/** Objects whose names contain the text. @param {string} text @returns {Promise<Choice[]>} */
async function findObjects(text) {
  const found = kinds.map(async ({ view, path, id }) => {
    const { data } = await get(path, { contains: text, limit: foundMax })
    return /** @type {Record<string, string>[]} */ (data).map((row) => ({
      title: row.name ?? row.slug ?? '',
      kind: view.replace(/ies$/, 'y').replace(/s$/, ''),
      open: () => go([view, row[id] ?? '']),
    }))
  })
  return (await Promise.all(found.map((each) => each.catch(() => [])))).flat()
}

/** @param {string} text @param {Choice} choice */
const fits = (text, { title }) => title.toLowerCase().includes(text.toLowerCase())

/** Those that begin with the text first: “changes” is not Exchanges. @param {string} text @param {readonly Choice[]} choices */
function fitting(text, choices) {
  const begins = (/** @type {Choice} */ { title }) => Number(title.toLowerCase().startsWith(text.toLowerCase()))
  return choices.filter((each) => fits(text, each)).toSorted((one, other) => begins(other) - begins(one))
}

/** @param {Session} session */
function openPalette(session) {
  const own = ownChoices(session)
  let [text, at] = ['', 0]
  /** @type {Choice[]} */
  let objects = []
  let asked = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  const choices = () => {
    const id = text.trim()
    // An exchange or an inference request: the view of one leads to that of the other.
    const exchange = { title: `Request ${id}`, kind: 'request', open: () => go(['exchanges', id]) }
    return requestId.test(id) ? [exchange] : [...fitting(text, own), ...objects].slice(0, shownMax)
  }
  const search = async () => {
    const turn = ++asked
    const found = text.trim() === '' ? [] : await findObjects(text.trim())
    if (turn !== asked) return
    objects = found
    dialog.update()
  }
  /** @type {(close: () => void) => (event: KeyboardEvent) => void} */
  const onKey = (close) => (event) => {
    const shown = choices()
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) at = (at + step + shown.length) % Math.max(shown.length, 1)
    else if (event.key !== 'Enter') return
    event.preventDefault()
    if (event.key === 'Enter') return choose(close, shown[at])
    dialog.update()
  }
  const onInput = (/** @type {InputEvent} */ event) => {
    text = /** @type {HTMLInputElement} */ (event.target).value
    at = 0
    clearTimeout(timer)
    timer = setTimeout(search, searchDelayMilliseconds)
    dialog.update()
  }
  const dialog = openDialog('Go to', (close) => {
    const shown = choices()
    return html`<input type="search" role="combobox" aria-label="View, action, name or request id" placeholder="View, action, name or request id"
        aria-expanded="true" aria-controls="choices" aria-activedescendant=${shown[at] ? `choice-${at}` : nothing} autofocus autocomplete="off"
        @input=${onInput} @keydown=${onKey(() => close())} />
      <ul id="choices" class="choices" role="listbox" aria-label="Choices">
        ${shown.map(
          (each, index) =>
            html`<li id="choice-${index}" role="option" aria-selected=${index === at ? 'true' : 'false'} @click=${() => choose(() => close(), each)}>
              <span>${stored(each.title, 100)}</span><span class="muted">${each.kind}</span></li>`,
        )}
      </ul>
      ${shown.length === 0 ? html`<p class="muted">Nothing has this name.</p>` : nothing}`
  })
  void dialog.closed.then(() => clearTimeout(timer))
}

/** @param {() => void} close @param {Choice | undefined} choice */
function choose(close, choice) {
  if (choice === undefined) return
  close()
  choice.open()
}

function showKeys() {
  const rows = [
    ['Ctrl K', 'views, actions, objects by name, a request id'],
    ['/', 'search this list'],
    ['n', 'create what this list has'],
    ...Object.entries(letters).map(([letter, view]) => [
      `g ${letter}`,
      groups.flatMap(({ entries }) => entries).find(({ name }) => name === view)?.title ?? view,
    ]),
    ['?', 'this help'],
  ]
  openDialog(
    'Keys',
    () =>
      html`<dl class="facts">${rows.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>`,
  )
}

/** Whether somebody types. @param {EventTarget | null} target */
const isTyping = (target) =>
  target instanceof HTMLElement && target.closest('input, textarea, select, [contenteditable], dialog') !== null

/** Listens until the page is left. @param {() => Session | undefined} session who is signed in */
export function listenForKeys(session) {
  let isAfterG = false
  addEventListener('keydown', (event) => {
    const now = session()
    if (now === undefined || document.querySelector('dialog[open]') !== null) return
    if (event.key === 'k' && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
      event.preventDefault()
      return openPalette(now)
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
    const view = isAfterG ? letters[event.key] : undefined
    isAfterG = event.key === 'g'
    const act = view === undefined ? alone(event.key, now) : () => go([view])
    if (act === undefined) return
    event.preventDefault()
    act()
  })
}

/** What a key does that was pressed alone. @param {string} key @param {Session} session */
function alone(key, { may }) {
  const search = /** @type {HTMLElement | null} */ (
    document.querySelector('main [role="search"] input, main input[type="search"]')
  )
  const kind = kinds.find(({ view, act }) => view === readPlace().path[0] && may.includes(act))
  if (key === '/' && search !== null) return () => search.focus()
  if (key === 'n' && kind !== undefined) return () => go([kind.view, 'new'])
  return key === '?' ? showKeys : undefined
}
