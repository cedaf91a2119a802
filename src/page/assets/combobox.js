// A field that chooses one of many by name, with a list that is searched while somebody types (the combobox pattern of ARIA). Arrow keys move
// in the list, Enter or Tab choose, Escape closes it. What holds the value is an id, and what is shown is its name.
/** @import { Content } from '../types.ts' */
import { shell } from './form.js'
import { html, nothing } from './lit-html.js'
import { stored } from './parts.js'

/** `hint` stands beside the name. @typedef {{ id: string, name: string, hint?: string }} Item */

/**
 * @typedef {object} Asked
 * @property {string} name
 * @property {string} label
 * @property {string} value the id that is chosen; empty for none
 * @property {(id: string) => void} onInput
 * @property {Content} [help]
 * @property {Content} [error]
 */

const searchDelayMilliseconds = 80
const shownMax = 20

/** @typedef {{ find: (text: string) => Promise<Item[]>, read: (id: string) => Promise<Item> }} Source */

/** @param {{ update: () => void }} page @param {Source} source */
function createBox(page, { find, read }) {
  const box = {
    page,
    /** @type {Map<string, Item>} */
    known: new Map(),
    /** What is typed and not chosen yet. @type {string | undefined} */
    typed: undefined,
    isOpen: false,
    at: 0,
    /** @type {Item[]} */
    items: [],
    searching: Promise.resolve(),
    /** @param {readonly Item[]} items */
    learn: (items) => {
      for (const item of items) box.known.set(item.id, item)
    },
    /** @param {string} text */
    search: (text) => {
      clearTimeout(timer)
      box.searching = searchNow(text)
    },
    /** @param {string} text */
    searchSoon: (text) => {
      clearTimeout(timer)
      timer = setTimeout(() => box.search(text), searchDelayMilliseconds)
    },
    /** Until its name arrives, and where it is gone, the id stands for it. @param {string} id */
    nameOf: (id) => {
      const item = box.known.get(id)
      if (item !== undefined || id === '') return item?.name ?? ''
      box.known.set(id, { id, name: id })
      void read(id).then(
        (found) => {
          box.known.set(id, found)
          page.update()
        },
        () => {},
      )
      return id
    },
    close: () => {
      Object.assign(box, { isOpen: false, typed: undefined })
      page.update()
    },
  }
  let turns = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  async function searchNow(/** @type {string} */ text) {
    const turn = ++turns
    const found = await find(text.trim()).catch(() => [])
    if (turn !== turns) return
    box.learn(found)
    Object.assign(box, { items: found.slice(0, shownMax), at: 0 })
    page.update()
  }
  return box
}
/** @typedef {ReturnType<typeof createBox>} Box */

/** @param {Box} box @param {Asked} asked @param {Item | undefined} item */
function choose(box, { value, onInput }, item) {
  box.close()
  if (item !== undefined && item.id !== value) onInput(item.id)
}

/** @param {Box} box */
function open(box) {
  if (box.isOpen) return
  box.isOpen = true
  box.search(box.typed ?? '')
  box.page.update()
}

/** What was typed counts if it names one, also when the list has not arrived yet. @param {Box} box @param {Asked} asked */
async function settle(box, asked) {
  if (box.typed === undefined) return choose(box, asked, box.items[box.at])
  const text = box.typed.trim().toLowerCase()
  box.search(box.typed)
  await box.searching
  const { items } = box
  const exact = items.filter(({ name }) => name.toLowerCase() === text)
  choose(box, asked, exact.length === 1 ? exact[0] : items.length === 1 ? items[0] : undefined)
}

/** @param {Box} box @param {Asked} asked @param {KeyboardEvent} event */
function onKey(box, asked, event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
  const isKey = step !== undefined || (box.isOpen && ['Enter', 'Escape'].includes(event.key))
  if (!isKey) return
  event.preventDefault()
  if (event.key === 'Escape') return box.close()
  if (event.key === 'Enter') return void enter(box, asked)
  if (!box.isOpen) return open(box)
  box.at = (box.at + (step ?? 0) + box.items.length) % Math.max(box.items.length, 1)
  box.page.update()
}

/** The one that is marked, of a list that is there. @param {Box} box @param {Asked} asked */
async function enter(box, asked) {
  const marked = box.items[box.at]
  const isListed = marked?.name.toLowerCase().includes((box.typed ?? '').trim().toLowerCase())
  if (isListed) choose(box, asked, marked)
  else await settle(box, asked)
}

/** @param {Box} box @param {Asked} asked @param {InputEvent} event */
function onType(box, { value, onInput }, event) {
  const text = /** @type {HTMLInputElement} */ (event.target).value
  Object.assign(box, { typed: text, isOpen: true })
  box.searchSoon(text)
  if (text === '' && value !== '') onInput('')
  box.page.update()
}

/** So that what is typed replaces the name. @param {Event} event */
const select = ({ target }) => /** @type {HTMLInputElement} */ (target).select()

/** @param {Box} box @param {Asked} asked */
function template(box, asked) {
  const { name, label, value, help, error } = asked
  const [id, { items, isOpen, at, typed }] = [`f-${name}`, box]
  const leave = () => (typed === undefined || typed === '' ? box.close() : void settle(box, asked))
  const press = (/** @type {Item} */ item) => (/** @type {Event} */ event) => {
    event.preventDefault()
    choose(box, asked, item)
  }
  return shell(
    { name, label, help, error },
    html`<div class="combobox">
      <input id=${id} name=${name} role="combobox" type="text" autocomplete="off" spellcheck="false" aria-autocomplete="list" aria-expanded=${isOpen ? 'true' : 'false'}
        aria-controls=${`${id}-list`} aria-activedescendant=${isOpen && items[at] !== undefined ? `${id}-${at}` : nothing} aria-describedby=${`${help === undefined ? '' : `${id}-help `}${id}-error`}
        aria-invalid=${error === undefined ? nothing : 'true'} placeholder="Search by name" .value=${typed ?? box.nameOf(value)}
        @input=${(/** @type {InputEvent} */ event) => onType(box, asked, event)} @keydown=${(/** @type {KeyboardEvent} */ event) => onKey(box, asked, event)} @focus=${select} @click=${() => open(box)} @blur=${leave} />
      <ul id=${`${id}-list`} class="choices" role="listbox" aria-label="Matches" ?hidden=${!isOpen}>
        ${items.map(
          (item, index) =>
            html`<li id=${`${id}-${index}`} role="option" aria-selected=${index === at ? 'true' : 'false'} @mousedown=${press(item)}><span>${stored(item.name, 100)}</span><span class="muted small">${stored(item.hint ?? '', 60)}</span></li>`,
        )}
        ${isOpen && items.length === 0 ? html`<li class="muted" role="option" aria-disabled="true" aria-selected="false">Nothing has this name</li>` : nothing}
      </ul>
    </div>`,
  )
}

/**
 * `find` returns those whose name contains a text, the best first; `read` the one with an id. `learn` names some that the page has already.
 * @param {{ update: () => void }} page @param {Source} source
 */
export function createCombobox(page, source) {
  const box = createBox(page, source)
  return {
    learn: box.learn,
    chosen: (/** @type {string} */ id) => box.known.get(id),
    field: (/** @type {Asked} */ asked) => template(box, asked),
  }
}
