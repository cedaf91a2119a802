// Dialogs. `await confirm({ title, body, action: 'Delete policy', isDanger: true })` returns whether it was confirmed; the
// body says what the action will stop. `openDialog(title, (close) => template)` shows anything; call `update()` of what it
// returns to render again. Escape closes, and the focus returns to where it was. `closeDialogs()` closes all.
/** @import { Content } from '../types.ts' */
import { icon } from './icons.js'
import { html, nothing, render } from './lit-html.js'
import { stored } from './parts.js'

export function closeDialogs() {
  for (const each of document.querySelectorAll('dialog')) each.close()
}

// Leaving the place closes what belongs to it. A dialog can show a secret, which a page that is kept in memory must not.
for (const name of ['hashchange', 'pagehide']) addEventListener(name, closeDialogs)

/**
 * @param {string} title @param {(close: (value?: string) => void) => Content} body
 * @returns {{ update: () => void, closed: Promise<string> }} what `close` was called with; empty after Escape
 */
export function openDialog(title, body) {
  const element = document.createElement('dialog')
  element.setAttribute('aria-labelledby', 'dialog-title')
  const close = (value = '') => element.close(value)
  const update = () =>
    render(
      html`<div class="heading">
          <h2 id="dialog-title">${title}</h2>
          <button type="button" class="quiet icon" aria-label="Close" @click=${() => close()}>${icon('close')}</button>
        </div>
        ${body(close)}`,
      element,
    )
  update()
  document.body.append(element)
  element.showModal()
  const closed = new Promise((resolve) => {
    element.addEventListener('close', () => {
      element.remove()
      resolve(element.returnValue)
    })
  })
  return { update, closed: /** @type {Promise<string>} */ (closed) }
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
