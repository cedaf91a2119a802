// Dialogs. `await confirm({ title, body, action: 'Delete policy', isDanger: true })` returns whether it was confirmed; the
// body says what the action will stop. `openDialog(title, (close) => template)` shows anything; call `update()` of what it
// returns to render again. Escape closes, and the focus returns to where it was. `closeDialogs()` closes all.
/** @import { Content } from '../types.ts' */
import { icon } from './icons.js'
import { html, nothing, render } from './lit-html.js'
import { stored } from './parts.js'

/** Every open dialog: how to close it, and whether it stays until its own button closes it. @type {Set<{ close: () => void, stays: boolean }>} */
const opened = new Set()

/** @param {{ isLeaving?: boolean }} [options] `isLeaving`: those that stay are closed too */
export function closeDialogs({ isLeaving = false } = {}) {
  for (const { close, stays } of opened) if (isLeaving || !stays) close()
}

/** Whether a dialog shows what nothing else shows again. */
export const isHeld = () => [...opened].some(({ stays }) => stays)

// Leaving the place closes what belongs to it. A dialog can show a secret, which a page that is kept in memory must not.
addEventListener('hashchange', () => closeDialogs())
addEventListener('pagehide', () => closeDialogs({ isLeaving: true }))

/**
 * @param {string} title @param {(close: (value?: string) => void) => Content} body
 * @param {{ stays?: boolean }} [options] `stays`: Escape and links keep it; only its button and the session's end close it
 * @returns {{ update: () => void, closed: Promise<string> }} what `close` was called with; empty after Escape
 */
export function openDialog(title, body, { stays = false } = {}) {
  const element = document.createElement('dialog')
  element.setAttribute('aria-labelledby', 'dialog-title')
  let isDone = !stays
  const close = (value = '') => {
    isDone = true
    element.close(value)
    // The event comes later, and what was shown may be a secret.
    render(nothing, element)
  }
  const cross = html`<button type="button" class="quiet icon" aria-label="Close" @click=${() => close()}>${icon('close')}</button>`
  const update = () =>
    render(
      html`<div class="heading">
          <h2 id="dialog-title">${title}</h2>
          ${stays ? nothing : cross}
        </div>
        ${body(close)}`,
      element,
    )
  update()
  document.body.append(element)
  element.showModal()
  // Without a wish, the browser chooses the cross.
  if (element.querySelector('[autofocus]') === null) focusFirstField(element)
  const entry = { close, stays }
  opened.add(entry)
  element.addEventListener('cancel', (event) => {
    if (!isDone) event.preventDefault()
  })
  const closed = new Promise((resolve) => {
    element.addEventListener('close', () => {
      // A browser lets nobody prevent a second Escape.
      if (!isDone) return element.showModal()
      opened.delete(entry)
      element.remove()
      resolve(element.returnValue)
    })
  })
  return { update, closed: /** @type {Promise<string>} */ (closed) }
}

/** @param {HTMLElement} element */
function focusFirstField(element) {
  const field = element.querySelector('.body :is(input, select, textarea)')
  if (field instanceof HTMLElement) field.focus()
}

/**
 * @param {{ title: string, body: Content, action: string, isDanger?: boolean }} options
 * @returns {Promise<boolean>}
 */
export async function confirm({ title, body, action, isDanger = false }) {
  const { closed } = openDialog(
    title,
    (close) =>
      html`<div class="body">${body}</div>
        <div class="buttons">
          <button type="button" class=${isDanger ? 'danger' : 'primary'} @click=${() => close('yes')}>${action}</button>
          <button type="button" autofocus @click=${() => close()}>Cancel</button>
        </div>`,
  )
  return (await closed) === 'yes'
}

/** A list of names in a dialog, cut where it gets long. @param {readonly string[]} names */
export function nameList(names, shown = 10) {
  const more = names.length - shown
  return html`<ul>
    ${names.slice(0, shown).map((name) => html`<li>${stored(name.slice(0, 200))}</li>`)}
    ${more > 0 ? html`<li>and ${more} more</li>` : nothing}
  </ul>`
}

/** What happens to text that is not saved: empty to stay, `keep` or `discard` to leave. @returns {Promise<string>} */
export function askToLeave() {
  return openDialog(
    'Leave without saving?',
    (close) =>
      html`<div class="body"><p>What you typed is not saved. A draft stays in this tab until you sign out or close the tab.</p></div>
        <div class="buttons">
          <button type="button" class="primary" autofocus @click=${() => close()}>Stay</button>
          <button type="button" @click=${() => close('keep')}>Leave and keep the draft</button>
          <button type="button" class="danger" @click=${() => close('discard')}>Discard it</button>
        </div>`,
  ).closed
}
