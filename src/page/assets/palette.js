// The command palette and the keys. Ctrl K (or Command K) opens it: views, actions, and objects by name; a request id opens its exchange. An action
// on one object asks which one, and then opens it there.
// Outside of fields, `/` goes to the search of a list, `g` and a letter to a view, `n` to a new object of this list, `?` to this help.
/** @import { Session } from '../types.ts' */
/** @import { Choice, Deed } from './palette-choices.js' */
import { openDialog } from './dialog.js'
import { html, nothing } from './lit-html.js'
import { findDone, findObjects, findTargets, fitting, kinds, ownChoices, shownMax } from './palette-choices.js'
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
  v: 'bundles',
  x: 'documents',
  w: 'organization',
}

const searchDelayMilliseconds = 80
const requestId = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

/** What fits what was typed, and what an action can be done to. @param {Session} session @param {() => void} signOut @param {() => void} update */
function createFinder(session, signOut, update) {
  const own = [...ownChoices(session), { title: 'Sign out', kind: 'action', words: 'log', open: signOut }]
  let text = ''
  /** @type {Deed | undefined} that waits for its object */
  let deed
  /** @type {Choice[]} */
  let objects = []
  let [asked, answered] = [0, 0]
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  const find = (/** @type {string} */ name) =>
    deed !== undefined ? findTargets(session, deed, name) : name === '' ? Promise.resolve([]) : findAll(name)
  const findAll = async (/** @type {string} */ name) =>
    (await Promise.all([findDone(session, name), findObjects(name)])).flat()
  const search = async () => {
    const turn = ++asked
    const found = await find(text.trim()).catch(() => [])
    if (turn !== asked) return
    ;[objects, answered] = [found, turn]
    update()
  }
  return {
    text: () => text,
    label: () => (deed === undefined ? 'View, action, name or request id' : `${deed.title}: which one?`),
    isSearching: () => answered !== asked,
    isForDeed: () => deed !== undefined,
    /** @returns {readonly Choice[]} */
    choices() {
      if (deed !== undefined) return objects
      const id = text.trim()
      // An exchange or an inference request: the view of one leads to that of the other.
      const exchange = { title: `Request ${id}`, kind: 'request', open: () => go(['exchanges', id]) }
      return requestId.test(id) ? [exchange] : [...fitting(id, own), ...objects].slice(0, shownMax)
    },
    /** @param {string} typed */
    type(typed) {
      text = typed
      clearTimeout(timer)
      timer = setTimeout(search, searchDelayMilliseconds)
    },
    /** @param {Deed | undefined} next */
    askFor(next) {
      ;[deed, text, objects] = [next, '', []]
      void search()
    },
    end: () => clearTimeout(timer),
  }
}

/** @param {Session} session @param {() => void} signOut */
function openPalette(session, signOut) {
  let at = 0
  const finder = createFinder(session, signOut, () => dialog.update())
  const askFor = (/** @type {Deed | undefined} */ deed) => {
    at = 0
    finder.askFor(deed)
    dialog.update()
  }
  const choose = (/** @type {() => void} */ close, /** @type {Choice | undefined} */ choice) => {
    if (choice?.deed !== undefined) return askFor(choice.deed)
    if (choice === undefined) return
    close()
    choice.open?.()
  }
  const onKey = (/** @type {() => void} */ close) => (/** @type {KeyboardEvent} */ event) => {
    const shown = finder.choices()
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === 'Backspace' && finder.text() === '' && finder.isForDeed()) return askFor(undefined)
    if (step !== undefined) at = (at + step + shown.length) % Math.max(shown.length, 1)
    else if (event.key !== 'Enter') return
    event.preventDefault()
    if (event.key === 'Enter') return choose(close, shown[at])
    dialog.update()
  }
  const onInput = (/** @type {InputEvent} */ event) => {
    finder.type(/** @type {HTMLInputElement} */ (event.target).value)
    at = 0
    dialog.update()
  }
  const dialog = openDialog('Go to', (close) => {
    const [shown, label] = [finder.choices(), finder.label()]
    return html`<input type="search" role="combobox" aria-label=${label} placeholder=${label} .value=${finder.text()}
        aria-expanded="true" aria-controls="choices" aria-activedescendant=${shown[at] ? `choice-${at}` : nothing} autofocus autocomplete="off"
        @input=${onInput} @keydown=${onKey(() => close())} />
      <ul id="choices" class="choices" role="listbox" aria-label="Choices">
        ${shown.map(
          (each, index) =>
            html`<li id="choice-${index}" role="option" aria-selected=${index === at ? 'true' : 'false'} @click=${() => choose(() => close(), each)}>
              <span>${stored(each.title, 100)}${each.deed === undefined ? nothing : '…'}</span><span class="muted">${each.kind}</span></li>`,
        )}
      </ul>
      ${shown.length === 0 && !finder.isSearching() ? html`<p class="muted">Nothing has this name.</p>` : nothing}`
  })
  void dialog.closed.then(finder.end)
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
    ['↑ ↓ ← →', 'in a list, to other rows, and to what else is in a row'],
    ['Ctrl Enter', 'save a form'],
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

/** Listens until the page is left. @param {() => Session | undefined} session who is signed in @param {() => void} signOut */
export function listenForKeys(session, signOut) {
  let isAfterG = false
  addEventListener('keydown', (event) => {
    const now = session()
    if (now === undefined || document.querySelector('dialog[open]') !== null) return
    if (event.key === 'k' && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
      event.preventDefault()
      return openPalette(now, signOut)
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
