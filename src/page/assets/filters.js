// The filters above a list: a menu for few values, a field that completes names, and a time. Their values are in the query of the address, so
// that a filtered list can be shared. `createFilters(page, filters, restart)` shows them; `times(query)` is what a time means to the API.
/** @import { Content, Page } from '../types.ts' */
import { get } from './client.js'
import { html, nothing } from './lit-html.js'
import { fieldZoneText } from './zone.js'

/**
 * @typedef {object} Filter
 * @property {string} name in the query of the address
 * @property {string} label
 * @property {readonly (readonly [value: string, label: string])[]} [options] makes it a menu; the empty value is first
 * @property {(text: string) => Promise<readonly string[]>} [complete] finds values that contain the text
 */

const completeDelayMilliseconds = 120
const completedMax = 12

/** The time of what happened. @type {Filter} */
export const timeFilter = {
  name: 'time',
  label: 'Time',
  options: [
    ['', 'Any'],
    ['1h', 'Last hour'],
    ['24h', 'Last 24 hours'],
    ['7d', 'Last 7 days'],
    ['30d', 'Last 30 days'],
    ['range', 'From … to …'],
  ],
}
/** @type {Record<string, number>} */
const hours = { '1h': 1, '24h': 24, '7d': 168, '30d': 720 }
const roundMilliseconds = 60_000

/** As the API takes it. @param {Readonly<Record<string, string>>} query @returns {{ since?: string, until?: string }} */
export function times({ time = '', from, to }) {
  const [since, until] = [from, to].map((text) =>
    text && !Number.isNaN(Date.parse(text)) ? new Date(text) : undefined,
  )
  if (time === 'range')
    return { ...(since && { since: since.toISOString() }), ...(until && { until: until.toISOString() }) }
  const span = hours[time]
  if (span === undefined) return {}
  // The same for a while, so that asking again is a 304.
  const now = Math.floor(Date.now() / roundMilliseconds) * roundMilliseconds
  return { since: new Date(now - span * 3_600_000).toISOString() }
}

/** Only what has never worked, or not for so long. @type {Filter} */
export const unusedFilter = {
  name: 'unused',
  label: 'Unused',
  options: [
    ['', 'Any'],
    ['never', 'Never used, older than a day'],
    ['never-7', 'Never used, older than 7 days'],
    ['7', 'For 7 days'],
    ['30', 'For 30 days'],
    ['90', 'For 90 days'],
  ],
}

/** As the API takes it, by a whole day, so that asking again is a 304. @param {Readonly<Record<string, string>>} query @returns {{ never_used?: true, unused_since?: string }} */
export function unused({ unused: chosen = '' }) {
  if (chosen === 'never') return { never_used: true }
  const [, never, days] = /^(never-)?(\d{1,4})$/.exec(chosen) ?? []
  if (days === undefined) return {}
  const since = `${new Date(Date.now() - Number(days) * 86_400_000).toISOString().slice(0, 10)}T00:00:00Z`
  return { ...(never && { never_used: /** @type {const} */ (true) }), unused_since: since }
}

/** Completes the names of a list of the API. @param {string} path @param {string} [field] @returns {(text: string) => Promise<string[]>} */
export function namesOf(path, field = 'name') {
  return async (text) => {
    const { data } = await get(path, { contains: text, limit: completedMax })
    return /** @type {Record<string, string>[]} */ (data).map((row) => row[field] ?? '')
  }
}

