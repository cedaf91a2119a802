// The frame around each view: the navigation, which folds away on narrow screens, the title, and who is signed in.
/** @import { Session } from '../types.ts' */
import { icon } from './icons.js'
import { html, nothing, render } from './lit-html.js'
import { badge, stored } from './parts.js'
import { href, keptView, readPlace } from './router.js'
import { groups } from './views.js'
import { nameOf } from './you.js'
import { changeZone, hasOwnZone, isInUtc, zoneText } from './zone.js'

let [isOpen, isFirst] = [false, true]
/** @type {(() => void) | undefined} */
let update

/** @typedef {{ session: Session, name: string, title: string, whole: string, content: HTMLElement, signOut: () => void, renderView: () => void }} Frame */

/** @param {HTMLElement} root @param {Frame} frame */
export function renderFrame(root, frame) {
  const isNew = frame.content.parentElement === null
  update = () => render(template(frame), root)
  if (isNew) isOpen = false
  update()
  if (isNew) moveFocus()
}

/** To the title of a new view, so that a screen reader begins there; not on the first one. After Back, to where somebody was. */
function moveFocus() {
  // The link that was followed is gone, and the focus with it.
  if (!isFirst) document.getElementById('title')?.focus({ preventScroll: true })
  isFirst = false
  scrollTo(0, 0)
  const kept = keptView()
  if (kept !== undefined) returnTo(kept, performance.now() + returnMilliseconds)
}

/** A list arrives after its view. */
const returnMilliseconds = 3_000

/** @param {NonNullable<ReturnType<typeof keptView>>} kept @param {number} until */
function returnTo(kept, until) {
  const { top, listTop, focus, rows } = kept
  const main = document.querySelector('main')
  const hasRows = Number(main?.querySelector('[data-rows]')?.getAttribute('data-rows') ?? 0) >= rows
  const links = /** @type {HTMLElement[]} */ ([...(main?.querySelectorAll('a[href]') ?? [])])
  if (!hasRows || document.documentElement.scrollHeight < top + innerHeight) {
    if (performance.now() < until && keptView() === kept) requestAnimationFrame(() => returnTo(kept, until))
    return
  }
  // Somebody who went on meanwhile stays there.
  if (scrollY === 0) scrollTo(0, top)
  const list = main?.querySelector('.list')
  const link = links.find((each) => each.getAttribute('href') === focus)
  if (document.activeElement?.id === 'title') link?.focus({ preventScroll: true })
  if (list != null) list.scrollTop = listTop
}

function toggle() {
  isOpen = !isOpen
  update?.()
}

/** @param {Frame} frame */
function template({ session, name, title, whole, content, signOut, renderView }) {
  return html`<a class="skip" href="#title" @click=${skip}>Skip to the content</a>
    <div class="frame">
      <div class="side"><header>
        <a class="brand" href="#/">${icon('keys')}<span>Latchkey</span></a>
        <button type="button" class="quiet icon fold" aria-expanded=${isOpen ? 'true' : 'false'} aria-controls="navigation" aria-label="Menu" @click=${toggle}>
          ${icon(isOpen ? 'close' : 'menu')}
        </button>
      </header>
      <div id="navigation" class=${isOpen ? 'open' : ''}>
        <nav aria-label="Sections">
          ${groups.map(
            (group) =>
              html`${group.title === '' ? nothing : html`<h2>${group.title}</h2>`}
                <ul>
                  ${group.entries.map(
                    (entry) =>
                      html`<li><a href=${href([entry.name])} aria-current=${entry.name === name ? 'page' : nothing} @click=${close}>${icon(entry.name)}${entry.title}</a></li>`,
                  )}
                </ul>`,
          )}
        </nav>
        <div class="who" role="region" aria-label="Signed in">
          <p>${stored(session.organization.name)}</p>
          <div class="person"><p class="muted"><a href="#/system">${stored(nameOf(session))}</a> ${badge('info', session.role ?? '')}</p>
            <button type="button" @click=${signOut}>Sign out</button></div>
          <p class="muted small">Times in ${zoneText()}. ${hasOwnZone() ? zoneSwitch(renderView) : nothing}</p>
        </div>
      </div></div>
      <main>
        ${crumbs(whole)}
        <h1 id="title" tabindex="-1">${stored(title)}</h1>
        ${content}
      </main>
    </div>`
}

/** @param {() => void} renderView */
function zoneSwitch(renderView) {
  const change = () => {
    changeZone()
    update?.()
    renderView()
  }
  return html`<button type="button" class="quiet" @click=${change}>${isInUtc() ? 'Show local times' : 'Show UTC'}</button>`
}

/** The way up, where this is a part of something. @param {string} whole its name, once it is known */
function crumbs(whole) {
  const [name = '', id = '', ...more] = readPlace().path
  const entry = groups.flatMap(({ entries }) => entries).find((each) => each.name === name)
  if (entry === undefined || id === '') return nothing
  return html`<nav class="crumbs" aria-label="Breadcrumb">
    <a href=${href([name])}>${entry.title}</a>${more.length === 0 || whole === '' ? nothing : html`<a href=${href([name, id])}>${stored(whole, 80)}</a>`}
  </nav>`
}

function close() {
  if (isOpen) toggle()
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault()
  document.getElementById('title')?.focus()
}
