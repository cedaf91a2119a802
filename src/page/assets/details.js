// The details of one thing: a head with its state, its id and what can be done, and tabs. `createTabs(page, tabs)` opens each tab when it is
// chosen first; the address has the tab, so that it can be shared, and the arrow keys move between them.
/** @import { Content, Page } from '../types.ts' */
import { html, nothing } from './lit-html.js'
import { copyable } from './parts.js'
import { takeWanted } from './router.js'

/** @typedef {{ name: string, title: string, open: (page: Page) => () => Content }} Tab */

/**
 * @param {{ state: Content, id?: string, idLabel?: string, actions?: readonly Content[] }} head `idLabel` says what is copied
 */
export function detailsHead({ state, id, idLabel = 'id', actions = [] }) {
  return html`<div class="head">
    ${state}${id === undefined ? nothing : html`<span class="muted small">${copyable(id, idLabel)}</span>`}
    <div class="actions push">${actions}</div>
  </div>`
}

/** Does what somebody chose in the palette, once the view has what it needs for it. @param {Page} page @param {Readonly<Record<string, () => unknown>>} acts */
export function doWanted(page, acts) {
  const act = acts[takeWanted()]
  if (act !== undefined) void page.run(async () => void (await act()))
}

/** @param {Page} page @param {readonly [Tab, ...Tab[]]} tabs @returns {() => Content} */
export function createTabs(page, tabs) {
  /** @type {Map<string, () => Content>} */
  const opened = new Map()
  const current = () => tabs.find(({ name }) => name === page.query.tab) ?? tabs[0]
  const choose = (/** @type {Tab} */ { name }) => {
    // Filters belong to the tab that is left.
    const left = Object.fromEntries(Object.keys(page.query).map((each) => [each, '']))
    page.setQuery({ ...left, tab: name === tabs[0].name ? '' : name })
    void page.refresh()
  }
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const at = tabs.indexOf(current())
    const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[event.key]
    const tab = next === undefined ? undefined : tabs.at(next % tabs.length)
    if (tab === undefined) return
    event.preventDefault()
    choose(tab)
    document.getElementById(`tab-${tab.name}`)?.focus()
  }
  return () => {
    const tab = current()
    let show = opened.get(tab.name)
    if (show === undefined) {
      show = tab.open(pageOfTab(page, () => current() === tab))
      opened.set(tab.name, show)
    }
    const titles = tabs.map(
      (each) =>
        html`<button type="button" role="tab" id="tab-${each.name}" aria-controls="tab-panel" aria-selected=${each === tab ? 'true' : 'false'} tabindex=${each === tab ? '0' : '-1'} @click=${() => choose(each)}>${each.title}</button>`,
    )
    return html`<div class="tabs" role="tablist" aria-label="Details" @keydown=${onKey}>${titles}</div>
      <div class="view" id="tab-panel" role="tabpanel" aria-labelledby="tab-${tab.name}">${show()}</div>`
  }
}

/** A tab that is not shown reads nothing. @param {Page} page @param {() => boolean} isShown @returns {Page} */
function pageOfTab(page, isShown) {
  /** @type {Page['poll']} */
  const poll = (load, seconds) =>
    page.poll(async () => {
      if (isShown()) await load()
    }, seconds)
  return Object.create(page, { poll: { value: poll } })
}