/** @param {Page} page @param {readonly Filter[]} filters @param {() => unknown} restart */
export function createFilters(page, filters, restart) {
  /** @type {Map<string, readonly string[]>} */
  const completed = new Map()
  /** @type {Map<string, ReturnType<typeof setTimeout>>} */
  const timers = new Map()
  page.onClose(() => timers.forEach(clearTimeout))
  const set = (/** @type {Record<string, string>} */ changes) => {
    page.setQuery(changes)
    void restart()
  }
  const names = [...filters.map(({ name }) => name), ...(filters.includes(timeFilter) ? ['from', 'to'] : [])]
  const isSet = () => names.some((name) => page.query[name] !== undefined)
  // On a narrow screen they would stand before the first row: there they are behind one button.
  let isOpen = false
  const toggle = () => {
    isOpen = !isOpen
    page.update()
  }
  const fold = () => {
    const active = filters.filter(({ name }) => page.query[name] !== undefined).length
    const text = active === 0 ? 'Filters' : `Filters (${active})`
    return html`<button type="button" class="fold-filters" aria-expanded=${isOpen} @click=${toggle}>${text}</button>`
  }
  const clear = () => set(Object.fromEntries([...names, 'search'].map((name) => [name, ''])))
  const find = async (/** @type {Filter} */ { name, complete }, /** @type {string} */ text) => {
    // A name that cannot be completed can still be typed.
    completed.set(name, (await complete?.(text).catch(() => [])) ?? [])
    page.update()
  }
  const onInput = (/** @type {Filter} */ filter) => (/** @type {Event} */ event) => {
    const text = /** @type {HTMLInputElement} */ (event.target).value
    clearTimeout(timers.get(filter.name))
    if (completed.get(filter.name)?.includes(text)) return set({ [filter.name]: text })
    timers.set(filter.name, setTimeout(find, completeDelayMilliseconds, filter, text))
  }
  return {
    isSet,
    clear,
    /** @returns {Content} */
    show() {
      if (filters.length === 0) return nothing
      const shown = filters.map((filter) => {
        const value = page.query[filter.name] ?? ''
        const choose = (/** @type {Event} */ event) =>
          set({ [filter.name]: /** @type {HTMLInputElement} */ (event.target).value.trim() })
        const control =
          filter.options === undefined
            ? completing(filter, value, completed.get(filter.name) ?? [], {
                choose,
                onInput: onInput(filter),
                onFocus: () => void (completed.has(filter.name) || find(filter, '')),
              })
            : menu(filter.name, filter.options, value, choose)
        return html`<div class="filter ${value === '' ? '' : 'set'}"><label for="filter-${filter.name}">${filter.label}</label>${control}</div>
          ${filter === timeFilter && value === 'range' ? range(page, set) : nothing}`
      })
      const cleared = html`<button type="button" class="quiet" @click=${clear}>Clear filters</button>`
      return html`${fold()}<div class="filter-set ${isOpen ? 'open' : ''}">${shown}${isSet() ? cleared : nothing}</div>`
    },
  }
}

/** @param {string} name @param {readonly (readonly [string, string])[]} options @param {string} value @param {(event: Event) => void} choose */
function menu(name, options, value, choose) {
  return html`<select id="filter-${name}" @change=${choose}>
    ${options.map(([key, text]) => html`<option value=${key} ?selected=${key === value} .selected=${key === value}>${text}</option>`)}
  </select>`
}

/**
 * @param {Filter} filter @param {string} value @param {readonly string[]} found
 * @param {{ choose: (event: Event) => void, onInput: (event: Event) => void, onFocus: () => void }} on
 */
function completing({ name, complete }, value, found, { choose, onInput, onFocus }) {
  return html`<input type="text" id="filter-${name}" list=${complete === undefined ? nothing : `values-${name}`} .value=${value} placeholder="Any" autocomplete="off" spellcheck="false"
      @change=${choose} @input=${onInput} @focus=${onFocus} />
    ${complete === undefined ? nothing : html`<datalist id="values-${name}">${found.map((each) => html`<option value=${each}></option>`)}</datalist>`}`
}

/** @param {Page} page @param {(changes: Record<string, string>) => void} set */
function range(page, set) {
  return ['from', 'to'].map((name) => {
    const choose = (/** @type {Event} */ event) => set({ [name]: /** @type {HTMLInputElement} */ (event.target).value })
    return html`<div class="filter"><label for="filter-${name}">${name === 'from' ? 'From' : 'To'} <span class="muted">${fieldZoneText()}</span></label><input type="datetime-local" id="filter-${name}" .value=${localOf(page.query[name])} @change=${choose} /></div>`
  })
}

/** As the field has it: the local time without a zone. @param {string | undefined} text */
function localOf(text) {
  const at = Date.parse(text ?? '')
  if (Number.isNaN(at)) return ''
  return new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}
