// The frame around each view: the navigation, which folds away on narrow screens, the title, and who is signed in.
/** @import { Session } from '../types.ts' */
import { icon } from './icons.js'
import { html, nothing, render } from './lit-html.js'
import { badge, stored } from './parts.js'
import { href } from './router.js'
import { groups } from './views.js'
import { nameOf } from './you.js'

let isOpen = false
/** @type {(() => void) | undefined} */
let update

/** @typedef {{ session: Session, name: string, title: string, content: HTMLElement, signOut: () => void }} Frame */

/** @param {HTMLElement} root @param {Frame} frame */
export function renderFrame(root, frame) {
  const isNew = frame.content.parentElement === null
  update = () => render(template(frame), root)
  if (isNew) isOpen = false
  update()
  if (isNew) moveFocus()
}

/** To the title of a new view, so that a screen reader begins there; not on the first one. */
function moveFocus() {
  if (document.activeElement !== document.body && document.activeElement !== null)
    document.getElementById('title')?.focus({ preventScroll: true })
  scrollTo(0, 0)
}

function toggle() {
  isOpen = !isOpen
  update?.()
}

/** @param {Frame} frame */
function template({ session, name, title, content, signOut }) {
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
          <p class="muted"><a href="#/system">${stored(nameOf(session))}</a> ${badge('info', session.role ?? '')}</p>
          <button type="button" @click=${signOut}>Sign out</button>
        </div>
      </div></div>
      <main>
        <h1 id="title" tabindex="-1">${stored(title)}</h1>
        ${content}
      </main>
    </div>`
}

function close() {
  if (isOpen) toggle()
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault()
  document.getElementById('title')?.focus()
}
